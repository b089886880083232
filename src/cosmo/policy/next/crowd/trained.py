"""A crowd as a training left it: its numbers, and the kinds of sites that it knows."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosmo.node import Site
from cosmo.policy.described import Fields
from cosmo.policy.next.crowd.numbers import Numbers


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

    numbers: Numbers
    trained: Range


def crowd_from(layers: Mapping[str, NDArray[np.floating]], training: Fields) -> Crowd:
    """From arrays by number and the configuration; ValueError for what is missing."""
    kinds = training.group("kinds")
    trained = Range(*(kinds.numbers(name, 0.0, 2) for name in ("ens", "sns", "load")))
    missing = [name for name in Numbers._fields if name not in layers or layers[name].shape != (1,)]
    if missing:
        raise ValueError(f"crowd/{missing[0]}: must be one number, of one run")
    numbers = Numbers(*(float(layers[name][0]) for name in Numbers._fields))
    return Crowd(numbers, trained)
