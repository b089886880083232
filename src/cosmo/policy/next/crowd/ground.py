"""What a site means for a crowd: who keeps to whom, how many rivals, what is to be expected."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosmo.node import STORAGE, WORK, Site
from cosmo.policy.friends import friends
from cosmo.policy.next.crowd.formulas import number
from cosmo.policy.next.crowd.numbers import Numbers

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_GOLDEN = 0.6180339887498949  # multiples of it fill an interval evenly


@dataclass(frozen=True)
class Ground:
    """Of ENs [EN, k] by the SNs that they reach, of SNs [SN, k] by the ENs that reach them.

    The last SNs have no row if nobody reaches them: they are never asked.
    """

    kept: Bools  # [EN, k] whether the EN keeps to the SN
    rivals: Floats  # [EN, k] other ENs that do
    capacity: Floats  # [EN] cycles a ms of the EN and its share of the SNs it keeps to
    ease_ms: Floats  # [SN] of its full rate: a mean service on all slots but one
    told: Bools  # [SN, k] whether that EN keeps to it
    usage: Floats  # [SN, k] tasks that the EN may send it in a ms
    gain: Floats  # [SN, k] ms of work a ms that the EN expects others and itself to send it
    phase: Floats  # [SN, k] from -1 to 1: who is told a little sooner than others
    longest_ms: float
    largest_bytes: float
    price: float  # of a status, in successful tasks


def how_many(site: Site, p: Numbers) -> int:
    """SNs that an EN keeps to: more where there are many for each EN."""
    each = len(site.sn) / len(site.en)
    return max(1, int(np.floor(p.keep + p.keep_more * each + 0.5)))


def ground_of(site: Site, p: Numbers) -> Ground:
    """What both sides can work out from what they are told at the start."""
    links, rate = site.links, site.sn.full_rate
    kept = friends(site, how_many(site, p))
    keepers = np.bincount(links.reach[kept], minlength=len(site.sn)).astype(np.float64)
    near = np.where(kept, rate[links.reach], 0.0)
    shared = np.where(kept, near / np.maximum(keepers[links.reach], 1.0), 0.0)
    all_rates = site.en.full_rate + near.sum(axis=1)
    share = near / all_rates[:, None]  # of its tasks, by how fast nodes are
    tasks_a_ms = site.tasks.rate / 1000.0
    flow = share * tasks_a_ms * site.tasks.mean_cycles / rate[links.reach]
    rivals = np.where(kept, keepers[links.reach] - 1.0, 0.0)
    en, column = links.told
    told = kept[en, column] & (en >= 0)
    slots = site.sn.slots
    service_ms = site.tasks.mean_cycles / site.sn.cycles_per_ms
    order = np.arange(len(en))[:, None] * 0.3819 + en * _GOLDEN
    return Ground(
        kept=kept,
        rivals=rivals,
        capacity=site.en.full_rate + shared.sum(axis=1),
        ease_ms=service_ms * (slots - 1) / slots,
        told=told,
        usage=np.where(told, share[en, column] * tasks_a_ms, 0.0),
        gain=np.where(told, (1.0 + p.rivals * rivals[en, column]) * flow[en, column], 0.0),
        phase=2.0 * (order - np.floor(order)) - 1.0,
        longest_ms=float(site.tasks.deadline_ms[1]),
        largest_bytes=float(site.largest_reservation),
        price=site.prices.per_number / site.prices.success,
    )


def told_number(site: Site, sn: NDArray[np.int64], state: Floats) -> Floats:
    """[row] what a status of these states of SNs says: see `formulas.number`."""
    full = (state[:, STORAGE] < site.largest_reservation).astype(np.float64)
    longest_ms = site.tasks.deadline_ms[1]
    found: Floats = number(state[:, WORK] / site.sn.full_rate[sn], full, longest_ms)
    return found
