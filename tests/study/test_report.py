"""The report: files, and the page in a real browser."""

import json
import re
from dataclasses import replace

import polars
import pytest
from browsers import open_page, opened_browser
from small import small_plan

from cosmo.study import LocalExecutor, conduct, load, page, tables
from cosmo.study.report import write_report
from cosmo.study.statistics import summarise, with_paper


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Of a small study of the paper's kind."""
    folder = tmp_path_factory.mktemp("report")
    plan = small_plan(
        ("cosmo", "cosmo-flat", "aoi-threshold", "self-tracking", "all-local"),
        arrivals=["deterministic", "poisson"],
    )
    assert not conduct(plan, folder / "study", LocalExecutor(2)).failed
    return write_report(load(folder / "study"), folder / "out")


def test_tables_of_the_page_keep_scenarios_apart(report):
    study = load(report.page.parent.parent / "study")
    other = study.metrics.with_columns(
        scenario=polars.lit("other"), success_rate=polars.col("success_rate") * 0.5
    )
    both = replace(study, metrics=polars.concat([study.metrics, other]))
    summary = with_paper(summarise(both.metrics), study.plan)
    made = {table["title"]: table["rows"] for table in page._tables(both, summary)}
    title = "Gate ablation (mean ± standard deviation over runs)"
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


def test_tables_are_there_in_markdown_and_latex(report):
    names = {path.name for path in report.tables}
    assert {"ablation.md", "ablation.tex", "ablation-detailed.tex", "gains.md", "t90.md"} <= names
    text = next(path for path in report.tables if path.name == "ablation.md").read_text()
    assert "| poisson | 320 | cosmo-flat |" in text
    assert re.search(r"\d\.\d{3} ± \d\.\d{3}", text)


def test_scenarios_of_any_name_have_files_of_their_own(report, tmp_path):
    study = load(report.page.parent.parent / "study")
    names = ["v1.5", "v1.7", "a/b", "a-b", "../../out", "/etc/x", "..", "x" * 300, "paper"]
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
    study = load(report.page.parent.parent / "study")
    again = write_report(study, tmp_path / "again")
    for one, other in zip(
        [report.page, *report.figures, *report.tables],
        [again.page, *again.figures, *again.tables],
        strict=True,
    ):
        assert one.read_bytes() == other.read_bytes(), one.name


def test_the_page_is_one_file_that_asks_for_nothing(report):
    text = report.page.read_text(encoding="utf-8")
    own = re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)  # Plotly's source has links
    assert not re.search(r"""(src|href)=["'](?!#)""", own)
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])
    assert [each["title"].split(",")[0] for each in data["recordings"]] == [
        "cosmo", "aoi-threshold", "self-tracking"
    ]  # fmt: skip
    tasks = data["recordings"][0]["tasks"]
    assert len({len(column) for column in tasks.values()}) == 1
    assert set(tasks["outcome"]) <= {"TP", "FP", "TN", "FN", "undecided"}


@pytest.fixture(params=["1280,900", "400,800"], ids=["desk", "phone"])
def browser(request):
    with opened_browser(request.param) as driver:
        yield driver


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


def test_the_page_in_a_real_browser(report, browser, tmp_path):
    open_page(browser, report.page)

    def traces(chart):
        return browser.execute_script(
            "return document.getElementById(arguments[0]).data.map(t => t.name)", chart
        )

    def count(selector):
        return len(browser.find_elements("css selector", selector))

    # All charts are drawn, nothing is wider than the screen.
    for chart in ("load", "bars", "pareto", "training", "viewer"):
        assert count(f"#chart-{chart} .main-svg") > 0, chart
    assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")

    # Methods can be switched off and on, metric and load can be chosen.
    assert "cosmo" in traces("chart-load")
    _click(browser, '[data-method="cosmo"]')
    assert "cosmo" not in traces("chart-load")
    assert "cosmo" not in traces("chart-pareto")
    _click(browser, '[data-method="cosmo"]')
    assert "cosmo" in traces("chart-load")
    assert "fluid bound" in traces("chart-load")
    _choose(browser, "metric", "update_cost_rate")
    assert "fluid bound" not in traces("chart-load")
    _choose(browser, "arrivals", "deterministic")
    _choose(browser, "rate", "120")
    title = browser.execute_script("return document.getElementById('chart-bars').layout.title.text")
    assert title == "update cost (units/s) at 120 tasks/s, deterministic"

    # The episode viewer: another method, zoom, and what the agent saw.
    assert "what the EN believes" in traces("chart-viewer")
    browser.execute_script(
        "document.getElementById('chart-viewer').emit('plotly_click', {points: [{customdata: 3}]})"
    )
    card = browser.find_element("id", "task").text
    assert "action values: local" in card
    assert "SN: status (" in card  # the numbers that were sent, and nothing made of them
    assert "believed" not in card
    assert "true backlog" in card
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
    assert "what the EN believes" not in traces("chart-viewer")  # self-tracking has no status

    # Light and dark.
    theme = "return document.documentElement.dataset.theme"
    before = browser.execute_script(theme)
    _click(browser, "#theme")
    assert browser.execute_script(theme) != before
    assert count("#tables-body table") >= 4
    assert browser.save_screenshot(str(tmp_path / "page.png"))
    assert browser.get_log("browser") == []


def test_engines_stand_side_by_side():
    rows = [
        {"scenario": world, "arrivals": "poisson", "rate": rate, "method": name,
         "metric": "success_rate", "mean": mean}
        for world, rate, name, mean in (
            ("paper", 120.0, "all-local", 0.25), ("paper-ns3", 120.0, "all-local", 0.26),
            ("paper", 320.0, "all-local", 0.06), ("paper-ns3", 320.0, "all-local", 0.05),
            ("paper", 120.0, "cosmo", 0.99), ("paper-ns3", 120.0, "cosmo", 0.98),
        )
    ]  # fmt: skip
    table = tables.engines(polars.DataFrame(rows), "poisson").splitlines()
    assert table[0] == "| method | 120 | 320 |"
    assert table[2:] == [
        "| `all-local` | 0.250 → 0.260 | 0.060 → 0.050 |",
        "| `cosmo` | 0.990 → 0.980 | – |",
    ]
