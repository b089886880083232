"""Chooses the SN subset size and update threshold of `power-of-d`, on training workloads alone.

Every setting is played in `district`, `volatile` and `campus` on the same workloads. The one with
the best net utility per task (R32: utility less what updates cost), summed over the three, wins.

python examples/fit_power_of_d.py [episodes]
"""

import sys
from itertools import product

import numpy as np

from cosmo import episode, episode_metrics, load, method, play

FIRST_RUN = 100  # evaluation has the runs from 0 on, far fewer than that
KEEP = (1, 2, 3, 4, 6)
THRESHOLDS_MS = (5.0, 10.0, 15.0, 20.0, 30.0)
WORLDS = {"district": 150, "volatile": 60, "campus": 150}


def main(episodes: int = 2) -> None:
    """Print success, update cost and net utility of every setting."""
    total = {}
    for keep, threshold_ms in product(KEEP, THRESHOLDS_MS):
        setting = f"keep={keep},threshold_ms={threshold_ms:g}"
        chosen, line, score = method(f"power-of-d:{setting}"), [], 0.0
        for preset, rate in WORLDS.items():
            short = ["episode.window_ms=2500", "episode.warmup_ms=500"]
            scenario = load(preset, [f"workload.rate={rate}", *short])
            worlds = [episode(scenario, FIRST_RUN + number, 0) for number in range(episodes)]
            found = [
                episode_metrics(scenario, each, chosen.carries)
                for each in play(scenario, chosen, worlds)
            ]
            success, cost, net = (
                float(np.mean([each[name] for each in found]))
                for name in ("success_rate", "update_cost_rate", "net_utility_per_task")
            )
            line.append(f"{preset} {success:.3f} at {cost:.0f} ({net:.1f})")
            score += net
        total[setting] = score
        print(f"{setting}: {', '.join(line)}; {score:.1f}", flush=True)
    print("best:", max(total, key=total.__getitem__))


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
