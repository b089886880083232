"""Numbers as they were fitted: they bend with the shape of a site.

What is best differs between one EN that has six SNs to choose from and thirty ENs that meet at
each: so every number has a value for a site in the middle, and how it grows, in its logarithm, with
ENs outnumbering SNs and with the size of the crowd.
"""

from typing import NamedTuple

import numpy as np

from cosmo.node import NOBODY, Site
from cosmo.policy.next.crowd.numbers import LEAST, MOST, Numbers

# Times were fitted where the longest deadline is this; elsewhere they are in proportion.
DEADLINE_MS = 220.0
# All of 30 ENs with all of 20 SNs have size 1; much larger ones no more than the second.
_LARGE, _LARGEST = 600.0, 1.2


class Shape(NamedTuple):
    """Of a site."""

    lean: float  # from -1, SNs only, to 1, ENs only
    size: float  # 0 for one EN with one SN


class Fit(NamedTuple):
    """What training finds."""

    middle: Numbers
    by_lean: Numbers  # of the logarithms
    by_size: Numbers


def level(numbers: Numbers) -> Fit:
    """The same numbers everywhere."""
    flat = Numbers(*(0.0,) * len(numbers))
    return Fit(numbers, flat, flat)


def shape_of(site: Site) -> Shape:
    """From how many nodes there are, and how many each meets."""
    ens, sns = len(site.en), len(site.sn)
    links = float((site.links.reach != NOBODY).sum())
    met = (links / ens) * (links / sns)
    size = min(float(np.log(max(met, 1.0)) / np.log(_LARGE)), _LARGEST)
    return Shape((ens - sns) / (ens + sns), size)


def at_site(fit: Fit, site: Site) -> Numbers:
    """The numbers that nodes act by there."""
    shape = shape_of(site)
    bend = np.exp(shape.lean * np.array(fit.by_lean) + shape.size * np.array(fit.by_size))
    found = Numbers(*np.clip(np.array(fit.middle) * bend, LEAST, MOST).tolist())
    return in_proportion(found, site.tasks.deadline_ms[1])


def in_proportion(numbers: Numbers, longest_ms: float) -> Numbers:
    """The numbers at a site with another longest deadline."""
    scale = longest_ms / DEADLINE_MS
    times = {n: v * scale for n, v in numbers._asdict().items() if n.endswith("_ms")}
    return numbers._replace(**times)
