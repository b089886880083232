"""A scenario as its nodes know it: the only way from the world's description to a policy."""

from collections.abc import Sequence

import numpy as np

from cosmo.node import Hidden, Links, Nodes, Prices, Scales, Site, Tasks
from cosmo.scenario import Scenario
from cosmo.seeds import Draws
from cosmo.workload import squared_variation


def site_of(scenario: Scenario, streams: Sequence[tuple[int, int]] = ((0, 0),)) -> Site:
    """What nodes know of their site at the start.

    Args:
        scenario: The scenario. Nodes know its rate as what was planned for, whatever the episodes
            hold (R36).
        streams: (run seed, episode number) of each world, for random draws; no node sees them.

    Returns:
        The site that dispatchers and updaters are made for.

    """
    backhaul, workload, seen = scenario.backhaul, scenario.workload, scenario.observation
    between = scenario.links
    weights = scenario.utility
    return Site(
        en=Nodes.of(scenario.en.columns()),
        sn=Nodes.of(scenario.sn.columns()),
        links=Links(
            reach=between.reach,
            up_mbps=between.by_en(between.up_mbps, 1.0),
            down_mbps=between.by_en(between.down_mbps, 1.0),
            hops=between.by_en(between.hops, 1),
            hop_delay_ms=between.by_en(between.hop_delay_ms, 0.0),
            packet_bytes=backhaul.packet_bytes,
            result_bytes=backhaul.result_bytes,
        ),
        reservation_floor_bytes=scenario.storage.reservation_floor_bytes,
        tasks=Tasks(
            input_bytes=workload.input_bytes,
            cycles=workload.cycles,
            deadline_ms=workload.deadline.clip_ms,
            rate=workload.rate,
            squared_variation=squared_variation(workload),
        ),
        scales=Scales(
            wait_ms=seen.wait_scale_ms,
            work_ms=seen.work_scale_ms,
            throughput_mbps=seen.throughput_scale_mbps,
            residual_ms=seen.residual_scale_ms,
            age_ms=seen.age_scale_ms,
            most_age=seen.most_age,
        ),
        prices=Prices(
            success=weights.true_positive * weights.value,
            per_number=weights.update_weight * weights.update_cost_per_dimension,
        ),
        draws=tuple(Draws.of(int(run), int(episode)) for run, episode in streams),
    )


def hidden_of(scenario: Scenario) -> Hidden:
    """What a scenario does to its nodes that they do not know, for warnings to people."""
    workload, tenants, outage = scenario.workload, scenario.background, scenario.sn.outage
    weights = workload.weights or (1.0,)
    rates, stays_ms = np.atleast_2d(tenants.rates), np.atleast_2d(tenants.dwell_ms)
    present = rates.any(axis=-1) & (rates[..., 0] != rates[..., 1])  # else they never change
    speeds = (scenario.en.speed, scenario.sn.speed)
    return Hidden(
        spread=workload.demand.spread,
        load_ratio=max(weights) * len(weights) / sum(weights),
        wave=0.0 if workload.wave is None else workload.wave.amplitude,
        tenants_ms=float(np.where(present[:, None], stays_ms, 0.0).max()),
        slowest=min([1.0, *(factor for each in speeds if each for factor in each.factors)]),
        between_failures_ms=float("inf") if outage is None else outage.up_ms,
        down_ms=0.0 if outage is None else outage.down_ms,
        lost=scenario.status.loss_probability,
    )
