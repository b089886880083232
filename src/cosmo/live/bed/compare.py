"""One episode of one method, in the simulator and on daemons of this machine.

Nodes are daemons of their own with emulated handlers, in slowed or real time; late tasks are
finished as R11 says, so that both play by the same rules. Links are emulated by the daemons, or by
the network that they stand in, which is slow by itself.
"""

import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from cosmo.control import method, play
from cosmo.errors import EngineError
from cosmo.live.bed.generator import read_replayed, write_job
from cosmo.live.bed.grounds import Ground
from cosmo.live.bed.plan import Key, Unit
from cosmo.live.cell import arrivals_at_ens
from cosmo.live.config import NodeConfig, changed_config, load_config
from cosmo.live.items import Fate
from cosmo.live.load import Load, Replayed
from cosmo.live.processes import Running, nodes
from cosmo.live.scenario_files import configs_of
from cosmo.scenario import Scenario
from cosmo.workload import Tasks, episode
from cosmo.world import Outcome
from cosmo.world.records import TP

_PATIENCE_S = 60.0  # for the generator, beyond what it should take


@dataclass(frozen=True, slots=True)
class Compared:
    """One episode of one method, as a row of a table."""

    scenario: str
    arrivals: str
    rate: float
    scale: float
    transport: str
    method: str
    seed: int
    episode: int
    tasks: int  # measured (R17)
    simulated: float  # share of them in time
    live: float
    same: float  # share with the same fate, in time or not
    simulated_updates: int
    live_updates: int
    timer_p99_ms: float  # the worst of generator and daemons, in ms of the nodes
    timer_most_ms: float
    decision_p99_ms: float  # real ms
    errors: int  # calls that failed as calls
    faults: int  # times that the method made way for its fallback
    valid: bool  # whether the machine was good enough for a verdict

    @property
    def key(self) -> Key:
        """As a unit's."""
        return self.arrivals, self.rate, self.scale, self.method, self.seed, self.episode


def compared(unit: Unit, ground: Ground, most_late_ms: float) -> Compared:
    """Play it both ways; there is no verdict if timers were later, or if calls failed."""
    scenario, tasks = unit.scenario, episode(unit.scenario, unit.seed, unit.episode).tasks
    outcome = _simulated(scenario, unit.method, unit.seed, unit.episode)
    told, facts = _live(unit, tasks, ground)
    measured = tasks.time_ms >= scenario.episode.warmup_ms
    simulated, live = np.asarray(outcome.outcome == TP), told.fate == Fate.DONE
    late = [told.late_p99_ms, *(each["timer_p99_ms"] for each in facts)]
    most = [told.late_most_ms, *(each["timer_most_ms"] for each in facts)]
    errors = sum(told.errors.values())
    timer_p99_ms = max(late) / unit.scale
    return Compared(
        scenario=scenario.name,
        arrivals=scenario.workload.arrivals,
        rate=scenario.workload.rate,
        scale=unit.scale,
        transport=ground.name,
        method=unit.method,
        seed=unit.seed,
        episode=unit.episode,
        tasks=int(measured.sum()),
        simulated=float(simulated[measured].mean()),
        live=float(live[measured].mean()),
        same=float((simulated == live)[measured].mean()),
        simulated_updates=outcome.updates,
        live_updates=int(sum(each.get("updates", 0.0) for each in facts)),
        timer_p99_ms=timer_p99_ms,
        timer_most_ms=max(most) / unit.scale,
        decision_p99_ms=max(each.get("decision_p99_ms", 0.0) for each in facts),
        errors=errors,
        faults=int(sum(each.get("faults", 0.0) for each in facts)),
        valid=timer_p99_ms <= most_late_ms and errors == 0,
    )


@cache
def _simulated(scenario: Scenario, spec: str, seed: int, number: int) -> Outcome:
    """The same at every time scale."""
    [outcome] = play(scenario, method(spec), [episode(scenario, seed, number)], seed, [number])
    return outcome


def _live(unit: Unit, tasks: Tasks, ground: Ground) -> tuple[Replayed, list[dict[str, float]]]:
    """What became of the tasks, and what the daemons said of themselves when they stopped."""
    ens, sns = daemons_of(unit, ground)
    with nodes(ens, sns, ground) as (here, there):
        told = _replayed(unit, tasks, ground, here)
        for each in (*here, *there):
            each.end()
        facts = [_facts(each) for each in (*here, *there)]
    return told, facts


def _facts(daemon: Running) -> dict[str, float]:
    said = daemon.wait_for("stopped")
    return {name: value for name, value in said.items() if isinstance(value, int | float)}


def daemons_of(unit: Unit, ground: Ground) -> tuple[list[NodeConfig], list[NodeConfig]]:
    """The files of ENs and SNs: the simulator's rules, and no cap on updates."""
    shared: dict[str, object] = {
        "scale": unit.scale,
        "method.use": unit.method,
        "method.seed": unit.seed,
        "links.emulate": True,
        "links.emulate_rate": not ground.slow_links,
        "behaviour.late": "finish",
        "behaviour.refresh_ms": 0.0,
        "behaviour.most_updates_per_s": 1000.0,
        "behaviour.updates_per_task": 1e6,
        "behaviour.update_burst": 1e6,
        "limits.calls": 4096,
        "log.level": "info",
    }
    en, sn = (changed_config(load_config(role), shared) for role in ("en", "sn"))
    return configs_of(unit.scenario, en, sn)


def _replayed(unit: Unit, tasks: Tasks, ground: Ground, here: list[Running]) -> Replayed:
    """Have the UEs' process send the tasks."""
    reached = arrivals_at_ens(unit.scenario, tasks)
    load = Load(
        time_ms=tasks.time_ms,
        reached_ms=reached.time_ms,
        residual_ms=reached.residual_ms,
        en=np.asarray(tasks.en, np.int64),
        input_bytes=np.asarray(tasks.input_bytes, np.float64),
        cycles=np.asarray(tasks.cycles, np.float64),
        deadline_ms=tasks.deadline_ms,
    )
    last_ms = float(np.nanmax(reached.time_ms, initial=0.0)) + float(tasks.deadline_ms.max())
    with tempfile.TemporaryDirectory(prefix="cosmo-live-") as name:
        job, out = Path(name) / "job.npz", Path(name) / "out.npz"
        write_job(load, unit.scale, job)
        command = [sys.executable, "-m", "cosmo.live.bed.generator", str(job), str(out)]
        addresses = [ground.address("ues", each.config.name, each.port) for each in here]
        try:
            done = subprocess.run(
                [*ground.command("ues"), *command, *addresses],
                capture_output=True,
                text=True,
                timeout=last_ms * unit.scale / 1000.0 + _PATIENCE_S,
            )
        except subprocess.TimeoutExpired:
            raise EngineError("the load generator has not come to an end") from None
        if done.returncode != 0:
            why = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            raise EngineError(f"the load generator has failed ({why})")
        return read_replayed(out)
