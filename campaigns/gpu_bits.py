"""Random sites and methods, played on the CPU and on the GPU: every bit must be the same.

    python campaigns/gpu_bits.py --scenarios 200 --seed 1

For machines with a GPU, after each change of the kernel or of a rule. Compares all that is known of
every task, statuses, bytes, ages and regret. Names the first difference of a scenario; the exit
code is 1 if there was one. Pairs that no GPU plays (networks, where one EN has one SN) are counted.
"""

import argparse
import sys
import time
from dataclasses import fields

import numpy as np

from cosmo import load, method, play
from cosmo.measure import Regret
from cosmo.scenario import Scenario
from cosmo.workload import episode
from cosmo.world import Outcome

METHODS = (
    *("local-until-full", "full-information", "self-tracking", "in-flight:hot_ms=20"),
    *("power-of-d:keep=3", "piggyback:numbers=4", "lsq:keep=3", "jbt:keep=2", "random"),
    *("aoi-threshold/estimate", "prequal", "cosmo-next"),
)
WORLDS = 4  # of each scenario


def random_scenario(random: np.random.Generator) -> Scenario:
    """A small site with each of the surprises (R35 to R39) in about half of the cases."""
    ens, sns = (int(random.integers(1, 6)) for _ in range(2))
    chosen = [
        f"en.count={ens}",
        f"sn.count={sns}",
        f"workload.rate={random.uniform(40, 400):.1f}",
        f"en.slots={random.integers(1, 4)}",
        f"sn.slots={random.integers(1, 6)}",
        f"sn.queue_capacity={random.integers(2, 60)}",
        *("episode.window_ms=1500", "episode.warmup_ms=200"),
    ]
    surprises = (
        ("status.loss_probability=0.1", "status.jitter_ms=3"),
        ("fading.factors=[0.3, 1.0]", "fading.period_ms=40"),
        ("workload.demand.spread=1.0",),
        ("workload.demand.declared=false",),
        ("sn.speed={factors = [1.0, 0.4], dwell_ms = [240, 120]}",),
        ("sn.outage={up_ms = 500, down_ms = 200}",),
        (f"workload.weights={[1.0] * (ens - 1) + [2.5]}",),
        ("workload.wave={amplitude = 0.6, period_ms = 400}",),
    )
    for surprise in surprises:
        if random.random() < 0.5:
            chosen += surprise
    return load(str(random.choice(["campus", "volatile"])), chosen)


def difference(one: Outcome, other: Outcome) -> str:
    """The first thing in which two outcomes differ, or nothing."""
    for name in (field.name for field in fields(Outcome) if field.name != "episode"):
        here, there = getattr(one, name), getattr(other, name)
        if not isinstance(here, np.ndarray):
            if repr(here) != repr(there):
                return f"{name}: {here} on the CPU, {there} on the GPU"
        elif not np.array_equal(here, there, equal_nan=here.dtype.kind == "f"):
            task = np.flatnonzero(~((here == there) | ((here != here) & (there != there))))[0]
            return f"{name} of task {task}: {here[task]!r} on the CPU, {there[task]!r} on the GPU"
    return ""


def main() -> None:
    """Compare so many scenarios."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    options.add_argument("--scenarios", type=int, default=200)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--seconds", type=float, default=np.inf, help="Stop after so many.")
    options.add_argument("--methods", nargs="*", default=METHODS)
    asked = options.parse_args()
    random = np.random.default_rng(asked.seed)
    tasks, wrong, done, on_cpu = 0, 0, 0, 0
    start = time.perf_counter()
    for number in range(asked.scenarios):
        if time.perf_counter() - start > asked.seconds:
            break
        scenario, name = random_scenario(random), asked.methods[number % len(asked.methods)]
        episodes = [episode(scenario, asked.seed, world) for world in range(WORLDS)]
        remarks: set[str] = set()
        cpu, gpu = (
            play(
                *(scenario, name, episodes, asked.seed),
                watchers=[Regret(scenario, method(name))],
                remarks=remarks,
                device=device,
            )
            for device in ("cpu", "gpu")
        )
        fallen_back = [remark for remark in remarks if "played on the CPU" in remark]
        if any("is not a rule" in remark for remark in fallen_back):
            on_cpu += 1
            continue
        if fallen_back:
            sys.exit(f"{name}: {fallen_back[0]}")
        found = [difference(*pair) for pair in zip(cpu, gpu, strict=True)]
        for world, what in enumerate(found):
            if what:
                wrong += 1
                print(f"scenario {number}, {name}, world {world}: {what}", flush=True)
        tasks += sum(len(each.tasks) for each in episodes)
        done += 1
    print(
        f"{done} scenarios, {tasks} tasks, {wrong} worlds differ, seed {asked.seed};"
        f" {on_cpu} more are not for a GPU"
    )
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
