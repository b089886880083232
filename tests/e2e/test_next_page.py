"""What is measured for docs/next.md finds its place there."""

import sys
from itertools import product
from pathlib import Path

import numpy as np
import polars
import pytest

from cosmo.scenario import load as load_scenario
from cosmo.study import load
from cosmo.study.statistics import summarise

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def scripts():
    sys.path.insert(0, str(DOCS))
    try:
        import measure_next
        import write_next
    finally:
        sys.path.remove(str(DOCS))
    return measure_next, write_next


def _some_rows(measure):
    """Every point that is compared, with numbers at random."""
    random = np.random.default_rng(0)
    points = []
    for part in measure.compare(Path("/of")):
        [scenario] = part["scenarios"]
        rates = part.get("rates", load_scenario(scenario).workload.rates_of_interest)
        processes = part.get("arrivals", ["deterministic", "poisson"])
        names = [
            name.replace("cosmo-next:checkpoint=/of/", "cosmo-next ") for name in part["methods"]
        ]
        points += product([scenario], processes, rates, names)
    called = ["cosmo-next paper", "cosmo-next paper-mixed", "self-tracking", "priced-books"]
    points += product(["paper"], [measure.STEPS], [measure.STEPPING], called)
    swept = ["shared-sn", "shared-sn-no-books", "shared-sn-raw", "by the clock"]
    called = [*(f"cosmo-next {name}" for name in swept), *measure.SWEPT]
    points += product(["shared-sn"], ["trade"], [0.0, 1.0], called)
    assert len(points) == len(set(points))
    rows = [
        (*point, seed, number, *random.random(4))
        for point, seed, number in product(points, range(3), range(2))
    ]
    return polars.DataFrame(rows, schema=list(measure.KEPT), orient="row")


def test_everything_that_is_compared_is_shown(scripts, tmp_path):
    measure, write = scripts
    papers = load(DOCS / "data" / "paper")
    rows = _some_rows(measure)
    page = write.page(rows, summarise(papers.metrics))
    for name, text in page.items():
        lines = [line for line in text.splitlines() if "–" in line]
        if name == "parts":  # a specialist is at home at one load
            [line] = lines
            assert line.startswith("| a specialist")
            assert line.count("–") == 7
        else:
            assert lines == []
    assert "| 120 → 320 → 120 |" in page["unseen"]
    assert page["best"].count("\n") == 1 + 14
    own = rows.filter(scenario="shared-sn", arrivals="poisson", rate=80.0)
    mean = own.filter(method="cosmo-next shared-sn")["success_rate"].mean()
    [line, *_] = [
        line
        for line in page["shared-sn"].split("poisson:")[1].splitlines()
        if line.startswith("| `cosmo-next`")
    ]
    assert line.startswith(f"| `cosmo-next` | {mean:.3f} ±")
    write.trade_figure(write.trade_points(rows), tmp_path / "trade.png")
    assert (tmp_path / "trade.png").stat().st_size > 10_000


def test_the_page_is_what_its_data_say(scripts):
    _, write = scripts
    rows = polars.read_parquet(DOCS / "data" / "next" / "metrics.parquet")
    text = (DOCS / "next.md").read_text()
    for name, part in write.page(rows, summarise(load(DOCS / "data" / "paper").metrics)).items():
        assert f"<!-- {name} -->\n\n{part}\n\n<!-- end -->" in text, name
