"""The same scenario and episode for the engine and for the reference."""

import numpy as np

from cosmo.measure import OUTCOME_NAMES
from cosmo.scenario import Scenario
from cosmo.workload import Episode
from cosmo.world import Outcome
from reference.records import Background, Link, Node, Parameters, Result, Task, Ue


def reference_parameters(scenario: Scenario, episode: Episode, dims: int = 4) -> Parameters:
    en, sn, backhaul, links = scenario.en, scenario.sn, scenario.backhaul, scenario.links

    def schedule(nominal: float, direction: int, link: int) -> list[tuple[float, float]]:
        factors = episode.rate_factor[direction, link]
        period = scenario.fading.period_ms
        return [(k * period, nominal * factor) for k, factor in enumerate(factors)]

    between: list[list[Link | None]] = [[None] * sn.count for _ in range(en.count)]
    for link in range(len(links)):
        up, down = float(links.up_mbps[link]), float(links.down_mbps[link])
        between[links.en[link]][links.sn[link]] = Link(
            up,
            down,
            int(links.hops[link]),
            float(links.hop_delay_ms[link]),
            backhaul.packet_bytes,
            schedule(up, 0, link),
            schedule(down, 1, link),
        )
    return Parameters(
        ens=_nodes(en),
        sns=_nodes(sn),
        links=between,
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
        undeclared_cycles=None
        if scenario.workload.demand.declared
        else sum(scenario.workload.cycles) / 2,
        events=[
            (
                time,
                ("speed", "down", "up")[what],
                *(("en", node) if node < en.count else ("sn", node - en.count)),
                factor,
            )
            for time, what, node, factor in zip(
                *(column.tolist() for column in _columns(episode.events)), strict=True
            )
        ],
        outages=scenario.sn.outage is not None or bool((episode.events.what == 1).any()),
    )


def _columns(events):
    return events.time_ms, events.what, events.node, events.factor


def _nodes(nodes) -> list[Node]:
    return [Node(*values) for values in zip(*nodes.columns().values(), strict=True)]


def reference_tasks(episode: Episode) -> tuple[list[Task], list[Background]]:
    tasks, other = episode.tasks, episode.background
    own = (
        tasks.time_ms, tasks.en, tasks.ue, tasks.input_bytes, tasks.cycles, tasks.deadline_ms,
        tasks.work_cycles,
    )  # fmt: skip
    theirs = other.time_ms, other.sn, other.input_bytes, other.cycles, other.work_cycles
    return (
        [Task(*row) for row in zip(*(column.tolist() for column in own), strict=True)],
        [Background(*row) for row in zip(*(column.tolist() for column in theirs), strict=True)],
    )


def assert_same(outcome: Outcome, results: list[Result]) -> None:
    """Action, outcome, decision time, finishing time and feasibility of every task."""
    for k, want in enumerate(results):
        action = None if outcome.action[k] < 0 else int(outcome.action[k])
        got = action, OUTCOME_NAMES[int(outcome.outcome[k])]
        assert got == (want.action, want.outcome), f"task {k}"
        if want.decided is None:
            assert np.isnan(outcome.decided_ms[k])
        else:
            assert abs(outcome.decided_ms[k] - want.decided) < 1e-6, f"task {k}"
            assert outcome.any_feasible[k] == any(want.feasible), f"task {k}"
            took = want.action < len(want.feasible) and want.feasible[want.action]
            assert outcome.took_feasible[k] == took, f"task {k}"
        assert abs(outcome.finished_ms[k] - want.finished) < 1e-6, f"task {k}"
