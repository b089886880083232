"""Trains `cosmo-next` and plays it and its rivals on equal workloads, for docs/next.md.

    python docs/measure_next.py              # an hour on two cores; then docs/regenerate.py --pages
    python docs/measure_next.py FOLDER       # keeps, and uses, what is trained already in FOLDER

Results are in docs/data/next/metrics.parquet: a row for every method, point, run and episode.
"""

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import polars

from cosmo import load
from cosmo.control import method, play
from cosmo.learn import session
from cosmo.learn.next.loads import stepped
from cosmo.learn.trainer import Run
from cosmo.measure import episode_metrics
from cosmo.study import LocalExecutor, conduct, plan_checked
from cosmo.study.units import METRICS_FILE

DATA = Path(__file__).parent / "data" / "next"
SEEDS, EPISODES = list(range(10)), 5
STEPS, STEP_RATES, STEPS_MS = "steps", (120.0, 320.0, 120.0), (4000.0, 7000.0)
# Of each training: its scenario, its settings, its runs.
ON_SHARED = ["en.failure=0.3", "episodes=26"]
TRAININGS: dict[str, tuple[str, list[str], list[int]]] = {
    "paper": ("paper", [], SEEDS),
    "shared-sn": ("shared-sn", ON_SHARED, SEEDS),
    "paper-short": ("paper", ["episodes=16"], SEEDS[:3]),
    "paper-no-foresight": ("paper", ["episodes=16", "en.horizon_ms=1.0"], SEEDS[:3]),
    "shared-sn-short": ("shared-sn", [*ON_SHARED, "episodes=16"], SEEDS[:3]),
    "shared-sn-no-evidence": (
        "shared-sn",
        [*ON_SHARED, "episodes=16", "en.evidence=false"],
        SEEDS[:3],
    ),
}
RIVALS = {
    "paper": ["self-tracking", "priced-books"],
    "shared-sn": [
        "self-tracking",
        "priced-books",
        "aoi-threshold",
        "aoci-online",
        "aov-gap",
        "prequal",
        "full-information",
    ],
}
KEPT = (
    *("scenario", "arrivals", "rate", "method", "seed", "episode"),
    *("success_rate", "decision_accuracy", "update_cost_rate", "fp_rate"),
)


def train(name: str, folder: Path) -> None:
    """One of the trainings, unless it is there."""
    scenario, settings, seeds = TRAININGS[name]
    print(f"training: {name} …", flush=True)
    config = session.load_config_of("cosmo-next", None, settings)
    runs = [Run(load(scenario), seed) for seed in seeds]
    session.train(folder / name, "cosmo-next", runs, config, resume=(folder / name).exists())


def compare(folder: Path) -> list[dict[str, Any]]:
    """Who is played where."""

    def next_from(name: str) -> str:
        return f"cosmo-next:checkpoint={folder / name}"

    here = [next_from("paper"), *RIVALS["paper"]]
    shared = [next_from("shared-sn"), *RIVALS["shared-sn"]]
    return [
        {"methods": here, "scenarios": ["paper"]},
        {"methods": here, "scenarios": ["paper"], "rates": [140.0, 260.0, 300.0]},
        {
            "methods": here,
            "scenarios": ["paper"],
            "arrivals": ["bursty"],
            "rates": [160.0, 220.0],
        },
        {"methods": shared, "scenarios": ["shared-sn"]},
    ]


def compare_parts(folder: Path) -> list[dict[str, Any]]:
    """The ablations, on the seeds that all of them have."""
    parts: list[dict[str, Any]] = []
    for name, (scenario, _, seeds) in TRAININGS.items():
        if len(seeds) < len(SEEDS):
            methods = [f"cosmo-next:checkpoint={folder / name}"]
            parts.append({"methods": methods, "scenarios": [scenario], "arrivals": ["poisson"]})
    return parts


def studied(name: str, parts: list[dict[str, Any]], seeds: list[int]) -> polars.DataFrame:
    """Results of a study of these parts; a trained method has its folder's name."""
    data = {"name": name, "seeds": seeds, "episodes": EPISODES, "compare": parts}
    with tempfile.TemporaryDirectory() as scratch:
        progress = conduct(plan_checked(data), Path(scratch) / name, LocalExecutor())
        if progress.failed:
            sys.exit(f"{name}: {progress.failed}")
        table = polars.read_parquet(Path(scratch) / name / METRICS_FILE)
    named = polars.col("method").str.replace(r"^cosmo-next:checkpoint=.*/", "cosmo-next ")
    return table.select(KEPT).with_columns(named)


def stepping(folder: Path) -> polars.DataFrame:
    """120 tasks/s, then 320, then 120 again, within an episode; Poisson."""
    scenario, rows = load("paper", ["workload.arrivals=poisson"]), []
    for name in (f"cosmo-next:checkpoint={folder / 'paper'}", *RIVALS["paper"]):
        chosen = method(name)
        for seed in SEEDS:
            numbers = range(EPISODES)
            worlds = [
                stepped(scenario, "poisson", STEP_RATES, STEPS_MS, seed, number)
                for number in numbers
            ]
            outcomes = play(scenario, chosen, worlds, seed, list(numbers))
            for number, outcome in zip(numbers, outcomes, strict=True):
                found = episode_metrics(scenario, outcome, chosen.carries)
                point = ("paper", STEPS, 0.0, name.partition(":")[0], seed, number)
                rows.append((*point, *(found[metric] for metric in KEPT[6:])))
    table = polars.DataFrame(rows, schema=list(KEPT), orient="row")
    return table.with_columns(polars.col("method").str.replace("^cosmo-next$", "cosmo-next paper"))


def main() -> None:
    """Train what is missing, play everything, write."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(sys.argv[1] if len(sys.argv) > 1 else scratch).absolute()
        for name in TRAININGS:
            train(name, folder)
        print("playing …", flush=True)
        tables = [
            studied("next", compare(folder), SEEDS),
            studied("parts", compare_parts(folder), SEEDS[:3]),
            stepping(folder),
        ]
    shutil.rmtree(DATA, ignore_errors=True)
    DATA.mkdir(parents=True)
    polars.concat(tables, how="vertical_relaxed").write_parquet(DATA / METRICS_FILE)


if __name__ == "__main__":
    main()
