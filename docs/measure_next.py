"""Trains `cosmo-next` and plays it and its rivals on equal workloads, for docs/next.md.

    python docs/measure_next.py              # three hours; then docs/regenerate.py --pages
    python docs/measure_next.py FOLDER       # keeps, and uses, what is trained already in FOLDER

(FOLDER knows with which settings its trainings were made, not with which code: a new one for new
code.)

Results are in docs/data/next/metrics.parquet: a row for every method, point, run and episode. A
trained method is named after its training, as in "cosmo-next paper".
"""

import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars

from cosmo import load
from cosmo.control import BASELINES, Dispatcher, Method, Setting, Updater, method, play
from cosmo.control.updaters.periodic import PeriodicUpdater
from cosmo.files import whole_file
from cosmo.learn import session
from cosmo.learn.next.loads import stepped
from cosmo.learn.trainer import Run
from cosmo.measure import episode_metrics
from cosmo.scenario import Scenario
from cosmo.study import LocalExecutor, conduct, plan_checked
from cosmo.study.checks import METRICS_FILE
from cosmo.workload import Episode, episode

DATA = Path(__file__).parent / "data" / "next"
SEEDS, EPISODES = list(range(10)), 5


@dataclass(frozen=True)
class Training:
    """On which scenario, and how it differs from the preset."""

    scenario: str
    settings: Sequence[str] = ()
    world: Sequence[str] = ()  # settings of the scenario


# Where others are at the SNs, or rates change, failures cannot be avoided altogether.
BOLD = "en.failure=0.3"
SHARED = (BOLD, "episodes=20")
SHORT = "episodes=16"
FORESIGHT = "en.horizon_ms=1.0"
# Without bursts and steps of the load, which are then loads that it has not seen.
STEADY = 'loads.arrivals=["deterministic", "deterministic", "poisson", "poisson", "poisson"]'
WHOLE = {
    "paper": Training("paper", (STEADY,)),
    "shared-sn": Training("shared-sn", SHARED),
    "fading-backhaul": Training("fading-backhaul", SHARED),
    "campus": Training("campus", (*SHARED, "worlds=14")),
}
# What each part is worth: those of a scenario are trained for as long, on the preset's mix of loads
# ("paper-mixed" is "paper" on that mix).
PARTS = {
    "paper-mixed": Training("paper"),
    "paper-short": Training("paper", (SHORT,)),
    "paper-no-books": Training("paper", (SHORT, "en.books=false")),
    "paper-no-foresight": Training("paper", (SHORT, FORESIGHT)),
    "paper-no-margin": Training("paper", (SHORT, "en.margin=0.0")),
    "shared-sn-no-books": Training("shared-sn", (*SHARED, "en.books=false")),
    "shared-sn-no-evidence": Training("shared-sn", (*SHARED, "en.evidence=false")),
    "shared-sn-raw": Training("shared-sn", (*SHARED, "sn.semantic=false")),
}
# One load each, for as long as "paper-short", which is for all loads.
ONLY_POISSON = (SHORT, "loads.below=1.0", "loads.above=1.0", 'loads.arrivals=["poisson"]')
SPECIALISTS = {
    f"paper-only-{rate}": Training(
        "paper", ONLY_POISSON, (f"workload.rates_of_interest=[{rate}.0]",)
    )
    for rate in (320,)
}
TRAININGS = WHOLE | PARTS | SPECIALISTS

RIVALS = BASELINES  # all that need no training
GUESTS = ("self-tracking", "priced-books", "aoci-online", "aov-gap", "full-information")
# Where trained controllers meet scenarios that they were not trained on: Poisson, these rates.
ABROAD = {
    "paper": (220.0, 320.0),
    "shared-sn": (120.0, 200.0),
    "fading-backhaul": (160.0, 220.0, 320.0),
    "campus": (120.0, 180.0, 240.0),
}
STEPS, STEP_RATES, STEPS_MS = "steps", (120.0, 320.0, 120.0), (4000.0, 7000.0)
STEPPING = 0.0  # stands for a rate
# The trade of success against update cost: what methods are swept by.
TRADE_RATE, TRADE_EPISODES = 120.0, 3
PRICES = (0.0, 0.25, 1.0, 4.0, 16.0)
TOLD_EVERY_MS = (5.0, 10.0, 20.0, 50.0, 100.0, 200.0)
SWEPT = {
    "periodic": [f"periodic:interval_ms={each:g}" for each in (5, 10, 20, 37, 100, 200)],
    "aoi-threshold": [f"aoi-threshold:kappa={each:g}" for each in (0.3, 1.0, 5.1, 20, 80)],
    "aoci-online": [f"aoci-online:cost_ms2={each:g}" for each in (40, 160, 660, 2640, 10560)],
    "aov-gap": [f"aov-gap:threshold={each:g}" for each in (0.02, 0.05, 0.1, 0.2, 0.4)],
    "prequal": ["prequal"],
    "self-tracking": ["self-tracking"],
    "priced-books": ["priced-books"],
    "full-information": ["full-information"],
}
KEPT = (
    *("scenario", "arrivals", "rate", "method", "seed", "episode"),
    *("success_rate", "decision_accuracy", "update_cost_rate", "fp_rate"),
)


def train(name: str, folder: Path) -> None:
    """One of the trainings, unless it is there."""
    training = TRAININGS[name]
    print(f"training: {name} …", flush=True)
    config = session.load_config_of("cosmo-next", None, list(training.settings))
    scenario = load(training.scenario, training.world)
    runs = [Run(scenario, seed) for seed in SEEDS]
    session.train(folder / name, "cosmo-next", runs, config, resume=(folder / name).exists())


def compare(folder: Path) -> list[dict[str, Any]]:
    """Who is played where."""

    def trained(*names: str) -> list[str]:
        return [f"cosmo-next:checkpoint={folder / name}" for name in names]

    poisson = {"arrivals": ["poisson"]}
    here = [*trained("paper", "paper-mixed"), "self-tracking", "priced-books"]
    found: list[dict[str, Any]] = [
        {"methods": [*trained("paper"), *RIVALS], "scenarios": ["paper"]},
        {"methods": here, "scenarios": ["paper"], "rates": [140.0, 260.0, 300.0]},
        {"methods": here, "scenarios": ["paper"], "arrivals": ["bursty"], "rates": [160.0, 220.0]},
        {"methods": [*trained("shared-sn"), *RIVALS], "scenarios": ["shared-sn"]},
    ]
    for scenario, rates in ABROAD.items():
        known = scenario in ("paper", "shared-sn")  # and played there above
        methods = trained(*(name for name in WHOLE if not (known and name == scenario)))
        rivals = () if known else GUESTS
        place = {"scenarios": [scenario], "rates": list(rates), **poisson}
        found.append({"methods": [*methods, *rivals], **place})
    for name, training in PARTS.items():
        processes = {} if name == "paper-mixed" else poisson
        found.append({"methods": trained(name), "scenarios": [training.scenario], **processes})
    for name, training in SPECIALISTS.items():
        only = load(training.scenario, training.world).workload.rates_of_interest
        place = {"scenarios": [training.scenario], "rates": list(only), **poisson}
        found.append({"methods": trained(name), **place})
    return found


def studied(name: str, parts: list[dict[str, Any]]) -> polars.DataFrame:
    """Results of a study of these parts; a trained method has its folder's name."""
    data = {"name": name, "seeds": SEEDS, "episodes": EPISODES, "compare": parts}
    with tempfile.TemporaryDirectory() as scratch:
        progress = conduct(plan_checked(data), Path(scratch) / name, LocalExecutor())
        if progress.failed:
            sys.exit(f"{name}: {progress.failed}")
        table = polars.read_parquet(Path(scratch) / name / METRICS_FILE)
    named = polars.col("method").str.replace(r"^cosmo-next:checkpoint=.*/", "cosmo-next ")
    return table.select(KEPT).with_columns(named)


def played(
    scenario: Scenario, chosen: Method, point: tuple[Any, ...], worlds: Iterable[list[Episode]]
) -> list[tuple[Any, ...]]:
    """Rows of every run's worlds; `point` is what they are called."""
    places = [
        (seed, number, each)
        for seed, episodes in zip(SEEDS, worlds, strict=True)
        for number, each in enumerate(episodes)
    ]
    seeds, numbers, episodes = zip(*places, strict=True)
    rows = []
    outcomes = play(scenario, chosen, episodes, seeds, numbers)
    for seed, number, outcome in zip(seeds, numbers, outcomes, strict=True):
        found = episode_metrics(scenario, outcome, chosen.carries)
        rows.append((*point, seed, number, *(found[metric] for metric in KEPT[6:])))
    return rows


def stepping(folder: Path) -> list[tuple[Any, ...]]:
    """120 tasks/s, then 320, then 120 again, within an episode; Poisson."""
    scenario, rows = load("paper", ["workload.arrivals=poisson"]), []
    worlds = [
        [stepped(scenario, "poisson", STEP_RATES, STEPS_MS, seed, k) for k in range(EPISODES)]
        for seed in SEEDS
    ]
    names = {
        f"cosmo-next {name}": f"cosmo-next:checkpoint={folder / name}"
        for name in ("paper", "paper-mixed")
    }
    names |= {name: name for name in ("self-tracking", "priced-books")}
    for called, name in names.items():
        rows += played(scenario, method(name), ("paper", STEPS, STEPPING, called), worlds)
    return rows


class ToldByTheClock(Method):
    """A trained EN that is told the status every so often, whatever its SN thinks."""

    def __init__(self, trained: Method, interval_ms: float) -> None:
        self._trained, self._interval_ms = trained, interval_ms
        self.carries = trained.carries  # type: ignore[misc]

    def dispatcher(self, setting: Setting) -> Dispatcher:
        """The trained one."""
        return self._trained.dispatcher(setting)

    def updater(self, setting: Setting) -> Updater:
        """A clock."""
        return PeriodicUpdater(self._interval_ms)


def trading(folder: Path) -> list[tuple[Any, ...]]:
    """Success against update cost on `shared-sn`; `arrivals` says what was swept."""
    place = ["workload.arrivals=poisson", f"workload.rate={TRADE_RATE:g}"]
    scenario, rows = load("shared-sn", place), []
    worlds = [[episode(scenario, seed, k) for k in range(TRADE_EPISODES)] for seed in SEEDS]

    def add(called: str, step: int, chosen: Method, price: float | None = None) -> None:
        priced = [] if price is None else [f"utility.update_weight={price:g}"]
        here = load("shared-sn", [*place, *priced])
        rows.extend(played(here, chosen, ("shared-sn", "trade", float(step), called), worlds))

    for name in ("shared-sn", "shared-sn-no-books", "shared-sn-raw"):
        trained = method(f"cosmo-next:checkpoint={folder / name}")
        for step, price in enumerate(PRICES):
            add(f"cosmo-next {name}", step, trained, price)
    trained = method(f"cosmo-next:checkpoint={folder / 'shared-sn'}")
    for step, interval_ms in enumerate(TOLD_EVERY_MS):
        add("cosmo-next by the clock", step, ToldByTheClock(trained, interval_ms))
    for called, names in SWEPT.items():
        for step, name in enumerate(names):
            add(called, step, method(name))
    return rows


def measure(kept: str | None = None) -> None:
    """Train what is missing, play everything, write."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(kept or scratch).absolute()
        for name in TRAININGS:
            train(name, folder)
        print("playing …", flush=True)
        rows = [*stepping(folder), *trading(folder)]
        tables = [
            studied("next", compare(folder)),
            polars.DataFrame(rows, schema=list(KEPT), orient="row"),
        ]
    DATA.mkdir(parents=True, exist_ok=True)
    with whole_file(DATA / METRICS_FILE) as temporary:
        polars.concat(tables, how="vertical_relaxed").write_parquet(temporary)


if __name__ == "__main__":
    measure(sys.argv[1] if len(sys.argv) > 1 else None)
