"""Chooses the pause of `back-off` on training workloads alone, where others load the SNs.

On `shared-sn`, and where one weak EN reaches six SNs that others fill and leave in bursts. All
pauses are played side by side, each in worlds of its own, on the same workloads.

python examples/fit_back_off.py [episodes]
"""

import sys

import numpy as np

from cosmo import Method, load, play
from cosmo.measure import episode_metrics
from cosmo.policy.dispatchers import BackOffDispatcher
from cosmo.workload import episode

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


class Pauses(BackOffDispatcher):
    """Each world has a pause of its own."""

    def observe(self, feedback):
        """As ever, with the pause of each row's world; failures come one at a time."""
        for row in range(len(feedback)):
            one = feedback.rows(np.arange(len(feedback)) == row)
            self.pause_ms = PAUSES_MS[int(one.world[0])]
            super().observe(one)


class Candidates(Method):
    """A pause for each world."""

    def dispatcher(self, site):
        """All of them at work."""
        return Pauses(site, PAUSES_MS[0])


def main(episodes: int = 6) -> None:
    """Print the success rate of every pause, in each world and on average."""
    total = np.zeros(len(PAUSES_MS))
    for name, (preset, settings) in WORLDS.items():
        scenario, found = load(preset, settings), np.zeros(len(PAUSES_MS))
        for number in range(episodes):
            world = episode(scenario, FIRST_RUN + number, 0)
            outcomes = play(scenario, Candidates(), [world] * len(PAUSES_MS))
            rates = [episode_metrics(scenario, each, 0)["success_rate"] for each in outcomes]
            found += np.array(rates) / episodes
        print(f"{name}: {' '.join(f'{rate:.3f}' for rate in found)}", flush=True)
        total += found / len(WORLDS)
    for pause_ms, score in zip(PAUSES_MS, total, strict=True):
        print(f"{pause_ms:g} ms: {score:.4f}")


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
