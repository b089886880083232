"""How fast the embedded world is, measured against a SimPy program of the same scenario.

    python benchmarks/world.py

Prints, from one run: tasks per second of both (a batch of 64 worlds, a policy in Python), whether
their outcomes agree, how the engine's cost per task changes with simulated time and with the number
of worlds, what a world that surprises costs, and its memory per task. Every figure is the best of
several rounds.
"""

import sys
import tracemalloc
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

import simpy_twin
from compiled_loop import LARGE, engine_seconds
from cosmo import Dispatcher, DispatchObservation, Method, Site, play, simulate
from cosmo.measure import OUTCOME_NAMES
from cosmo.scenario import Scenario, load
from cosmo.workload import Episode, episode
from cosmo.world import Outcome
from measured import seconds, sized

ROUNDS = sized(5, 1)
WORLDS = sized(64, 8)
SECONDS = sized((1, 10, 100, 1000), (1, 4))  # simulated, to see whether cost grows with time
COUNTS = sized((1, 10, 100, 1000), (1, 10))
MEMORY_SECONDS = sized((100, 200), (5, 10))
SURPRISED = (("paper", 320, "local-until-full"), ("campus", 150, "power-of-d"))
TASKS = sized(200_000, 2_000)  # a round plays at least so many

Case = Callable[[], tuple[float, int]]  # → seconds, tasks


class Rule(Method, Dispatcher):
    """Local if there is room; else offload small tasks and reject large ones."""

    def dispatcher(self, site: Site) -> Dispatcher:
        return self

    def decide(self, tasks: DispatchObservation) -> NDArray[np.int64]:
        return np.where(tasks.local_room, 0, np.where(tasks.cycles < LARGE, 1, 2))


def twin_rule(view: simpy_twin.View) -> int:
    return 0 if view.local_room else 1 if view.task.cycles < LARGE else 2


def paper_world(window_s: float = 10.0) -> Scenario:
    # UEs turn at the edge of the cell, so that they stay in it however long the run is.
    settings = [f"episode.window_ms={1000 * window_s}", "episode.warmup_ms=0"]
    return load("paper", [*settings, "workload.rate=220", "mobility.at_edge=turn"])


def tasks_of(episodes: Sequence[Episode]) -> int:
    return sum(len(each.tasks) for each in episodes)


def agree(ours: Outcome, theirs: Sequence[simpy_twin.Outcome]) -> bool:
    """Task by task: action, outcome, finishing time."""
    rows = zip(ours.action.tolist(), ours.outcome, ours.finished_ms, theirs, strict=True)
    return all(
        (action, OUTCOME_NAMES[int(got)]) == (want_action, want)
        and abs(finished - want_finished) < 1e-6
        for action, got, finished, (want_action, want, _, want_finished) in rows
    )


def against_simpy() -> bool:
    """Whether the two play the same world, without which the ratio would mean nothing."""
    scenario = paper_world()
    episodes = [episode(scenario, 0, number) for number in range(WORLDS)]
    tasks = episodes[0].tasks
    columns = (tasks.time_ms, tasks.ue, tasks.input_bytes, tasks.cycles, tasks.deadline_ms)
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    same = agree(play(scenario, Rule(), episodes)[0], simpy_twin.simulate(rows, twin_rule))
    ours, theirs = [], []
    for _ in range(ROUNDS):
        ours.append(seconds(lambda: play(scenario, Rule(), episodes)) / tasks_of(episodes))
        theirs.append(seconds(lambda: simpy_twin.simulate(rows, twin_rule)) / len(rows))
    print(f"outcomes of the two agree task by task: {'yes' if same else 'NO'}")
    print(f"embedded, {WORLDS} worlds, policy in Python  {1 / min(ours):12,.0f} tasks/s")
    print(f"SimPy                                  {1 / min(theirs):12,.0f} tasks/s")
    print(f"ratio                                  {min(theirs) / min(ours):12.1f} (target: 20)")
    return same


def engine_alone(scenario: Scenario, episodes: Sequence[Episode]) -> tuple[float, int]:
    """A case: as often as it takes for a round."""
    tasks = tasks_of(episodes)
    rounds = max(1, TASKS // tasks)
    return sum(engine_seconds(scenario, episodes) for _ in range(rounds)), rounds * tasks


def flatness(title: str, cases: dict[str, Case]) -> None:
    """Cost per task in each case, and the largest against the smallest."""
    best = dict.fromkeys(cases, float("inf"))
    for _ in range(ROUNDS):
        for name, case in cases.items():
            spent, tasks = case()
            best[name] = min(best[name], spent / tasks)
    print(f"\n{title}")
    for name, value in best.items():
        print(f"  {name:>12} {1e9 * value:8.0f} ns a task")
    spread = max(best.values()) / min(best.values())
    print(f"  largest / smallest {spread:.2f} (target: 1.20)")


def over_time() -> None:
    cases: dict[str, Case] = {}
    for window_s in SECONDS:
        scenario = paper_world(window_s)
        episodes = [episode(scenario, 0, number) for number in range(4)]
        cases[f"{window_s} s"] = partial(engine_alone, scenario, episodes)
    flatness("engine alone, cost over simulated time (4 worlds):", cases)


def over_worlds() -> None:
    scenario = paper_world()
    episodes = [episode(scenario, 0, number) for number in range(max(COUNTS))]
    cases: dict[str, Case] = {
        f"{count} worlds": partial(engine_alone, scenario, episodes[:count]) for count in COUNTS
    }
    flatness("engine alone, cost over worlds:", cases)
    print("\nwith a policy in Python (a call is shared by all worlds of the batch):")
    costs = {}
    for count in COUNTS:
        some = episodes[:count]
        spent = min(seconds(partial(play, scenario, Rule(), some)) for _ in range(ROUNDS))
        costs[count] = spent / tasks_of(some)
        print(f"  {count:>12} worlds in lockstep {1e9 * costs[count]:8.0f} ns a task")
    print(f"  one world costs {costs[1] / costs[max(COUNTS)]:.1f} times as much as {max(COUNTS)}")
    spent = min(
        seconds(lambda: simulate(scenario, Rule(), seeds=0, episodes=max(COUNTS))) for _ in range(2)
    )
    each = 1e9 * spent / tasks_of(episodes)
    print(f"  {max(COUNTS)} as `simulate` plays them {each:8.0f} ns a task (with metrics)")


# Everything that may surprise nodes (R35 to R39), as often as on the presets that have it.
SURPRISES = (
    "workload.demand.spread=0.5",
    "workload.wave={amplitude = 0.3, period_ms = 4000}",
    "en.speed={factors = [1.0, 0.7], dwell_ms = [2000, 1000]}",
    "sn.speed={factors = [1.0, 0.5], dwell_ms = [2000, 1000]}",
    "sn.outage={up_ms = 8000, down_ms = 500}",
    "background.rates=[1, 5]",
    "background.dwell_ms=[1000, 1000]",
)


def surprises() -> None:
    """What all of them cost, a task or tenant's task, with rules that are compiled."""
    print("\nwith everything that surprises, against a world without:")
    for preset, rate, rule in SURPRISED:
        costs = []
        for more in ((), SURPRISES):
            scenario = load(preset, [f"workload.rate={rate}", *more])
            episodes = [episode(scenario, 0, number) for number in range(sized(20, 2))]
            count = tasks_of(episodes) + sum(len(each.background) for each in episodes)
            play(scenario, rule, episodes)  # compile
            spent = min(seconds(partial(play, scenario, rule, episodes)) for _ in range(ROUNDS))
            costs.append(spent / count)
        print(f"  {preset}, {rule}: {costs[1] / costs[0]:.2f} times (target: 1.4)")


def memory() -> None:
    """Bytes that another task adds: its row in the workload, in the engine and in the outcome."""
    sizes = {}
    for window_s in MEMORY_SECONDS:
        scenario = paper_world(window_s)
        given = episode(scenario, 0, 0)
        columns = [getattr(given.tasks, name) for name in given.tasks.__slots__]
        own = sum(each.nbytes for each in columns if each is not None)
        tracemalloc.start()
        play(scenario, Rule(), [given])
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        sizes[len(given.tasks)] = peak + own
    (few, small), (many, large) = sizes.items()
    per_task = (large - small) / (many - few)
    print(f"\nmemory: {per_task:.0f} bytes a task, {(small - few * per_task) / 1e3:.0f} kB besides")
    print("  (target: 200 bytes a task)")


if __name__ == "__main__":
    engine_seconds(paper_world(), [episode(paper_world(), 0, 0)])  # compile
    same = against_simpy()
    over_time()
    over_worlds()
    surprises()
    memory()
    sys.exit(0 if same else "the engine and SimPy do not play the same world")
