"""A synthetic trace with the shape of a serverless workload, for the preset `paper`.

    python examples/make_trace.py [file]

This is not a recording. It is drawn from statistics of Azure Functions in July 2019 (M. Shahrad and
others, "Serverless in the Wild", USENIX ATC 2020), with what is published marked PUBLISHED and what
is our choice marked CHOSEN. `examples/traces/serverless.parquet` is what this script writes.
"""

import sys
from pathlib import Path

import numpy as np

from cosmo import load
from cosmo.workload import imported, write_trace
from cosmo.workload.public import Recorded

SECONDS, RATE, SEED = 60.0, 180.0, 2020  # CHOSEN
APPLICATIONS = 120  # CHOSEN
# PUBLISHED: shares of invocations by trigger. Orchestration and others are drawn like HTTP.
TRIGGERS = {"http": 0.36 + 0.02 + 0.01, "queue": 0.34, "event": 0.25, "timer": 0.02}
# PUBLISHED: shares of applications with 1, 2, 3, 4 to 5, 6 to 10 and more functions.
FUNCTIONS = {1: 0.54, 2: 0.16, 3: 0.10, 5: 0.08, 8: 0.07, 12: 0.05}
POPULARITY_ORDERS = 4.0  # CHOSEN; PUBLISHED are 8 orders of magnitude, but over two weeks
MEDIAN_S = 1.0  # PUBLISHED: half of the functions run for less than a second on average
SPREAD = 1.0  # CHOSEN: standard deviation of the log of functions' mean durations
WITHIN = 0.3  # CHOSEN: the same within a function
BURST = 6.0  # CHOSEN: mean number of messages that come together, 20 ms apart on average


def starts(trigger: str, count: float, random: np.random.Generator) -> np.ndarray:
    """Times in s of about `count` invocations of one function."""
    if trigger == "timer":  # by the clock
        times = np.arange(random.uniform(0.0, SECONDS / count), SECONDS, SECONDS / count)
    elif trigger == "http":  # people
        times = random.uniform(0.0, SECONDS, random.poisson(count))
    else:  # messages that come in bursts
        first = random.uniform(0.0, SECONDS, random.poisson(count / BURST))
        sizes = random.geometric(1.0 / BURST, len(first))
        gaps = [np.cumsum(random.exponential(0.02, size)) for size in sizes]
        times = np.concatenate(
            [np.empty(0), *(at + gap for at, gap in zip(first, gaps, strict=True))]
        )
    return times[times < SECONDS]


def main(file: str = "serverless.parquet") -> int:
    """Write the trace; returns how many tasks it has."""
    random = np.random.default_rng(SEED)
    functions = [
        (f"app-{app}", f"app-{app}/{k}")
        for app in range(APPLICATIONS)
        for k in range(random.choice(list(FUNCTIONS), p=list(FUNCTIONS.values())))
    ]
    triggers = random.choice(list(TRIGGERS), len(functions))
    weights = 10.0 ** random.uniform(0.0, POPULARITY_ORDERS, len(functions))
    for trigger, share in TRIGGERS.items():
        mine = triggers == trigger
        weights[mine] *= share / weights[mine].sum()
    columns: list[tuple[float, float, str, str]] = []
    for (app, name), trigger, weight in zip(functions, triggers, weights, strict=True):
        mean = MEDIAN_S * random.lognormal(0.0, SPREAD)
        times = starts(trigger, weight / weights.sum() * RATE * SECONDS, random)
        columns += [(time, mean * random.lognormal(0.0, WITHIN), app, name) for time in times]
    start, work, app, name = zip(*columns, strict=True)
    recorded = Recorded(np.array(start), np.array(work), list(app), list(name))
    tasks = imported(recorded, load("paper"), len(start) / SECONDS, seed=SEED)
    times = np.round(tasks.time_ms, 2)  # as fine as a network clock, and smaller on disk
    tasks = type(tasks)(
        times, tasks.en, tasks.ue, tasks.input_bytes, tasks.cycles, np.round(tasks.deadline_ms, 1)
    )
    write_trace(Path(file), tasks, 1)
    return len(tasks)


if __name__ == "__main__":
    print(f"{main(*sys.argv[1:])} tasks")
