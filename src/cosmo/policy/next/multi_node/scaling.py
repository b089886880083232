"""Fitted parameters, and their values at a site: they scale with the EN/SN ratio and node count.

The best parameters differ between one EN that can choose from six SNs and thirty ENs that share
each SN. So every parameter has a value for a middle site, and its logarithm changes linearly with
the balance of ENs and SNs and with the size of the site.
"""

from typing import NamedTuple

import numpy as np

from cosmo.node import NO_NODE, Site
from cosmo.policy.rules.multi_node_parameters import LEAST, MOST, Parameters

# Times were fitted where the longest deadline is this; elsewhere they are in proportion.
DEADLINE_MS = 220.0
# A site where each of 30 ENs reaches each of 20 SNs has size 1; sizes are cut off at the second.
_LARGE, _LARGEST = 600.0, 1.2


class Shape(NamedTuple):
    """What parameters scale with, at one site."""

    balance: float  # (ENs - SNs) / (ENs + SNs)
    size: float  # 0 for one EN with one SN


class ScaledParameters(NamedTuple):
    """The parameters that training fits, and how they scale with a site's node counts."""

    middle: Parameters
    by_balance: Parameters  # slopes of the logarithms
    by_size: Parameters


def constant(parameters: Parameters) -> ScaledParameters:
    """The same parameters at every site."""
    flat = Parameters(*(0.0,) * len(parameters))
    return ScaledParameters(parameters, flat, flat)


def shape_of(site: Site) -> Shape:
    """The shape of a site, from its node counts and from how many nodes each reaches."""
    ens, sns = len(site.en), len(site.sn)
    links = float((site.links.reach != NO_NODE).sum())
    met = (links / ens) * (links / sns)
    size = min(float(np.log(max(met, 1.0)) / np.log(_LARGE)), _LARGEST)
    return Shape((ens - sns) / (ens + sns), size)


def at_site(scaled: ScaledParameters, site: Site) -> Parameters:
    """The parameters that nodes of a site act by, within their bounds."""
    shape = shape_of(site)
    growth = np.exp(
        shape.balance * np.array(scaled.by_balance) + shape.size * np.array(scaled.by_size)
    )
    found = Parameters(*np.clip(np.array(scaled.middle) * growth, LEAST, MOST).tolist())
    return scaled_to_deadline(found, site.tasks.deadline_ms[1])


def scaled_to_deadline(parameters: Parameters, longest_ms: float) -> Parameters:
    """The parameters at a site with another longest deadline: times are in proportion to it."""
    scale = longest_ms / DEADLINE_MS
    times = {n: v * scale for n, v in parameters._asdict().items() if n.endswith("_ms")}
    return parameters._replace(**times)
