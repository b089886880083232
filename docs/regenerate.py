"""Writes the measured parts of the docs anew: `make docs` (some minutes).

A measured part of a page stands between `<!-- NAME -->` and `<!-- end -->`.
"""

import re
from pathlib import Path

import polars

from cosmo.control import BASELINES, FEATURED
from cosmo.scenario import load
from cosmo.study import Comparison, compare
from cosmo.study.figures import success_figure

DOCS = Path(__file__).parent
PROCESSES = ("deterministic", "poisson")
EPISODES = 15


def comparison_on(source: str) -> Comparison:
    """Every method at every load of interest."""
    rates = load(source).workload.rates_of_interest
    return compare(source, [], PROCESSES, rates, BASELINES, seed=0, episodes=EPISODES)


def fixed_policies(table: polars.DataFrame) -> str:
    """The paper's five points beside ours."""
    fixed = ("all-local", "all-offload", "local-until-full")
    rows = table.filter(
        polars.col("paper").is_not_null(), polars.col("method").is_in(fixed), metric="success_rate"
    )
    lines = [
        f"| `{row['method']}` | {row['rate']:g} | {row['paper']:.3f} "
        f"| {row['mean']:.3f} ± {row['ci95']:.3f} | {row['mean'] - row['paper']:+.3f} |"
        for row in rows.sort("method", "rate").iter_rows(named=True)
    ]
    header = ["| method | tasks/s | paper | ours | difference |", "|---|---|---|---|---|"]
    return "\n".join([*header, *lines])


def update_costs(table: polars.DataFrame) -> str:
    """The paper's update costs of the freshness baselines beside ours."""
    rows = table.filter(polars.col("paper").is_not_null(), metric="update_cost_rate")
    lines = [
        f"| `{row['method']}` | {row['arrivals']} | {row['rate']:g} | {row['paper']:.2f} "
        f"| {row['mean']:.2f} ± {row['ci95']:.2f} | {row['mean'] / row['paper'] - 1:+.0%} |"
        for row in rows.sort("method", "arrivals", "rate").iter_rows(named=True)
    ]
    header = "| method | arrivals | tasks/s | paper | ours | difference |"
    return "\n".join([header, "|---|---|---|---|---|---|", *lines])


def matrix(table: polars.DataFrame, process: str, metric: str, digits: int) -> str:
    """A row a method, a column a load; mean ± 95 % half-width."""
    here = table.filter(arrivals=process, metric=metric)
    rates = here["rate"].unique(maintain_order=True).to_list()
    lines = ["| method | " + " | ".join(f"{rate:g}" for rate in rates) + " |"]
    lines.append("|---" * (1 + len(rates)) + "|")
    for (name,), rows in here.group_by("method", maintain_order=True):
        cells = [
            "–" if mean is None else f"{mean:.{digits}f} ± {half:.{digits}f}"
            for mean, half in rows.select("mean", "ci95").iter_rows()
        ]
        lines.append(f"| `{name}` | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def all_metrics(table: polars.DataFrame) -> str:
    """Success, accuracy, update cost and regret for both arrival processes."""
    shown = (
        ("success_rate", "Success rate", 3),
        ("decision_accuracy", "Decision accuracy", 3),
        ("update_cost_rate", "Update cost (units/s)", 1),
        ("decision_regret", "Decision regret", 3),
    )
    return "\n\n".join(
        f"#### {title}, {process}\n\n{matrix(table, process, metric, digits)}"
        for metric, title, digits in shown
        for process in PROCESSES
    )


def fill(page: str, name: str, text: str) -> None:
    """Put a measured part into its place."""
    path = DOCS / page
    pattern = re.compile(rf"(<!-- {name} -->\n).*?(\n<!-- end -->)", re.DOTALL)
    before = path.read_text()
    assert pattern.search(before), f"{page} has no place for {name}"
    path.write_text(pattern.sub(lambda match: match[1] + "\n" + text + "\n" + match[2], before))


if __name__ == "__main__":
    paper, shared = comparison_on("paper"), comparison_on("shared-sn")
    success_figure(paper, DOCS / "images" / "success.png", FEATURED)
    success_figure(shared, DOCS / "images" / "shared-sn.png", FEATURED)
    fill("reproduction.md", "fixed-policies", fixed_policies(paper.table))
    fill("reproduction.md", "update-costs", update_costs(paper.table))
    fill("baselines.md", "paper", all_metrics(paper.table))
    fill("baselines.md", "shared-sn", all_metrics(shared.table))
