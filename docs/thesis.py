"""What updates are worth, over how sparse senders are and how long an SN's state lasts.

    python docs/regenerate.py thesis
    python docs/regenerate.py thesis-live    # one of these worlds on daemons of this machine

Worlds are those of `tenants`: few ENs, and SNs whose other tenants come and leave. One axis is the
rate of tasks at each EN, the other the mean time that tenants stay and stay away. In each world all
methods but `cosmo-next` are tuned for net utility with the same budget, on validation episodes:
rules without any update, of which the best is the floor; periodic updates, the answer of freshness;
rules that send by what a status is worth for decisions. `cosmo-next` is played as it is shipped.
Which rule of a family is shown is also chosen on validation episodes. Writes docs/data/thesis.json,
from which the table and the picture are made. The world on daemons is played with the settings that
were chosen in the simulator, and writes docs/data/thesis-live.json.
"""

import tempfile
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars
from drawn import picture

from cosmo.control import simulate_runs
from cosmo.errors import EngineError
from cosmo.measure.statistics import interval
from cosmo.report.table import markdown
from cosmo.scenario import Scenario, load
from cosmo.study import LocalExecutor, plan_checked
from cosmo.study.checks import METRICS_FILE, TRIALS_FILE, TUNED_FILE
from cosmo.study.executor import Failed, carry_out
from cosmo.study.tune_units import TuneUnit
from cosmo.study.units import PlayUnit
from cosmo.study.work import units_of

RATES, DWELL_MS = (2.0, 8.0, 30.0), (100.0, 500.0, 2500.0)
SEEDS, METRIC = tuple(range(10)), "net_utility_per_task"
OWN, FLOOR = "cosmo-next", "no updates"
FAMILIES = {
    FLOOR: ("in-flight", "leaky-bucket", "back-off"),
    "periodic": ("periodic",),
    "decision-aware": ("jbt", "aoii", "power-of-d"),
}
TUNE = {
    "settings": 16,
    "seeds": [0, 1, 2],
    "metric": METRIC,
    "curve": 0,
    "over": {
        "in-flight": {"caution": "0.5:12:log"},
        "leaky-bucket": {"inflation": "1:8:log", "failure_ms": "5:500:log", "d": "1:8:log"},
        "periodic": {"interval_ms": "5:5000:log"},
        "jbt": {"high_ms": "20:200:log", "low_ms": "1:20:log", "caution": "0.5:12:log"},
        "aoii": {"age_ms": "0.5:500:log", "wait_ms": "5:150:log", "caution": "0.5:12:log"},
        "power-of-d": {"threshold_ms": "2:300:log", "d": "1:8:log"},
        OWN: {},
    },
}
_SHOWN = ("success_rate", METRIC, "update_cost_rate")
# The world that daemons play, runs of it, and how: five times slower than real time.
LIVE_WORLD, LIVE_RUNS = (8.0, 500.0), 2
LIVE_ATTEMPTS = 3  # of a run; a machine that is held up for a moment has no result
LIVE = ("live.slower=5", "live.fifo=10")
_LIVE_SHOWN = ("success_rate", "update_cost_rate")


def _units(rate: float, dwell_ms: float) -> list[Any]:
    """What is played in one world: every rule tuned, and `cosmo-next`."""
    plan = plan_checked(
        {
            "name": "thesis",
            "scenarios": ["tenants"],
            "settings": [f"background.dwell_ms=[{dwell_ms}, {dwell_ms}]"],
            "arrivals": ["poisson"],
            "rates": [rate],
            "seeds": list(SEEDS),
            "episodes": 1,
            "tune": TUNE,
            "compare": [{"methods": [OWN, *(name for own in FAMILIES.values() for name in own)]}],
        }
    )
    units = units_of(plan)
    ours = [unit for unit in units if isinstance(unit, PlayUnit) and unit.method == OWN]
    return [*ours, *(unit for unit in units if isinstance(unit, TuneUnit))]


def measured() -> list[dict[str, Any]]:
    """Success, net utility and cost of each family in every world, run by run."""
    worlds = {world: _units(*world) for world in product(RATES, DWELL_MS)}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        units = [unit for own in worlds.values() for unit in own]
        for event in LocalExecutor().run(units, folder, carry_out):
            if isinstance(event, Failed):
                raise RuntimeError(f"{event.unit.name}: {event.cause}")
        return [_world(folder, *world, own) for world, own in worlds.items()]


def _world(folder: Path, rate: float, dwell_ms: float, units: list[Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for family, names in FAMILIES.items():
        places = [folder / unit.name for unit in units if unit.method in names]
        # By validation episodes, as the setting was: the best of several is partly the luckiest.
        best = max(places, key=lambda place: _best(polars.read_parquet(place / TRIALS_FILE)))
        rows = polars.read_parquet(best / TUNED_FILE).filter("chosen")
        found[family] = {"setting": rows["setting"][0], **_runs(rows)}
    [own] = [folder / unit.name for unit in units if unit.method == OWN]
    found[OWN] = {"setting": OWN, **_runs(polars.read_parquet(own / METRICS_FILE))}
    return {"rate": rate, "dwell_ms": dwell_ms, "found": found}


def measured_live(
    told: list[dict[str, Any]], settings: tuple[str, ...] = LIVE
) -> list[dict[str, Any]]:
    """Each family on live nodes, in one of the worlds of `told`, and the same runs simulated.

    Args:
        told: What `measured` found, whose settings are played.
        settings: How the test bed plays, and whatever else differs from the simulated world.

    Returns:
        A row a family: setting, and for both engines each metric, run by run.

    """
    rate, dwell_ms = LIVE_WORLD
    [world] = [row for row in told if (row["rate"], row["dwell_ms"]) == LIVE_WORLD]
    # The settings of the test bed change nothing in the simulator.
    fields = [
        f"background.dwell_ms=[{dwell_ms}, {dwell_ms}]",
        f"workload.rate={rate}",
        "workload.arrivals=poisson",
        *settings,
    ]
    rows = []
    for family, own in world["found"].items():
        row: dict[str, Any] = {"family": family, "setting": own["setting"]}
        for engine in ("embedded", "live"):
            where = load("tenants", [*fields, f"engine={engine}"])
            episodes = [_episode(where, own["setting"], seed) for seed in SEEDS[:LIVE_RUNS]]
            row[engine] = {name: [round(e[name], 5) for e in episodes] for name in _LIVE_SHOWN}
        rows.append(row)
        print(f"{family}: {row['live']}", flush=True)
    return rows


def _episode(where: Scenario, setting: str, seed: int) -> dict[str, float]:
    """The metrics of one run; on live nodes it is played again if the machine was late."""
    for _ in range(LIVE_ATTEMPTS - 1):
        try:
            return _metrics(where, setting, seed)
        except EngineError as error:
            print(f"{setting}, run {seed}, again: {error}", flush=True)
    return _metrics(where, setting, seed)


def _metrics(where: Scenario, setting: str, seed: int) -> dict[str, float]:
    [run] = simulate_runs(where, setting, [seed], 1)
    [found] = run.episodes
    return found


def live_table(rows: list[dict[str, Any]]) -> str:
    """Each family in the simulator and on live nodes."""
    cells = []
    for row in rows:
        found = [f"`{row['setting']}`" if row["family"] != OWN else "as shipped"]
        for engine in ("embedded", "live"):
            success, cost = (np.mean(row[engine][name]) for name in _LIVE_SHOWN)
            found.append(f"{success:.3f} at {cost:.0f}")
        floor = rows[0]["live"]["success_rate"]
        gain = np.subtract(row["live"]["success_rate"], floor)
        cells.append((row["family"], *found, f"{gain.mean():+.3f}"))
    header = "family", "setting", "simulated", "live", "success gained over the floor, live"
    return markdown(header, cells)


def _best(trials: polars.DataFrame) -> float:
    return float(trials[METRIC].drop_nulls().to_numpy().max())


def _runs(rows: polars.DataFrame) -> dict[str, list[float]]:
    ordered = rows.sort("seed", "episode")
    return {name: [round(value, 5) for value in ordered[name]] for name in _SHOWN}


def _gain(row: dict[str, Any], family: str) -> tuple[float, float]:
    """Net utility gained over the floor, and its 95 % half-width over runs."""
    found = row["found"]
    found = interval(np.subtract(found[family][METRIC], found[FLOOR][METRIC]).tolist())
    return found.mean, found.ci95


def table(told: list[dict[str, Any]]) -> str:
    """Every world: the floor, and what each family gains over it."""
    rows = []
    for row in told:
        floor = row["found"][FLOOR]
        cells = [
            f"{row['rate']:g}", f"{row['dwell_ms']:g}", f"`{floor['setting']}`",
            f"{np.mean(floor['success_rate']):.3f}", f"{np.mean(floor[METRIC]):.1f}",
        ]  # fmt: skip
        for family in (*list(FAMILIES)[1:], OWN):
            own, (gain, spread) = row["found"][family], _gain(row, family)
            setting = "" if family == OWN else f"`{own['setting']}`: "
            cells.append(
                f"{setting}{np.mean(own['success_rate']):.3f} at"
                f" {np.mean(own['update_cost_rate']):.0f}; {gain:+.1f} ± {spread:.1f}"
            )
        rows.append(tuple(cells))
    header = (
        "tasks/s an EN", "tenants stay, ms", "floor: best rule without updates", "its success",
        "its net utility", *(f"{family}" for family in (*list(FAMILIES)[1:], OWN)),
    )  # fmt: skip
    return markdown(header, rows)


def figure(told: list[dict[str, Any]], path: Path) -> None:
    """Net utility of the floor, and what each family of updates gains over it."""
    by_world = {(row["rate"], row["dwell_ms"]): row for row in told}
    panels = [FLOOR, *list(FAMILIES)[1:], OWN]
    with picture(path, (12.5, 3.6), panels=len(panels)) as (_, axes):
        for axis, family in zip(axes, panels, strict=True):
            values, labels = np.zeros((len(DWELL_MS), len(RATES))), {}
            for (y, dwell_ms), (x, rate) in product(enumerate(DWELL_MS), enumerate(RATES)):
                row = by_world[rate, dwell_ms]
                if family == FLOOR:
                    values[y, x] = np.mean(row["found"][FLOOR][METRIC])
                    labels[y, x] = f"{values[y, x]:.0f}"
                else:
                    values[y, x], spread = _gain(row, family)
                    clear = abs(values[y, x]) > spread
                    labels[y, x] = f"{values[y, x]:+.1f}" if clear else "≈ 0"
            most = None if family == FLOOR else 140.0  # the same colours in all panels of gains
            colours = "viridis" if family == FLOOR else "PiYG"
            axis.imshow(
                values, cmap=colours, origin="lower", aspect="auto", vmax=most, vmin=most and -most
            )
            for (y, x), label in labels.items():
                colour = "w" if family == FLOOR and values[y, x] < values.mean() else "k"
                axis.text(x, y, label, ha="center", va="center", color=colour)
            axis.set_xticks(range(len(RATES)), [f"{rate:g}" for rate in RATES])
            axis.set_yticks(range(len(DWELL_MS)), [f"{each:g}" for each in DWELL_MS])
            axis.set_xlabel("tasks/s an EN")
            axis.set_title(
                "net utility without updates" if family == FLOOR else f"gained by {family}",
                fontsize=9,
            )
        axes[0].set_ylabel("tenants stay, ms")
