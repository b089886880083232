"""How fast the embedded world is, measured against a SimPy program of the same scenario.

    python benchmarks/world.py

Prints, from one run: tasks per second of both (a batch of 64 worlds, a policy in Python), whether
their outcomes agree, how the engine's cost per task changes with simulated time and with the number
of worlds, and its memory per task. Every figure is the best of several rounds that take turns.
"""

import time
import tracemalloc
from collections.abc import Callable

import numpy as np
from numba import njit

import simpy_twin
from cosmo import Method, Worlds, load, play, simulate
from cosmo.measure import OUTCOME_NAMES
from cosmo.workload import Episode, episode
from cosmo.world import kernel

ROUNDS = 5
LARGE = 6e5  # cycles


class Rule(Method):
    """Local if there is room; else offload small tasks and reject large ones."""

    def dispatcher(self, setting):
        return self

    def decide(self, tasks):
        return np.where(tasks.local_room, 0, np.where(tasks.cycles < LARGE, 1, 2))


def twin_rule(view: simpy_twin.View) -> int:
    return 0 if view.local_room else 1 if view.task.cycles < LARGE else 2


# The engine itself, compiled into the loop that drives it.
advance = njit(_nrt=False, forceinline=True)(kernel.advance.py_func)


@njit(_nrt=False)
def drive(constants, state, turn):
    """The same rule, compiled: what the engine costs without a call from Python per decision."""
    while True:
        advance(constants, state, turn)
        if turn.counts[kernel.UNFINISHED] == 0 or turn.counts[kernel.FULL] > 0:
            return
        for row in range(turn.counts[kernel.EN_ROWS]):
            task = turn.dispatch[row]
            turn.action[row] = 0 if task.local_room else 1 if task.cycles < LARGE else 2


def engine_seconds(scenario, episodes: list[Episode]) -> float:
    worlds = Worlds(scenario, episodes)
    start = time.perf_counter()
    drive(worlds._constants, worlds._state, worlds._turn)
    seconds = time.perf_counter() - start
    assert worlds._turn.counts[kernel.UNFINISHED] == 0, "the flatness rounds must not need room"
    return seconds


def paper_world(seconds: float = 10.0):
    # UEs turn at the edge of the cell, so that they stay in it however long the run is.
    settings = [f"episode.window_ms={1000 * seconds}", "episode.warmup_ms=0"]
    return load("paper", [*settings, "workload.rate=220", "mobility.at_edge=turn"])


def against_simpy() -> None:
    scenario = paper_world()
    episodes = [episode(scenario, 0, number) for number in range(64)]
    tasks = episodes[0].tasks
    rows = list(
        zip(
            tasks.time_ms.tolist(),
            tasks.ue.tolist(),
            tasks.input_bytes.tolist(),
            tasks.cycles.tolist(),
            tasks.deadline_ms.tolist(),
            strict=True,
        )
    )
    outcomes = play(scenario, Rule(), episodes)
    agree = all(
        (action, OUTCOME_NAMES[int(got)]) == (want_action, want)
        and abs(finished - want_finished) < 1e-6
        for action, got, finished, (want_action, want, _, want_finished) in zip(
            outcomes[0].action.tolist(),
            outcomes[0].outcome,
            outcomes[0].finished_ms,
            simpy_twin.simulate(rows, twin_rule),
            strict=True,
        )
    )
    total = sum(len(each.tasks) for each in episodes)
    ours, theirs = [], []
    for _ in range(ROUNDS):
        ours.append(_seconds(lambda: play(scenario, Rule(), episodes)) / total)
        theirs.append(_seconds(lambda: simpy_twin.simulate(rows, twin_rule)) / len(rows))
    print(f"outcomes of the two agree task by task: {'yes' if agree else 'NO'}")
    print(f"embedded, 64 worlds, policy in Python  {1 / min(ours):12,.0f} tasks/s")
    print(f"SimPy                                  {1 / min(theirs):12,.0f} tasks/s")
    print(f"ratio                                  {min(theirs) / min(ours):12.1f} (target: 20)")


def flatness(title: str, cases: dict[str, Callable[[], tuple[float, int]]]) -> None:
    """Cost per task in each case, and the largest against the smallest."""
    best = dict.fromkeys(cases, float("inf"))
    for _ in range(ROUNDS):
        for name, case in cases.items():
            seconds, tasks = case()
            best[name] = min(best[name], seconds / tasks)
    print(f"\n{title}")
    for name, value in best.items():
        print(f"  {name:>12} {1e9 * value:8.0f} ns a task")
    spread = max(best.values()) / min(best.values())
    print(f"  largest / smallest {spread:.2f} (target: 1.20)")


def over_time() -> None:
    def case(seconds: int, worlds: int) -> Callable[[], tuple[float, int]]:
        scenario = paper_world(seconds)
        episodes = [episode(scenario, 0, number) for number in range(worlds)]
        tasks = sum(len(each.tasks) for each in episodes)
        rounds = max(1, 200_000 // tasks)

        def run() -> tuple[float, int]:
            return sum(engine_seconds(scenario, episodes) for _ in range(rounds)), rounds * tasks

        return run

    cases = {f"{seconds} s": case(seconds, 4) for seconds in (1, 10, 100, 1000)}
    flatness("engine alone, cost over simulated time (4 worlds):", cases)
    scenario = paper_world()
    ten_seconds = [episode(scenario, 0, number) for number in range(1000)]

    def of(worlds: int) -> Callable[[], tuple[float, int]]:
        episodes = ten_seconds[:worlds]
        tasks = sum(len(each.tasks) for each in episodes)
        rounds = max(1, 200_000 // tasks)

        def run() -> tuple[float, int]:
            return sum(engine_seconds(scenario, episodes) for _ in range(rounds)), rounds * tasks

        return run

    counts = (1, 10, 100, 1000)
    flatness("engine alone, cost over worlds:", {f"{n} worlds": of(n) for n in counts})
    print("\nwith a policy in Python (a call is shared by all worlds of the batch):")
    for count in counts:
        episodes = ten_seconds[:count]
        tasks = sum(len(each.tasks) for each in episodes)
        seconds = min(_seconds(lambda e=episodes: play(scenario, Rule(), e)) for _ in range(3))
        print(f"  {count:>12} worlds in lockstep {1e9 * seconds / tasks:8.0f} ns a task")
    tasks = sum(len(each.tasks) for each in ten_seconds)
    seconds = min(_seconds(lambda: simulate(scenario, Rule(), 0, 1000)) for _ in range(2))
    print(f"  1000 as `simulate` plays them {1e9 * seconds / tasks:8.0f} ns a task (with metrics)")


def memory() -> None:
    """Bytes that another task adds: its row in the workload, in the engine and in the outcome."""
    sizes = {}
    for seconds in (100, 200):
        scenario = paper_world(seconds)
        given = episode(scenario, 0, 0)
        own = sum(getattr(given.tasks, name).nbytes for name in given.tasks.__slots__)
        tracemalloc.start()
        play(scenario, Rule(), [given])
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        sizes[len(given.tasks)] = peak + own
    (few, small), (many, large) = sizes.items()
    per_task = (large - small) / (many - few)
    print(f"\nmemory: {per_task:.0f} bytes a task, {(small - few * per_task) / 1e3:.0f} kB besides")
    print("  (target: 200 bytes a task)")


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    engine_seconds(paper_world(), [episode(paper_world(), 0, 0)])  # compile
    against_simpy()
    over_time()
    memory()
