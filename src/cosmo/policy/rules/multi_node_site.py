"""The profile of a site for the multi-node controller: SN subsets, rivals, expected traffic."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosmo.node import Site
from cosmo.policy.rules.multi_node_parameters import Parameters
from cosmo.policy.subsets import GOLDEN, sn_subset

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class SiteProfile:
    """Arrays [EN, k] are of the k-th SN that an EN reaches; [SN, k] of the k-th EN of an SN.

    The last SNs have no row if no EN reaches them, as they never decide.
    """

    uses: Bools  # [EN, k] whether the EN uses the SN, …
    may_use: Bools  # … or would while one that it uses is closed
    rivals: Floats  # [EN, k] other ENs that use it
    rivals_load: Floats  # [EN, k] their planned traffic to it, in ms of work per ms
    capacity: Floats  # [EN] cycles per ms of the EN and its share of the SNs it uses
    in_service_ms: Floats  # [SN] work of a mean service on all slots but one, at its full rate
    used_by: Bools  # [SN, k] whether that EN uses it, …
    reserve_of: Bools  # … or only would while one that it uses is closed
    tasks_per_ms: Floats  # [SN, k] planned tasks per ms from the EN
    work_per_ms: Floats  # [SN, k] traffic that the EN expects there in all, in ms of work per ms
    phase: Floats  # [SN, k] from -1 to 1: statuses to ENs with more are sent a little sooner
    longest_ms: float  # deadline
    largest_bytes: float  # that a task may reserve
    price: float  # cost of a status, in successful tasks


def subset_size(site: Site, p: Parameters) -> int:
    """The number of SNs that an EN uses: more where there are many for each EN."""
    each = len(site.sn) / len(site.en)
    return max(1, int(np.floor(p.subset_size + p.subset_size_per_ratio * each + 0.5)))


def profile_of(site: Site, p: Parameters) -> SiteProfile:
    """Derive the profile from the public description of a site; ENs and SNs derive the same one."""
    links, rate = site.links, site.sn.full_rate
    uses = sn_subset(site, subset_size(site, p), mixed=True)
    most = max(subset_size(site, p), int(p.reserve_size + 0.5))
    may_use = uses | sn_subset(site, most, mixed=True)
    users = np.bincount(links.reach[uses], minlength=len(site.sn)).astype(np.float64)
    near = np.where(uses, rate[links.reach], 0.0)
    shared = np.where(uses, near / np.maximum(users[links.reach], 1.0), 0.0)
    all_rates = site.en.full_rate + near.sum(axis=1)
    share = near / all_rates[:, None]  # of its tasks, by how fast nodes are
    tasks_a_ms = site.tasks.rate / 1000.0
    flow = share * tasks_a_ms * site.tasks.mean_cycles / rate[links.reach]
    planned = np.bincount(links.reach[uses], weights=flow[uses], minlength=len(site.sn))
    rivals = np.where(uses, users[links.reach] - 1.0, 0.0)
    en, column = links.reached_by
    used_by = uses[en, column] & (en >= 0)
    reserve_of = may_use[en, column] & (en >= 0) & ~used_by
    usual_share = share.sum(axis=1) / np.maximum(uses.sum(axis=1), 1)
    with_rivals = 1.0 + p.rival_traffic * rivals[en, column]
    slots = site.sn.slots
    service_ms = site.tasks.mean_cycles / site.sn.cycles_per_ms
    order = np.arange(len(en))[:, None] * 0.3819 + en * GOLDEN
    return SiteProfile(
        uses=uses,
        may_use=may_use,
        rivals=rivals,
        rivals_load=np.where(uses, planned[links.reach] - flow, 0.0),
        capacity=site.en.full_rate + shared.sum(axis=1),
        in_service_ms=service_ms * (slots - 1) / slots,
        used_by=used_by,
        reserve_of=reserve_of,
        tasks_per_ms=np.where(used_by, share[en, column], reserve_of * usual_share[en])
        * tasks_a_ms,
        work_per_ms=np.where(used_by, with_rivals * flow[en, column], 0.0),
        phase=2.0 * (order - np.floor(order)) - 1.0,
        longest_ms=float(site.tasks.deadline_ms[1]),
        largest_bytes=float(site.largest_reservation),
        price=site.prices.per_number / site.prices.success,
    )
