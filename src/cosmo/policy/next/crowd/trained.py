"""A crowd as a training left it: its numbers, and the kinds of sites that it knows."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosmo.node import Site
from cosmo.policy.described import Fields
from cosmo.policy.next.crowd.fit import Fit, at_site, level
from cosmo.policy.next.crowd.numbers import Numbers
from cosmo.policy.next.crowd.parts import SHAPE, without


@dataclass(frozen=True)
class Range:
    """What sites it was trained on, from least to most."""

    ens: tuple[float, ...]
    sns: tuple[float, ...]
    load: tuple[float, ...]  # share of the capacity that ENs ask for

    def beyond(self, site: Site) -> str:
        """In one line, in what a site is outside; nothing if it is not."""
        asked = site.tasks.rate / 1000.0 * site.tasks.mean_cycles * len(site.en)
        load = asked / float(site.en.full_rate.sum() + site.sn.full_rate.sum())
        found = (
            ("ENs", len(site.en), self.ens),
            ("SNs", len(site.sn), self.sns),
            ("of the capacity asked for", round(load, 2), (0.0, self.load[1])),
        )
        said = [
            f"{value:g} {name} (trained: {low:g} to {high:g})"
            for name, value, (low, high) in found
            if not low <= value <= high
        ]
        return f"cosmo-next was not trained for such a site: {', '.join(said)}" if said else ""


@dataclass(frozen=True)
class Crowd:
    """One run's."""

    fit: Fit
    trained: Range
    off: str | None = None  # a part that is left out

    def numbers(self, site: Site) -> Numbers:
        """That its nodes act by there."""
        if self.off == SHAPE:
            return at_site(level(self.fit.middle), site)
        found = at_site(self.fit, site)
        return found if self.off is None else without(found, self.off)


def crowd_from(layers: Mapping[str, NDArray[np.floating]], training: Fields) -> Crowd:
    """From arrays by number and the configuration; ValueError for what is missing."""
    kinds = training.group("kinds")
    trained = Range(*(kinds.numbers(name, 0.0, 2) for name in ("ens", "sns", "load")))
    parts = len(Fit._fields)
    for name in Numbers._fields:
        if name not in layers or layers[name].shape != (1, parts):
            raise ValueError(f"crowd/{name}: must be {parts} numbers, of one run")
    columns = (Numbers(*(float(layers[n][0, k]) for n in Numbers._fields)) for k in range(parts))
    return Crowd(Fit(*columns), trained)
