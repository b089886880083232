"""The same workloads on several engines: what differs, in a sentence, a table and on the page."""

from pathlib import Path

import polars
import pytest
from browsers import open_page, opened_browser

from cosmo.cli.comparison import print_results
from cosmo.measure import METRICS
from cosmo.report.engines import engine_differences, engine_table, sentences
from cosmo.report.write import write_report
from cosmo.study import plan_checked
from cosmo.study.store import NO_CURVES, Study, made_here
from cosmo.study.units import result_table

METHODS = ["priced-books", "self-tracking"]


def _row(scenario, method, episode, success, **more):
    key = {"scenario": scenario, "arrivals": "poisson", "rate": 220.0, "method": method}
    blank = dict.fromkeys(METRICS)
    return {**key, "seed": 100, "episode": episode, **blank, "success_rate": success, **more}


def _study(rows, **plan):
    made = plan_checked(
        {"name": "x", "engines": ["embedded", "live"], "arrivals": ["poisson"], "rates": [220.0],
         "seeds": [100], "episodes": 6, "compare": [{"methods": METHODS}], **plan}
    )  # fmt: skip
    none = polars.DataFrame(schema=NO_CURVES)
    return Study(Path(), made, made_here(), result_table(rows), none)


def _rows():
    """Six episodes; live is 0.01 lower, and 0.02 higher in half of them."""
    found = []
    for episode in range(6):
        machine = {"timer_late_ms_p99": 0.1 * episode, "decision_ms_p99": 0.2, "fallbacks": 1.0}
        higher = 0.02 * (episode % 2)
        found += [
            _row("paper", METHODS[0], episode, 0.90, update_cost_rate=2.0),
            _row("paper-live", METHODS[0], episode, 0.89, update_cost_rate=3.0, **machine),
            _row("paper", METHODS[1], episode, 0.80),
            _row("paper-live", METHODS[1], episode, 0.80 + higher, **machine),
        ]
    return found


def test_engines_are_compared_on_equal_workloads():
    priced, tracking = engine_differences(_study(_rows()))
    assert (priced.engines, priced.scenario, priced.method) == (
        ("embedded", "live"), "paper", "priced-books"
    )  # fmt: skip
    assert priced.success == pytest.approx((0.90, 0.89))
    assert priced.cost == (2.0, 3.0)
    assert priced.difference == pytest.approx((-0.01, -0.01, -0.01))
    assert tracking.difference.mean == pytest.approx(0.01)
    assert tracking.difference.low < tracking.difference.mean < tracking.difference.high
    assert priced.machine == pytest.approx(
        {"timer_late_ms_p99": 0.5, "decision_ms_p99": 0.2, "fallbacks": 1.0}  # the worst
    )


def test_an_episode_that_one_engine_lacks_is_left_out():
    rows = [row for row in _rows() if (row["scenario"], row["episode"]) != ("paper-live", 5)]
    priced, tracking = engine_differences(_study(rows))
    assert tracking.success == pytest.approx((0.80, 0.80 + 0.02 * 2 / 5))
    assert not priced.difference.known  # of five pairs
    assert engine_differences(_study(rows, engines=["embedded"])) == []


def test_values_of_a_sweep_are_compared_each_with_its_own():
    sweep = {"field": "live.slower", "values": [1.0, 5.0]}
    rows = [
        _row(f"{world} live.slower={slower}", "priced-books", 0, success)
        for slower, pair in ((1.0, (0.9, 0.8)), (5.0, (0.9, 0.89)))
        for world, success in zip(("paper", "paper-live"), pair, strict=True)
    ]
    found = engine_differences(_study(rows, compare=[{"methods": METHODS[:1], "sweep": sweep}]))
    assert [each.difference.mean for each in found] == pytest.approx([-0.1, -0.01])


def test_the_verdict_on_engines():
    [sentence] = sentences(engine_differences(_study(_rows())))
    assert sentence == (
        "Success on live minus embedded: +0.000 on average of 2 comparisons, at most -0.010"
        " [-0.010, -0.010] (priced-books, poisson, 220 tasks/s); 2 of 2 95 % intervals do not"
        " contain 0."
    )
    table = engine_table(engine_differences(_study(_rows())))
    told = dict(zip(table.header, table.texts()[0], strict=True))
    assert told["success"] == "0.900 → 0.890"
    assert told["update cost (units/s)"] == "2.0 → 3.0"
    assert (told["timer lateness (ms)"], told["fallbacks"]) == ("0.50", "1")


def test_what_commands_print_of_engines_fits(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    print_results(_study(_rows()))
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    [line] = [line for line in out.splitlines() if "-0.010 [" in line and line[:3] == " > "]
    assert line.split()[1:5] == ["priced-books", "220", "0.900", "0.890"]
    assert line.rstrip().endswith("-0.010 [-0.010, -0.010]")


def test_the_page_compares_engines(tmp_path):
    write_report(_study(_rows()), tmp_path)
    with opened_browser() as browser:
        open_page(browser, tmp_path / "report.html")
        told = browser.execute_script("return document.getElementById('engines').textContent")
        assert "Success on live minus embedded: +0.000 on average" in told
        drawn = browser.execute_script("return document.getElementById('chart-engines').data")
        assert [each["name"] for each in drawn[1:]] == ["embedded", "live"]
        assert drawn[1]["x"] == [0.9, 0.8]
        assert drawn[2]["x"] == pytest.approx([0.89, 0.81])
        shown = (
            "const box = document.querySelector('details[data-table=engines]'); box.open = true;"
            "box.dispatchEvent(new Event('toggle'));"
            "return [...box.querySelectorAll('tr:last-child td')].map(cell => cell.textContent)"
        )
        assert "0.800 → 0.810" in browser.execute_script(shown)
        assert browser.get_log("browser") == []
