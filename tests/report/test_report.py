"""The report: files, and the page in a real browser."""

import base64
import gzip
import json
import re
from dataclasses import replace

import polars
import pytest
from browsers import open_page, opened_browser
from PIL import Image
from selenium.webdriver.common.keys import Keys
from small import SHORT, small_plan

from cosmo import InputError, compare
from cosmo.measure import METRICS, interval_text
from cosmo.report.page import write_page
from cosmo.report.page_data import page_data
from cosmo.report.write import write_report
from cosmo.study import LocalExecutor, conduct, load_study
from cosmo.study.plan import Compare
from cosmo.study.statistics import bounds, summarise, with_paper
from slow import wait_until


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Of a small study of the paper's kind."""
    folder = tmp_path_factory.mktemp("report")
    plan = small_plan(
        ("cosmo", "cosmo-flat", "aoi-threshold", "self-tracking", "all-local"),
        arrivals=["deterministic", "poisson"],
        episodes=3,  # with two runs enough pairs for intervals
    )
    assert not conduct(plan, folder / "study", LocalExecutor()).failed
    return write_report(load_study(folder / "study"), folder / "out")


def test_tables_of_the_page_keep_scenarios_apart(report):
    study = load_study(report.page.parent.parent / "study")
    other = study.metrics.with_columns(
        scenario=polars.lit("other"), success_rate=polars.col("success_rate") * 0.5
    )
    both = replace(study, metrics=polars.concat([study.metrics, other]))
    summary = with_paper(summarise(both.metrics), study.plan)
    data = page_data(both, summary, bounds(study.plan))
    made = {table["title"]: table["rows"] for table in data["tables"]}
    title = "Hierarchical gate–route ablation (mean ± standard deviation)"
    first, second = made[f"paper: {title}"], made[f"other: {title}"]
    assert len(first) == len(second) > 0
    assert first[0][3] != second[0][3]


def test_every_figure_is_there_in_three_formats(report):
    stems = {path.stem for path in report.figures}
    assert stems == {
        "success", "accuracy", "update-cost", "regret", "pareto", "reward", "ablation-reward"
    }  # fmt: skip
    for path in report.figures:
        head = path.read_bytes()[:200]
        start = {".pdf": b"%PDF", ".png": b"\x89PNG", ".svg": b"<?xml"}[path.suffix]
        assert head.startswith(start)
    with Image.open(next(path for path in report.figures if path.name == "success.png")) as seen:
        assert seen.width == 1320  # two panels of 4.4 inches at 150 dpi


def test_tables_are_there_in_markdown_and_latex(report):
    names = {path.name for path in report.tables}
    assert {"ablation.md", "ablation.tex", "ablation-detailed.tex", "gains.md", "t90.md"} <= names
    text = next(path for path in report.tables if path.name == "ablation.md").read_text()
    assert "| poisson | 320 | cosmo-flat |" in text
    assert re.search(r"\d\.\d{3} ± \d\.\d{3}", text)


def test_scenarios_of_any_name_have_files_of_their_own(report, tmp_path):
    study = load_study(report.page.parent.parent / "study")
    names = ["v1.5", "v1.7", "a/b", "a-b", "../../out", "x" * 300]
    one = study.metrics.filter(arrivals="poisson")
    metrics = polars.concat(one.with_columns(scenario=polars.lit(name)) for name in names)
    out = tmp_path / "deep" / "out"
    left = [out / "figures" / ".success.pdf.ab12cd_e", out / "tables" / ".gains.md.ab12cd_e"]
    for path in left:  # of a killed report
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("half")
    written = write_report(replace(study, metrics=metrics), out)
    drawn = [path for path in written.figures if path.name.startswith("success")]
    assert len(drawn) == len(set(drawn)) == 3 * len(names)
    assert {path.suffix for path in drawn} == {".pdf", ".svg", ".png"}
    compared = [path for path in written.tables if path.name.startswith("comparison")]
    assert len(set(compared)) == len(names)
    everything = {path for path in tmp_path.rglob("*") if path.is_file()}
    assert everything == {written.page, *written.figures, *written.tables}


def test_the_same_study_gives_the_same_bytes(report, tmp_path):
    study = load_study(report.page.parent.parent / "study")
    again = write_report(study, tmp_path / "again")
    for one, other in zip(
        [report.page, *report.figures, *report.tables],
        [again.page, *again.figures, *again.tables],
        strict=True,
    ):
        assert one.read_bytes() == other.read_bytes(), one.name


def packed_part(page, name):
    """What a page has in one of its compressed parts."""
    text = page.read_text(encoding="utf-8")
    letters = re.search(rf'id="{name}">(.*?)</script>', text)[1]
    return json.loads(gzip.decompress(base64.b64decode(letters)))


def test_the_page_is_one_file_that_asks_for_nothing(report):
    text = report.page.read_text(encoding="utf-8")
    assert not re.search(r"""(src|href)=["'](?!#)""", text)
    recordings = packed_part(report.page, "episodes")["recordings"]
    assert [each["method"] for each in recordings] == [
        "cosmo", "cosmo-flat", "aoi-threshold", "self-tracking", "all-local"
    ]  # fmt: skip
    workload = packed_part(report.page, "episodes")["workload"]
    tasks = workload | recordings[0]["tasks"]
    assert len({len(column) for column in tasks.values()}) == 1
    assert set(tasks["outcome"]) <= {"TP", "FP", "TN", "FN", "undecided"}


def test_the_first_sentence_is_about_the_focus(report):
    text = report.page.read_text(encoding="utf-8")
    sentence = re.search(r'<p id="verdict">(.*?)</p>', text)[1]
    assert sentence.startswith("cosmo ")
    assert re.search(r"\(difference \d+\.\d points, 95 % interval \d+\.\d to \d+\.\d\)", sentence)
    assert re.search(r"sends no status, instead of \d+\.\d update units a second", sentence)
    [told] = [path for path in report.tables if path.name == "verdict.md"]
    assert told.read_text().startswith(sentence)


def test_a_study_without_any_learner_has_full_tables(report, tmp_path):
    study = load_study(report.page.parent.parent / "study")
    kept = ["all-local", "self-tracking", "aoi-threshold"]
    metrics = study.metrics.filter(polars.col("method").is_in(kept))
    plan = study.plan.model_copy(
        update={"compare": (Compare(methods=tuple(kept)),), "train": (), "focus": "self-tracking"}
    )
    other = replace(study, plan=plan, metrics=metrics, curves=study.curves.clear())
    summary = with_paper(summarise(metrics), plan)
    data = page_data(other, summary, bounds(plan))
    assert data["focus"] == "self-tracking"
    assert data["verdicts"][0]["sentence"].startswith("self-tracking is best of 3 methods")
    paired = [
        table for table in data["tables"] if table["title"].startswith("Success rate of self")
    ]
    assert {row[1] for row in paired[0]["rows"]} == {"− all-local", "− aoi-threshold"}
    assert {pair["method"] for pair in data["pairs"]} == {"all-local", "aoi-threshold"}
    with pytest.raises(InputError, match="focus = 'slf-tracking': is not compared, did you mean"):
        other.about_method("slf-tracking")


def _click(browser, selector):
    element = browser.find_element("css selector", selector)
    browser.execute_script(
        "arguments[0].scrollIntoView({behavior: 'instant', block: 'center'})", element
    )
    element.click()


def _choose(browser, name, value):
    browser.execute_script(
        "const s = document.getElementById(arguments[0]); s.value = arguments[1];"
        "s.dispatchEvent(new Event('change'));",
        name,
        value,
    )


def _traces(browser, chart):
    return browser.execute_script(
        "return document.getElementById(arguments[0]).data.map(t => t.name)", chart
    )


def _named(browser, chart):
    """Names that are written into a chart."""
    return browser.execute_script(
        "return document.getElementById(arguments[0]).layout.annotations.map(a => a.text)", chart
    )


def _colour(browser, method):
    return browser.execute_script(
        "return document.getElementById('chart-load').data.find(t => t.meta === arguments[0])"
        ".line.color",
        method,
    )


@pytest.fixture(scope="module")
def browser():
    with opened_browser("1400,900") as driver:
        yield driver


def _bars(browser):
    """Header, and of every row its method, the texts of its cells and how wide the interval is."""
    return browser.execute_script(
        "const text = (cells) => [...cells].map((cell) => cell.textContent);"
        "return [text(document.querySelectorAll('#bars th')),"
        " [...document.querySelectorAll('#bars tr[data-method]')].map((row) => [row.dataset.method,"
        " text(row.children), row.querySelector('.bar b').style.width])]"
    )


def test_every_metric_is_reachable_on_a_page_with_one_load(browser, tmp_path):
    methods = ["aoi-threshold", "all-local", "periodic"]
    study = compare(
        "paper", methods, rates=[320], seeds=range(2), episodes=1, settings=SHORT
    ).study  # fmt: skip
    # 0.9954999 is 99.5 %; rounded to three digits first it would be 99.6 %.
    success = polars.when(method="all-local").then(0.9954999).otherwise("success_rate")
    metrics = study.metrics.with_columns(success_rate=success)
    summary = with_paper(summarise(metrics), study.plan)
    one = replace(study, metrics=metrics)
    write_page(one, summary, bounds(study.plan), [], tmp_path / "one.html")
    open_page(browser, tmp_path / "one.html")
    header, rows = _bars(browser)
    assert header[2:] == [
        "success rate", "aoi-threshold minus it (points)", "net utility per task",
        "update cost (units/s)", "status messages (messages/s)",
    ]  # fmt: skip
    assert rows[0][:2] == ["all-local", ["1", "all-local", "99.5 … 99.5 %", *rows[0][1][3:]]]
    assert "another load" not in browser.find_element("id", "pareto-title").text
    assert "Dashed line" not in browser.find_element("id", "load-note").text
    for metric in ("update_cost_rate", "delay_ms_p95"):
        _choose(browser, "metric", metric)
        header, rows = _bars(browser)
        assert header[2] == METRICS[metric].label
        found = summary.filter(metric=metric).sort("mean")  # less is better in both
        for row, (name, cells, width) in zip(found.iter_rows(named=True), rows, strict=True):
            assert name == row["method"]
            text = interval_text(row["mean"], row["ci95"], row["runs"], METRICS[metric].digits)
            assert cells[2] == text
            assert (float(width.rstrip("%")) > 0.0) == (row["ci95"] > 0.0)


def test_the_page_in_a_real_browser(report, browser):
    shape = {"width": 1400, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", shape)
    open_page(browser, report.page)

    # The focus is in colour, the others are grey until they are pressed; bounds are there.
    assert _colour(browser, "cosmo") != _colour(browser, "all-local")
    assert _colour(browser, "aoi-threshold") == _colour(browser, "all-local")
    _click(browser, '#methods [data-method="aoi-threshold"]')
    assert _colour(browser, "aoi-threshold") != _colour(browser, "all-local")
    assert "fluid bound" in _traces(browser, "chart-load")
    assert "frontier" in _traces(browser, "chart-pareto")
    everyone = {"cosmo", "cosmo-flat", "aoi-threshold", "self-tracking", "all-local"}
    assert set(_named(browser, "chart-load")) == everyone
    assert set(_named(browser, "chart-pareto")) == everyone
    _choose(browser, "metric", "update_cost_rate")
    assert "fluid bound" not in _traces(browser, "chart-load")
    _choose(browser, "arrivals", "deterministic")
    _choose(browser, "rate", "120")
    title = browser.find_element("id", "bars-title").text
    assert title == "paper, deterministic, 120 tasks/s: best update cost (units/s) first"
    names = browser.execute_script(
        "return [...document.querySelectorAll('#bars tr[data-method]')].map(r => r.dataset.method)"
    )
    assert set(names) == everyone

    # Every chart is a table as well.
    for name in ("load", "pareto", "training", "viewer"):
        _click(browser, f'[data-table="{name}"] summary')
        rows = f'[data-table="{name}"] tr'
        wait_until(lambda: len(browser.find_elements("css selector", rows)) > 2, rows)  # noqa: B023

    # Nothing in the toolbars sends data anywhere.
    buttons = browser.execute_script(
        "return [...document.querySelectorAll('.modebar-btn')].map(b => b.dataset.title || '')"
    )
    assert buttons
    assert not [text for text in buttons if re.search("cloud|studio|edit|plotly", text.lower())]

    # The episode viewer: what the agent saw, by mouse and by keyboard, zoom, another method.
    browser.execute_script(
        "document.getElementById('chart-viewer').emit('plotly_click', {points: [{customdata: 3}]})"
    )
    card = browser.find_element("id", "task").text
    assert "action values: local" in card
    assert "SN: status (" in card  # the numbers that were sent, and nothing made of them
    assert "believed" not in card
    assert "true backlog" in card
    button = browser.find_element("css selector", '[data-task="1"]')
    button.send_keys(Keys.ENTER)
    assert browser.find_element("id", "task").text != card
    _click(browser, '[data-span="500"]')
    low, high = browser.execute_script(
        "return document.getElementById('chart-viewer').layout.xaxis.range"
    )
    assert high - low == 500
    _click(browser, '[data-step="1"]')
    assert browser.execute_script(
        "return document.getElementById('chart-viewer').layout.xaxis.range[0]"
    ) == pytest.approx(low + 400)
    _choose(browser, "recording", "2")
    assert "what the EN believes" in _traces(browser, "chart-viewer")
    _choose(browser, "recording", "3")
    assert "what the EN believes" not in _traces(browser, "chart-viewer")  # has no status

    theme = "return document.documentElement.dataset.theme"
    before = browser.execute_script(theme)
    _click(browser, "#theme")
    assert browser.execute_script(theme) != before
    assert browser.get_log("browser") == []
