"""Writes the measured parts of the docs anew: `make docs`.

A measured part of a page stands between `<!-- NAME -->` and `<!-- end -->`.
"""

import re
from pathlib import Path

import polars

from cosmo.control import METHODS
from cosmo.study import compare
from cosmo.study.figures import success_figure

DOCS = Path(__file__).parent
RATES = (120.0, 160.0, 200.0, 220.0, 240.0, 280.0, 320.0)


def fixed_policies(table: polars.DataFrame) -> str:
    """The paper's five points beside ours."""
    rows = table.filter(polars.col("paper").is_not_null(), metric="success_rate")
    lines = [
        f"| `{row['method']}` | {row['rate']:g} | {row['paper']:.3f} "
        f"| {row['mean']:.3f} ± {row['ci95']:.3f} | {row['mean'] - row['paper']:+.3f} |"
        for row in rows.sort("method", "rate").iter_rows(named=True)
    ]
    header = ["| method | tasks/s | paper | ours | difference |", "|---|---|---|---|---|"]
    return "\n".join([*header, *lines])


def fill(page: str, name: str, text: str) -> None:
    """Put a measured part into its place."""
    path = DOCS / page
    pattern = re.compile(rf"(<!-- {name} -->\n).*?(\n<!-- end -->)", re.DOTALL)
    before = path.read_text()
    assert pattern.search(before), f"{page} has no place for {name}"
    path.write_text(pattern.sub(lambda match: match[1] + "\n" + text + "\n" + match[2], before))


if __name__ == "__main__":
    comparison = compare(
        "paper", [], ("deterministic", "poisson"), RATES, tuple(METHODS), seed=0, episodes=15
    )
    success_figure(comparison, DOCS / "images" / "success.png")
    fill("reproduction.md", "fixed-policies", fixed_policies(comparison.table))
