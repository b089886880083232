"""What being told is worth, over the number of nodes and over how much of the load is of others.

    python docs/regenerate.py thesis

Plays the controller of the package in worlds of n ENs and n SNs, all with all, at the same total
load: once as it is, once at a price of updates that forbids them. A growing share of the load is of
others, who fill the SNs in bursts and leave them again; the ENs' own share falls as much. Writes
docs/data/thesis.json, from which the table and the picture are made.
"""

from pathlib import Path
from typing import Any

import numpy as np
from drawn import picture

from cosmo.control import method, simulate_runs
from cosmo.measure.statistics import interval
from cosmo.report.table import markdown
from cosmo.scenario import load as load_scenario

NODES, SHARES, SEEDS = (1, 2, 4, 8, 16), (0.0, 0.25, 0.5, 0.75), tuple(range(10))
RATE = 190.0  # tasks/s for each EN and its SN, whoever sends them
DWELL_MS = (100.0, 200.0)  # without others at an SN, and with them
FORBIDDEN = "utility.update_weight=1e6"


def settings_of(nodes: int, share: float) -> list[str]:
    """A world of so many nodes of each kind, with so much of the load of others."""
    present = DWELL_MS[1] / sum(DWELL_MS)
    return [
        f"en.count={nodes}",
        f"sn.count={nodes}",
        f"workload.rate={(1.0 - share) * RATE}",
        f"background.rates=[0.0, {share * RATE / present}]",
        f"background.dwell_ms=[{DWELL_MS[0]}, {DWELL_MS[1]}]",
    ]


def measured() -> list[dict[str, Any]]:
    """Success and cost of every world, with updates and without; tasks/s are of all ENs."""
    found = []
    for nodes in NODES:
        for share in SHARES:
            settings = settings_of(nodes, share)
            row: dict[str, Any] = {"nodes": nodes, "share": share}
            for name, more in (("told", []), ("untold", [FORBIDDEN])):
                world = load_scenario("district", [*settings, *more])
                runs = simulate_runs(world, method("cosmo-next"), SEEDS, 1)
                each = [run.episodes[0] for run in runs]
                row[name] = [round(one["success_rate"], 6) for one in each]
                row[f"{name}_cost"] = [round(one["update_cost_rate"], 3) for one in each]
            found.append(row)
            print(f"{nodes} nodes, {share:.0%} of others", flush=True)
    return found


def _gain(row: dict[str, Any]) -> tuple[float, float, float]:
    """Success gained by updates, its 95 % half-width over runs, and successes gained per unit of
    cost: NaN where the gain cannot be told from none.
    """
    differences = np.subtract(row["told"], row["untold"])
    found = interval(differences.tolist())
    own_tasks = (1.0 - row["share"]) * RATE * row["nodes"]  # a second
    cost = float(np.mean(row["told_cost"]))
    clear = abs(found.mean) > found.ci95
    return found.mean, found.ci95, found.mean * own_tasks / cost if clear else np.nan


def table(told: list[dict[str, Any]]) -> str:
    """Every world."""
    rows = []
    for row in told:
        gain, spread, a_unit = _gain(row)
        rows.append(
            (
                str(row["nodes"]),
                f"{row['share']:.0%}",
                f"{np.mean(row['untold']):.3f}",
                f"{np.mean(row['told']):.3f}",
                f"{gain:+.3f} ± {spread:.3f}",
                f"{np.mean(row['told_cost']):.1f}",
                "–" if np.isnan(a_unit) else f"{a_unit:.2f}",
            )
        )
    header = (
        "ENs and SNs", "load of others", "success without updates", "with", "gained",
        "update cost, units/s", "tasks gained a unit",
    )  # fmt: skip
    return markdown(header, rows)


def figure(told: list[dict[str, Any]], path: Path) -> None:
    """Success gained, and tasks gained per unit of cost, over nodes and others."""
    gains = {(row["nodes"], row["share"]): _gain(row) for row in told}
    panels = (
        ("success gained by updates (points)", 0, 100.0, "{:.1f}"),
        ("successful tasks gained per unit of update cost", 2, 1.0, "{:.2f}"),
    )
    with picture(path, (9.2, 3.8), panels=2) as (_, axes):
        for axis, (title, which, scale, text) in zip(axes, panels, strict=True):
            values = np.array([[scale * gains[n, s][which] for n in NODES] for s in SHARES])
            axis.imshow(np.nan_to_num(values), cmap="viridis", origin="lower", aspect="auto")
            for (y, x), value in np.ndenumerate(values):
                bright = np.nan_to_num(value) > 0.6 * np.nanmax(values)
                label = "–" if np.isnan(value) else text.format(value)
                axis.text(x, y, label, ha="center", va="center", color="k" if bright else "w")
            axis.set_xticks(range(len(NODES)), [f"{n} × {n}" for n in NODES])
            axis.set_yticks(range(len(SHARES)), [f"{share:.0%}" for share in SHARES])
            axis.set_xlabel("ENs × SNs")
            axis.set_ylabel("load of others, in bursts")
            axis.set_title(title, fontsize=9)
