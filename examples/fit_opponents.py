"""Chooses the defaults of `jbt`, `aoii`, `lsq`, `sparse-jsq` and `leaky-bucket`, on training
workloads alone.

Every setting is played at eight sites on the same workloads. Of the settings whose mean success
rate is within 0.005 of the best, the one with the best mean net utility per task (R32: utility less
what updates cost) wins.

python examples/fit_opponents.py [method …]
"""

import sys
from itertools import product

import numpy as np

from cosmo import episode, episode_metrics, load, method, play

FIRST_RUN = 100  # evaluation has the runs from 0 on, far fewer than that
RUNS = 3
CLOSE = 0.005
SITES = (
    *("campus", "uncertain", "undeclared", "throttled"),
    *("volatile", "tenants", "district", "skewed"),
)
KEEP = (3, 6, 12)
GRIDS = {
    "jbt": {"high_ms": (20, 30, 40), "low_ms": (10, 20, 30), "keep": KEEP},
    "aoii": {"age_ms": (2, 5, 10), "wait_ms": (15, 25, 35), "keep": KEEP},
    "lsq": {"interval_ms": (10, 20, 40), "keep": KEEP},
    "sparse-jsq": {"interval_ms": (10, 20, 40), "keep": KEEP},
    "leaky-bucket": {"d": (2, 3, 6), "inflation": (1, 2, 3), "failure_ms": (20, 50, 100)},
}


def main(*chosen: str) -> None:
    """Print success, update cost and net utility of every setting, and the best of each method."""
    short = {"district": 1, "skewed": 1}  # so large that one run is enough
    worlds = {}
    for preset in SITES:
        scenario = load(preset, ["workload.rate=150"] if preset == "campus" else [])
        runs = range(FIRST_RUN, FIRST_RUN + short.get(preset, RUNS))
        worlds[preset] = scenario, [episode(scenario, run, 0) for run in runs]
    for name in chosen or GRIDS:
        grid, found = GRIDS[name], {}
        for values in product(*grid.values()):
            given = dict(zip(grid, values, strict=True))
            if name == "jbt" and given["low_ms"] >= given["high_ms"]:
                continue  # no hysteresis
            setting = ",".join(f"{key}={value}" for key, value in given.items())
            rule = method(f"{name}:{setting}")
            line, total = [], []
            for preset, (scenario, episodes) in worlds.items():
                each = [
                    episode_metrics(scenario, outcome, rule.carries)
                    for outcome in play(scenario, rule, episodes)
                ]
                columns = ("success_rate", "net_utility_per_task", "update_cost_rate")
                means = [float(np.mean([row[column] for row in each])) for column in columns]
                line.append(f"{preset} {means[0]:.3f} at {means[2]:.0f}")
                total.append(means[:2])
            found[setting] = success, net = np.mean(total, axis=0)
            print(f"{name}:{setting}: {success:.4f}, {net:.1f} ({', '.join(line)})", flush=True)
        most = max(success for success, _ in found.values())
        close = {
            setting: net for setting, (success, net) in found.items() if success > most - CLOSE
        }
        print(f"best: {name}:{max(close, key=close.__getitem__)}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
