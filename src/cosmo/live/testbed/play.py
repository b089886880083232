"""Episodes of a scenario on daemons of this machine: what the engine `live` does.

Every node is a daemon of its own with an emulated handler, in real or slowed time; late tasks are
finished as R11 says, and tasks that an SN loses are missed at their deadline as R38 says, so that
daemons play by the simulator's rules. Links are emulated by the daemons, or by the network that
they stand in, which is slow by itself. The tasks, those of tenants and changes of speed come from a
process of their own, as light as a node; SNs that fail are killed.
"""

import signal
import subprocess
import sys
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from cosmo.errors import EngineError
from cosmo.files import temporary_folder
from cosmo.live.cell import Arrivals, arrivals_at_ens
from cosmo.live.config import NodeConfig, changed_config, load_config
from cosmo.live.load import Changes, Load, Replayed
from cosmo.live.processes import Running, nodes
from cosmo.live.scenario_files import configs_of
from cosmo.live.tasks import Fate
from cosmo.live.testbed.generator import read_replayed, write_job
from cosmo.live.testbed.networks import Network, network_of
from cosmo.live.testbed.outages import Outages, prepared
from cosmo.policy.registry import method
from cosmo.scenario import Scenario
from cosmo.workload import BackgroundTasks, Episode, Tasks
from cosmo.workload.table import SPEED
from cosmo.world import Outcome, site_of
from cosmo.world.records import FP, NO_ACTION, TP, UNDECIDED, UNJUDGED

Floats = NDArray[np.float64]
_PATIENCE_S = 60.0  # for the load generator, beyond what it should take
Facts = dict[str, float]  # what a daemon said of itself when it stopped


def played(
    scenario: Scenario,
    spec: str,
    episodes: Sequence[Episode],
    seeds: Sequence[int],
    progress: Callable[[int], None] | None = None,
) -> list[Outcome]:
    """What became of each episode with the method of this name on every node.

    Raises EngineError in one line if a measurement cannot be trusted: timers were later than
    `live.most_late_ms`, or calls failed.
    """
    method(spec)  # one that nodes cannot make is refused before anything starts
    found = []
    for episode, seed in zip(episodes, seeds, strict=True):
        reached = arrivals_at_ens(scenario, episode)
        with network_of(scenario) as network:
            ens, sns = daemons_of(scenario, spec, seed, network, episode.expires)
            with (
                nodes(ens, sns, network) as (here, there),
                prepared(scenario, episode, there, network) as outages,
            ):
                for each in (
                    *here,
                    *there,
                ):  # how late timers were while others started is no matter
                    each.process.send_signal(signal.SIGUSR1)
                    each.wait_for("facts")
                told = _replayed(scenario, episode, reached, network, here, there, outages)
                all_starts = [*here, *there, *outages.starts]
                for each in all_starts:  # together: each may wait for work that nobody waits for
                    each.stop()
                for each in all_starts:
                    each.end()
                facts = [_facts(each) for each in all_starts]
        machine = _machine(scenario.live.slower, told, facts)
        _check_trust(scenario, seed, told, machine)
        found.append(outcome_of(scenario, episode, reached, told, facts, machine))
        if progress is not None:
            progress(sum(len(each.tasks) for each in episodes[: len(found)]))
    return found


def outcome_of(
    scenario: Scenario,
    episode: Episode,
    reached: Arrivals,
    told: Replayed,
    facts: list[Facts],
    machine: dict[str, float],
) -> Outcome:
    """What UEs and daemons say became of an episode.

    Nobody knows whether a rejection was right, nor what was true when decisions were made. A task
    that is late counts as finished when its UE learns so, at its deadline.
    """
    tasks = episode.tasks
    names = ["local", *(f"sn{sn}" for sn in range(scenario.sn.count))]
    where = np.array([names.index(each) if each else NO_ACTION for each in told.where], np.int64)
    # [task] the place of the SN among those that the task's EN reaches (R30).
    column = (scenario.links.reach[tasks.en] == where[:, None] - 1).argmax(axis=1)
    action = np.where(where > 0, column + 1, where)
    rejected = told.fate == Fate.REJECTED
    action[rejected] = scenario.links.most_sns + 1
    label = np.full(len(tasks), FP, np.int8)
    label[told.fate == Fate.DONE] = TP
    label[rejected] = UNJUDGED
    label[action == NO_ACTION] = UNDECIDED
    nowhere = np.zeros(len(tasks), np.bool_)
    return Outcome(
        episode=episode,
        action=action.astype(np.int16),
        outcome=label,
        decided_ms=np.where(action == NO_ACTION, np.nan, reached.time_ms),
        finished_ms=tasks.time_ms + told.delay_ms,
        any_feasible=nowhere,
        took_feasible=nowhere,
        refused=told.fate == Fate.REFUSED,
        updates=int(_updates(facts)),
        update_decisions=int(_sum(facts, "update_decisions")),
        status_bytes=np.nan,
        judged=False,
        machine=machine,
    )


def _machine(slower: float, told: Replayed, facts: list[Facts]) -> dict[str, float]:
    """`cosmo.measure.MACHINE`: of the worst of all processes."""
    # An SN of a method without updates may have had no timer at all.
    late = [told.late_p99_ms, *(each.get("timer_p99_ms", 0.0) for each in facts)]
    most = [told.late_most_ms, *(each.get("timer_most_ms", 0.0) for each in facts)]
    return {
        "timer_late_ms_p99": max(late) / slower,
        "timer_late_ms_max": max(most) / slower,
        "decision_ms_p99": max(each.get("decision_p99_ms", 0.0) for each in facts),
        "fallbacks": _sum(facts, "faults"),
    }


def _updates(facts: list[Facts]) -> float:
    """Statuses that SNs have sent, or that ENs have got, if more: who is killed may not say."""
    return max(_sum(facts, "updates"), _sum(facts, "statuses"))


def _sum(facts: list[Facts], name: str) -> float:
    return float(sum(each.get(name, 0.0) for each in facts))


def _check_trust(scenario: Scenario, seed: int, told: Replayed, machine: dict[str, float]) -> None:
    """Raise EngineError if calls failed or the machine did not keep up."""
    late, most = machine["timer_late_ms_p99"], scenario.live.most_late_ms
    if told.errors:
        codes = ", ".join(f"{count} {code}" for code, count in told.errors.items())
        raise EngineError(f"engine live, run {seed}: calls failed ({codes}), so there is no result")
    if late > most:
        raise EngineError(
            f"engine live, run {seed}: timers were late by {late:.2f} ms (p99), more than"
            f" live.most_late_ms = {most:g}, so there is no result; slow down"
            " (live.slower), ask for priority (live.fifo), or have the machine for yourself"
        )


def _facts(daemon: Running) -> Facts:
    """What a daemon said when it stopped, or just before it was killed; nothing if it never ran."""
    [said] = [*daemon.said("facts"), *daemon.said("stopped")][-1:] or [{}]
    return {name: value for name, value in said.items() if isinstance(value, int | float)}


def daemons_of(
    scenario: Scenario, spec: str, seed: int, network: Network, expires: bool = False
) -> tuple[list[NodeConfig], list[NodeConfig]]:
    """The files of ENs and SNs: the simulator's rules, and no cap on updates.

    `expires` says whether ENs stop waiting for SNs at deadlines (R38).
    """
    shared: dict[str, object] = {
        "scale": scenario.live.slower,
        "method.use": spec,
        "method.seed": seed,
        "links.emulate": True,
        "links.emulate_rate": not network.slow_links,
        "handler.kind": "testbed",
        "behaviour.late": "finish",
        "behaviour.lost": "expire" if expires else "rerun",
        "behaviour.fresh_ms": 1e9,
        "behaviour.refresh_ms": 0.0,
        "behaviour.most_updates_per_s": 1000.0,
        "behaviour.updates_per_task": 1e6,
        "behaviour.update_burst": 1e6,
        "limits.calls": 4096,
        "log.level": "info",
    }
    en, sn = (changed_config(load_config(role), shared) for role in ("en", "sn"))
    return configs_of(scenario, en, sn)


def _replayed(
    scenario: Scenario,
    episode: Episode,
    reached: Arrivals,
    network: Network,
    here: list[Running],
    there: list[Running],
    outages: Outages,
) -> Replayed:
    """Have the UEs' process send the tasks, while SNs fail."""
    slower, tasks = scenario.live.slower, episode.tasks
    cycles, true_cycles = _cycles(scenario, tasks)
    known = scenario.workload.demand.declared and tasks.as_declared
    load = Load(
        time_ms=tasks.time_ms,
        reached_ms=reached.time_ms,
        residual_ms=reached.residual_ms,
        en=np.asarray(tasks.en, np.int64),
        input_bytes=np.asarray(tasks.input_bytes, np.float64),
        cycles=cycles,
        deadline_ms=tasks.deadline_ms,
        true_cycles=None if known else true_cycles,
    )
    last_ms = float(np.nanmax(reached.time_ms, initial=0.0)) + float(tasks.deadline_ms.max())
    with temporary_folder() as folder:
        job, out = folder / "job.npz", folder / "out.npz"
        write_job(load, slower, job, len(here), changes_of(scenario, episode))
        command = [sys.executable, "-m", "cosmo.live.testbed.generator", str(job), str(out)]
        addresses = [
            network.address("ues", each.config.name, each.port) for each in (*here, *there)
        ]
        with subprocess.Popen(
            [*network.command("ues"), *command, *addresses],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None
            try:
                started = process.stdout.readline().strip()
                if started:
                    outages.begin(float(started), slower)
                _, said = process.communicate(timeout=last_ms * slower / 1000.0 + _PATIENCE_S)
            except subprocess.TimeoutExpired:
                raise EngineError("the load generator has not come to an end") from None
            finally:
                process.kill()
                outages.end()
        if process.returncode != 0:
            why = (said.strip().splitlines() or ["no reason given"])[-1]
            raise EngineError(f"the load generator has failed ({why})")
        return read_replayed(out)


def _cycles(scenario: Scenario, tasks: Tasks | BackgroundTasks) -> tuple[Floats, Floats]:
    """The cycles that nodes see of tasks, and those that they take (R35)."""
    seen = np.asarray(tasks.cycles, np.float64)
    if not scenario.workload.demand.declared:
        seen = np.full_like(seen, site_of(scenario).tasks.mean_cycles)
    return seen, np.asarray(tasks.work_cycles, np.float64)


def changes_of(scenario: Scenario, episode: Episode) -> Changes:
    """Changes of speed and tenants' tasks of an episode, in order of time."""
    events, theirs = episode.events, episode.background
    speeds, ens = np.flatnonzero(events.what == SPEED), scenario.en.count
    few, many = np.zeros(len(speeds)), np.zeros(len(theirs))
    seen, true_cycles = _cycles(scenario, theirs)
    time_ms = np.concatenate([events.time_ms[speeds], theirs.time_ms])
    order = np.argsort(time_ms, kind="stable")
    return Changes(
        time_ms=time_ms[order],
        node=np.concatenate([events.node[speeds], ens + theirs.sn])[order].astype(np.int64),
        factor=np.concatenate([events.factor[speeds], many])[order],
        input_bytes=np.concatenate([few, theirs.input_bytes])[order],
        cycles=np.concatenate([few, seen])[order],
        true_cycles=np.concatenate([few, true_cycles])[order],
    )
