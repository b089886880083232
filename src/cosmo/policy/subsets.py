"""SN subsetting: which SNs an EN uses, where it reaches many; both sides work it out from the site.

An EN that uses fewer SNs needs fewer statuses. ENs choose in order of their numbers, each the
SNs that have the least to do so far for their speed, so that all SNs are used alike.
"""

import numpy as np
from numpy.typing import NDArray

from cosmo.node import Site

Bools = NDArray[np.bool_]

GOLDEN = 0.6180339887498949  # multiples of it fill an interval evenly


def sn_subset(site: Site, keep: int, mixed: bool = False) -> Bools:
    """[EN, k] whether an EN uses the k-th SN that it reaches: `keep` of them, or all. If they are
    `mixed`, ENs that share an SN share few others, so that load can move on to all others.
    """
    links = site.links
    found = np.zeros(links.reach.shape, np.bool_)
    asked = np.zeros(len(site.sn))  # tasks a ms that may come to each, by how many use it
    for en, (sns, exist) in enumerate(zip(links.reach, links.exist, strict=True)):
        column = np.flatnonzero(exist)
        share = asked[sns[column]] / site.sn.full_rate[sns[column]]
        # Among equals they begin where the one before left off, so that neighbours differ.
        turn = (np.arange(len(column)) - en * keep) % max(len(column), 1)
        if mixed:
            turn = GOLDEN * (en + 1) * (sns[column] + 1) % 1.0
        chosen = column[np.lexsort((turn, share))][:keep]
        found[en, chosen] = True
        asked[sns[chosen]] += 1.0 / max(len(chosen), 1)
    return found


def en_subset(site: Site, keep: int) -> Bools:
    """[SN, k] whether the k-th EN that reaches an SN uses it."""
    en, column = site.links.reached_by
    chosen: Bools = sn_subset(site, keep)[en, column] & (en >= 0)
    return chosen
