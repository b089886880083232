"""Chooses the two parameters of `priced-books`, once for all loads, on training workloads alone.

python examples/fit_priced_books.py [episodes]
"""

import sys
from itertools import product

from cosmo import episode, episode_metrics, load, method, play
from cosmo.learn.run import TRAINING_EPISODES  # no evaluation workload is among these

RATES = (120, 160, 200, 220, 240, 280, 320)
MOST_CYCLES = (1.4e6, 1.5e6, 1.6e6, 1.7e6, 1.8e6)
PRICES = (1e4, 1.5e4, 2e4, 2.5e4, 3e4)


def success(spec: str, episodes: int) -> float:
    """Mean success rate over all loads and both arrival processes."""
    found = []
    for process, rate in product(("deterministic", "poisson"), RATES):
        scenario = load("paper", [f"workload.arrivals={process}", f"workload.rate={rate}"])
        worlds = [episode(scenario, 0, TRAINING_EPISODES + number) for number in range(episodes)]
        outcomes = play(scenario, method(spec), worlds)
        found += [episode_metrics(scenario, outcome, 0)["success_rate"] for outcome in outcomes]
    return sum(found) / len(found)


def main(episodes: int = 4) -> None:
    """Print the grid and the best."""
    scores = {}
    for most, price in product(MOST_CYCLES, PRICES):
        spec = f"priced-books:most_cycles={most:g},price={price:g}"
        scores[spec] = success(spec, episodes)
        print(f"{spec}: {scores[spec]:.4f}", flush=True)
    best = max(scores, key=scores.__getitem__)
    print(
        f"best: {best} ({scores[best]:.4f}); self-tracking {success('self-tracking', episodes):.4f}"
    )


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
