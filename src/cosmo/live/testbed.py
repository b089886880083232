"""Simulator against live nodes: the same episodes, on loopback, side by side.

Nodes are daemons of their own with emulated links and handlers, in slowed or real time; late tasks
are finished as R11 says, so that both play by the same rules. What the machine adds is measured in
the load generator's own timers; where that is more than tasks can bear, there is no verdict.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from cosmo.control import method, simulate
from cosmo.live.config import changed_config, load_config
from cosmo.live.items import Fate
from cosmo.live.load import replayed, success
from cosmo.live.processes import nodes
from cosmo.live.sites import configs_of
from cosmo.scenario import Scenario
from cosmo.workload import episode
from cosmo.world import Outcome
from cosmo.world.records import TP

MOST_LATE_MS = 2.0  # p99 of timers, in ms of the nodes: what 1 to 3 % of tasks cannot bear

Note = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Compared:
    """One episode of one method."""

    method: str
    episode: int
    simulated: float  # share of tasks in time
    live: float
    same: float  # share of tasks with the same fate in time or not
    timer_p99_ms: float  # of the load generator, in ms of the nodes
    errors: int  # calls that failed as calls

    @property
    def valid(self) -> bool:
        """Whether the machine was good enough for a verdict."""
        return self.timer_p99_ms <= MOST_LATE_MS and self.errors == 0


def compared(
    scenario: Scenario,
    methods: Sequence[str],
    episodes: Iterable[int],
    scale: float,
    seed: int = 0,
    prefix: tuple[str, ...] = (),
    note: Note = lambda line: None,
) -> list[Compared]:
    """Every method on every episode, simulated and live."""
    found = []
    for spec in methods:
        made = method(spec)
        for number in episodes:
            note(f"{spec}, episode {number}: simulated")
            world = episode(scenario, seed, number)
            outcome = simulate(scenario, made, seed, 1, world.tasks).outcomes[0]
            note(f"{spec}, episode {number}: live, {scale:g} times slower than real time")
            found.append(_live(scenario, spec, number, scale, seed, prefix, outcome))
    return found


def _live(
    scenario: Scenario,
    spec: str,
    number: int,
    scale: float,
    seed: int,
    prefix: tuple[str, ...],
    outcome: Outcome,
) -> Compared:
    shared: dict[str, object] = {
        "scale": scale,
        "method.use": spec,
        "method.seed": seed,
        "links.emulate": True,
        "behaviour.late": "finish",
        "behaviour.refresh_ms": 0.0,
        "behaviour.most_updates_per_s": 1000.0,
        "limits.calls": 4096,
        "log.level": "info",
    }
    ens, sns = configs_of(
        scenario,
        changed_config(load_config("en"), shared),
        changed_config(load_config("sn"), shared),
    )
    tasks = episode(scenario, seed, number).tasks
    with nodes(ens, sns, prefix) as (running, _):
        addresses = [each.address for each in running]
        told = asyncio.run(replayed(scenario, tasks, addresses, scale))
    measured = tasks.time_ms >= scenario.episode.warmup_ms
    simulated = np.asarray(outcome.outcome == TP)
    live = told.fate == Fate.DONE
    return Compared(
        method=spec,
        episode=number,
        simulated=float(simulated[measured].mean()),
        live=success(told, tasks, scenario.episode.warmup_ms),
        same=float((simulated == live)[measured].mean()),
        timer_p99_ms=told.late_p99_ms / scale,
        errors=sum(told.errors.values()),
    )
