"""What is measured for docs/next.md finds its place there, and the page is what its data say."""

from itertools import product

import numpy as np
import polars
import pytest
from doc_pages import DOCS, docs_module

from cosmo.study import load_plan, load_study
from cosmo.study.statistics import summarise
from cosmo.study.store import Study

SHOWN = ("success_rate", "decision_accuracy", "update_cost_rate", "net_utility_per_task")


@pytest.fixture(scope="module")
def next_page():
    return docs_module("next_page")


def _some_study():
    """Every point of the plan, with numbers at random."""
    plan, random = load_plan(DOCS / "plans" / "next.toml"), np.random.default_rng(0)
    axes = {(scenario, name): rest for scenario, name, *rest in plan.axes()}
    rows = []
    for scenario, arrivals, rate, name in plan.points():
        swept = axes.get((scenario.name, name), (None, None, None))
        for seed, number in product(range(3), range(2)):
            point = (scenario.name, arrivals, rate, name, seed, number)
            rows.append((*point, *random.random(len(SHOWN)), *swept))
    columns = ("scenario", "arrivals", "rate", "method", "seed", "episode", *SHOWN)
    schema = [*columns, "swept", "sweep", "sweep_value"]
    metrics = polars.DataFrame(rows, schema=schema, orient="row", infer_schema_length=None)
    return Study(DOCS, plan, {}, metrics, polars.DataFrame())


def test_everything_that_is_compared_is_shown(next_page, tmp_path):
    drawn = docs_module("drawn")
    study, papers = _some_study(), load_study(DOCS / "data" / "paper")
    page = next_page.page(study, summarise(papers.metrics))
    for name, text in page.items():
        lines = [line for line in text.splitlines() if "–" in line]
        assert lines == [], name
    assert page["best"].count("\n") == 1 + 14
    assert page["trade"].count("\n") == 1 + 7
    own = study.metrics.filter(
        polars.col("sweep").is_null(), scenario="shared-sn", arrivals="poisson", rate=80.0
    )
    mean = own.filter(method="cosmo-next/shared-sn")["success_rate"].mean()
    [line, *_] = [
        line
        for line in page["shared-sn"].split("poisson:")[1].splitlines()
        if line.startswith("| `cosmo-next/shared-sn`")
    ]
    assert line.startswith(f"| `cosmo-next/shared-sn` | {mean:.3f} ±")
    drawn.trade(next_page.trade_points(study.metrics), tmp_path / "trade.png", columns=2)
    assert (tmp_path / "trade.png").stat().st_size > 10_000


def test_the_page_is_what_its_data_say(next_page):
    study = load_study(DOCS / "data" / "next")
    assert study.plan == load_plan(DOCS / "plans" / "next.toml")
    pages = next_page.pages(study, summarise(load_study(DOCS / "data" / "paper").metrics))
    assert set(pages) == {"next.md", "results/next.md"}
    for page, parts in pages.items():
        text = (DOCS / page).read_text()
        for name, part in parts.items():
            assert f"<!-- {name} -->\n\n{part}\n\n<!-- end -->" in text, (page, name)
