"""The same scenario and episode for the engine and for the reference."""

import numpy as np

from cosmo.measure import OUTCOME_NAMES
from cosmo.scenario import Scenario, per_link, per_node
from cosmo.workload import Episode
from cosmo.world import Outcome
from reference.records import Background, Link, Node, Parameters, Result, Task, Ue


def reference_parameters(scenario: Scenario, episode: Episode, dims: int = 4) -> Parameters:
    en, sn, backhaul = scenario.en, scenario.sn, scenario.backhaul
    up = per_link(backhaul.up_mbps, en.count, sn.count)
    down = per_link(backhaul.down_mbps, en.count, sn.count)

    def schedule(nominal: float, direction: int, e: int, s: int) -> list[tuple[float, float]]:
        factors = episode.rate_factor[direction, e, s]
        period = scenario.fading.period_ms
        return [(k * period, nominal * factor) for k, factor in enumerate(factors)]

    return Parameters(
        ens=_nodes(en),
        sns=_nodes(sn),
        links=[
            [
                Link(
                    up[e][s],
                    down[e][s],
                    backhaul.hops,
                    backhaul.hop_delay_ms,
                    backhaul.packet_bytes,
                    schedule(up[e][s], 0, e, s),
                    schedule(down[e][s], 1, e, s),
                )
                for s in range(sn.count)
            ]
            for e in range(en.count)
        ],
        ues=[
            Ue(distance, heading)
            for distance, heading in zip(
                scenario.mobility.distances_m, scenario.mobility.headings_deg, strict=True
            )
        ],
        access_rate_mbps=scenario.access.rate_mbps,
        access_overhead_ms=scenario.access.overhead_ms,
        contention_ms=scenario.access.contention_ms,
        speed_m_per_s=scenario.mobility.speed_m_per_s,
        radius_m=scenario.mobility.radius_m,
        result_bytes=backhaul.result_bytes,
        reservation_floor_bytes=scenario.storage.reservation_floor_bytes,
        status_dims=dims,
        ack_bytes=scenario.status.ack_bytes,
        notice_bytes=scenario.status.notice_bytes,
        history_ms=scenario.observation.history_ms,
        undecided_after_ms=scenario.episode.undecided_after_ms,
        window_ms=episode.window_ms,
    )


def _nodes(nodes) -> list[Node]:
    columns = (
        per_node(value, nodes.count)
        for value in (nodes.slots, nodes.cycles_per_ms, nodes.storage_bytes, nodes.queue_capacity)
    )
    return [Node(*values) for values in zip(*columns, strict=True)]


def reference_tasks(episode: Episode) -> tuple[list[Task], list[Background]]:
    tasks, other = episode.tasks, episode.background
    own = zip(
        tasks.time_ms, tasks.en, tasks.ue, tasks.input_bytes, tasks.cycles, tasks.deadline_ms,
        strict=True,
    )  # fmt: skip
    theirs = zip(other.time_ms, other.sn, other.input_bytes, other.cycles, strict=True)
    return (
        [Task(float(t), int(e), int(u), float(b), float(c), float(d)) for t, e, u, b, c, d in own],
        [Background(float(t), int(s), float(b), float(c)) for t, s, b, c in theirs],
    )


def assert_same(outcome: Outcome, results: list[Result]) -> None:
    """Action, outcome, decision time, finishing time and feasible routes of every task."""
    for k, want in enumerate(results):
        action = None if outcome.action[k] < 0 else int(outcome.action[k])
        got = action, OUTCOME_NAMES[int(outcome.outcome[k])]
        assert got == (want.action, want.outcome), f"task {k}"
        if want.decided is None:
            assert np.isnan(outcome.decided_ms[k])
        else:
            assert abs(outcome.decided_ms[k] - want.decided) < 1e-6, f"task {k}"
            mask = sum(bool(good) << route for route, good in enumerate(want.feasible))
            assert int(outcome.feasible[k]) == mask, f"task {k}"
        assert abs(outcome.finished_ms[k] - want.finished) < 1e-6, f"task {k}"
