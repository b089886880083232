"""Chooses the pause of `back-off` on training workloads alone, where others load the SNs.

On `shared-sn`, and where one weak EN reaches six SNs that others fill and leave in bursts. All
pauses play the same workloads.

python examples/fit_back_off.py [episodes]
"""

import sys

import numpy as np

from cosmo import episode, episode_metrics, load, method, play

FIRST_RUN = 100  # evaluation has the runs from 0 on, far fewer than that
PAUSES_MS = (1.0, 10.0, 25.0, 50.0, 75.0, 100.0, 150.0, 200.0, 300.0, 500.0, 1000.0, 2000.0)
BURSTS = (
    "workload.rate=60", "en.slots=1", "en.cycles_per_ms=6000", "sn.count=6",
    "background.rates=[0,500]", "background.dwell_ms=[100,200]",
)  # fmt: skip
WORLDS = {
    **{f"shared-sn, {rate}/s": ("shared-sn", [f"workload.rate={rate}"]) for rate in (80, 120, 160)},
    "six SNs in bursts": ("paper", BURSTS),
}


def main(episodes: int = 6) -> None:
    """Print the success rate of every pause, in each world and on average."""
    total = np.zeros(len(PAUSES_MS))
    for name, (preset, settings) in WORLDS.items():
        scenario, found = load(preset, settings), np.zeros(len(PAUSES_MS))
        for number in range(episodes):
            world = episode(scenario, FIRST_RUN + number, 0)
            for place, pause_ms in enumerate(PAUSES_MS):
                [outcome] = play(scenario, method(f"back-off:pause_ms={pause_ms}"), [world])
                rate = episode_metrics(scenario, outcome, 0)["success_rate"]
                found[place] += rate / episodes
        print(f"{name}: {' '.join(f'{rate:.3f}' for rate in found)}", flush=True)
        total += found / len(WORLDS)
    for pause_ms, score in zip(PAUSES_MS, total, strict=True):
        print(f"{pause_ms:g} ms: {score:.4f}")


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
