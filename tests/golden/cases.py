"""Short episodes whose every task is kept in the repository, to catch silent changes of the world.

Regenerate on purpose with `python tests/golden/cases.py`, and say in the commit why they changed.
"""

import sys
from pathlib import Path

import polars

from cosmo import load, method, simulate
from cosmo.measure import task_table

sys.path.insert(0, str(Path(__file__).parents[1]))  # when it is run as a script
from scenarios import SMALL_WILD

FOLDER = Path(__file__).parent
SHORT = ("episode.window_ms=600", "episode.warmup_ms=100")

CASES = {
    "paper-random": ("paper", "random", ["workload.rate=320"]),
    "paper-full-information": ("paper", "full-information", ["workload.rate=320"]),
    "paper-local-until-full": ("paper", "local-until-full", ["workload.arrivals=deterministic"]),
    # Every second task is refused: on a slow link the notices (R27) delay the results behind them.
    "paper-all-offload-slow": (
        "paper",
        "all-offload",
        ["workload.rate=320", "backhaul.down_mbps=2"],
    ),
    "campus-random": ("campus", "random", ["workload.rate=150"]),
    "shared-sn-full-information": ("shared-sn", "full-information", ["workload.rate=200"]),
    "paper-aoci-online": ("paper", "aoci-online", ["workload.rate=280"]),
    "shared-sn-aov-gap-lossy": (
        "shared-sn",
        "aov-gap",
        ["workload.rate=200", "status.loss_probability=0.2", "status.jitter_ms=6"],
    ),
    "campus-prequal": ("campus", "prequal", ["workload.rate=200"]),
    "fading-bursty-random": ("fading-backhaul", "random", ["workload.arrivals=bursty"]),
    # Everything of R35 to R39, often enough for a short episode.
    "wild-random": ("wild", "random", SMALL_WILD),
}


def table(case: str) -> polars.DataFrame:
    preset, name, settings = CASES[case]
    scenario = load(preset, [*SHORT, *settings])
    result = simulate(scenario, method(name), seeds=2026)
    return task_table(result.outcomes, scenario)


if __name__ == "__main__":
    for case in CASES:
        table(case).write_csv(FOLDER / f"{case}.csv")
