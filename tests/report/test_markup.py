"""Text of others stays text: in templates, in Markdown, in LaTeX, and on the page in a browser."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import polars
import pytest
from browsers import open_page, opened_browser
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from small import small_plan

from cosmo.report import markup, page, tables
from cosmo.report.table import Column, Table
from cosmo.report.tables import results_of
from cosmo.report.write import write_report, write_tables
from cosmo.study import LocalExecutor, conduct, load_study
from cosmo.study.statistics import bounds, summarise, with_paper
from slow import wait_until

BOOM = "window.attacked=1"
ATTACKS = (
    "@@DATA@@",
    "@@PLOTLY@@",
    "@@JS@@",
    f"</script><script>{BOOM}</script>",
    f"</title><script>{BOOM}</script>",
    "<!--<script>",
    "<!-- ",
    "]]>",
    f"<svg/onload={BOOM}>",
    f"<img src=x onerror={BOOM}>",
    f'" onmouseover="{BOOM}" x="',
    f"<iframe srcdoc='<script>parent.{BOOM}</script>'>",
    f"<a href='javascript:{BOOM}'>here</a>",
    "<a href='https://example.invalid'>there</a>",
    f"![a](x) [here](javascript:{BOOM}) *b* __c__",
    "<b>bold</b> &lt; &amp; &#60;",
    "%{x} %{customdata[0]}",
    "$\\frac$ and $x^2$",
    "a | b `c` \\ \\| d",
    "__proto__",
    "constructor",
    "two\nlines\u2028and\u2029more",
)


# Methods are in the registry or have a colon, so that these two can only be names of other things.
METHODS = [text for text in ATTACKS if text not in ("__proto__", "constructor")]


def test_what_is_put_into_a_template_is_not_looked_at():
    values = {"A": "@@B@@ @@A@@", "B": "@@A@@ \\1 \\g<0>"}
    assert markup.filled("@@A@@ - @@B@@ - @@A@@", values) == (
        "@@B@@ @@A@@ - @@A@@ \\1 \\g<0> - @@B@@ @@A@@"
    )


IN_A_TABLE = {"table", "thead", "tbody", "tr", "th", "td", "code"}


class _Parts(HTMLParser):
    """The elements of a document, its links, and the text of each cell and paragraph."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.texts = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.attributes += attributes
        if tag in ("th", "td", "p"):
            self.texts.append("")

    def handle_data(self, text):
        if self.texts:
            self.texts[-1] += text


def _rendered(text):
    """Markdown as a browser gets it, from a renderer that lets HTML through."""
    return _Parts(MarkdownIt("commonmark", {"html": True}).enable("table").render(text))


def _one_line(text):
    return " ".join(text.split())


@given(st.lists(st.text() | st.sampled_from(ATTACKS), min_size=1, max_size=4))
def test_cells_of_markdown_are_text(row):
    columns = tuple(Column(text, is_code=place % 2 == 1) for place, text in enumerate(row))
    found = _rendered(Table("", columns, (tuple(row),)).markdown())
    assert found.tags <= IN_A_TABLE
    assert found.attributes == []
    cells = [_one_line(text) for text in row]
    if not any("\x00" in cell for cell in cells):
        assert [_one_line(text) for text in found.texts] == [*cells, *cells]


@given(st.text() | st.sampled_from(ATTACKS))
def test_a_paragraph_of_markdown_is_text(text):
    found = _rendered(f"So {markup.in_markdown(text)} it is")
    assert found.tags == {"p"}
    assert found.attributes == []


def test_tables_of_every_format_are_text():
    attack = f"<img src=x onerror={BOOM}>"
    table = Table(attack, (Column(attack),), ((attack,),))
    assert _Parts(table.html()).tags == {"table", "tr", "th", "td"}
    assert _rendered(tables.together([table, table])).tags <= {
        "p",
        *["table", "thead", "tbody", "tr", "th", "td"],
    }
    assert "_" not in table.latex("x").replace("\\_", "")
    assert table.as_data()["rows"] == [[attack]]  # the page sets it as text


@given(st.text())
def test_latex_has_no_commands_but_ours(text):
    found = markup.in_tex(text)
    for known in (*markup._TEX.values(), "--"):
        found = found.replace(known, "")
    assert not set("\\{}#$%&_~^") & set(found)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A small one, of methods that need no training."""
    folder = tmp_path_factory.mktemp("study") / "small"
    conduct(small_plan(("all-local", "all-offload")), folder, LocalExecutor())
    return load_study(folder)


def _written(study, attack, folder):
    """A page with every attack as a method and a scenario, one as the plan's name."""
    [one, *_] = study.metrics.partition_by("method")
    metrics = polars.concat(
        one.with_columns(method=polars.lit(text), scenario=polars.lit(where))
        for text in METHODS
        for where in (ATTACKS[0], attack)
    )
    plan = study.plan.model_copy(update={"name": attack, "description": f"{attack} {attack}"})
    attacked = replace(study, plan=plan, metrics=metrics.unique(maintain_order=True))
    summary = with_paper(summarise(attacked.metrics), plan)
    page.write_page(attacked, summary, bounds(study.plan), [], folder / "report.html")
    return folder / "report.html"


@pytest.mark.parametrize("attack", ATTACKS)
def test_names_are_text_in_every_markdown_file(study, tmp_path, attack):
    [one, two], focus = study.metrics.partition_by("method"), f"{attack} {attack}"
    metrics = polars.concat([one.with_columns(method=polars.lit(focus)), two])
    metrics = metrics.with_columns(scenario=polars.lit(attack))
    plan = study.plan.model_copy(update={"focus": focus})
    named = replace(study, metrics=metrics, plan=plan)
    results = results_of(named, with_paper(summarise(metrics), plan), attack)
    written = write_tables(results, tmp_path, "", "")
    assert {path.name for path in written} >= {"verdict.md", "gains.md", "paired.md"}
    for path in written:
        found = _rendered(path.read_text())
        assert found.tags <= {"p", *IN_A_TABLE}, path
        assert found.attributes == []


@pytest.fixture(scope="module")
def browser():
    with opened_browser() as driver:
        yield driver


def _text(browser, selector):
    return browser.execute_script(
        "return document.querySelector(arguments[0]).textContent", selector
    )


@pytest.mark.parametrize("attack", ATTACKS)
def test_no_text_becomes_anything_else_in_a_browser(study, browser, tmp_path, attack):
    open_page(browser, _written(study, attack, tmp_path))
    assert browser.execute_script("return window.attacked") is None
    assert _text(browser, "h1") == f"CoSMO: {attack}"
    assert _text(browser, "title") == f"CoSMO: {attack}"
    assert _text(browser, "#subtitle") == f"{attack} {attack}"
    chips = "return [...document.querySelectorAll('#methods button')].map(b => b.textContent)"
    assert browser.execute_script(chips) == METHODS
    options = "return [...document.querySelectorAll('#scenario option')].map(o => o.textContent)"
    assert attack in browser.execute_script(options)
    # Charts: no links, and texts as they are (a line break is a space there).
    foreign = "return document.querySelectorAll('.chart a, main iframe, main img').length"
    assert browser.execute_script(foreign) == 0
    shown = browser.execute_script(
        "return [...document.querySelectorAll('#bars td:nth-child(2)')].map(t => t.textContent)"
    )
    assert {_squeezed(text) for text in shown} == {_squeezed(text) for text in METHODS}
    assert browser.get_log("browser") == []


def _squeezed(text):
    return re.sub(r"\s", "", text)


def test_the_policy_stops_what_is_not_the_pages_own(study, browser, tmp_path):
    open_page(browser, _written(study, "x", tmp_path))
    browser.execute_script(
        "window.stopped = [];"
        "document.addEventListener('securitypolicyviolation',"
        " (event) => window.stopped.push(event.effectiveDirective));"
        "const script = document.createElement('script');"
        f"script.textContent = '{BOOM}';"
        "document.body.append(script);"
        f"document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"{BOOM}\">"
        f'<button id="bad" onclick="{BOOM}">bad</button>\');'
        "document.getElementById('bad').click();"
        "fetch('https://example.invalid/').catch(() => 0);"
    )
    expected = {"script-src-elem", "script-src-attr", "img-src", "connect-src"}
    stopped = "return window.stopped"
    wait_until(lambda: expected <= set(browser.execute_script(stopped)), "all is stopped")
    assert browser.execute_script("return window.attacked") is None
    browser.get_log("browser")  # what was stopped is written there


_POLICY = """
import numpy as np
from cosmo import Dispatcher, Method
class X(Method, Dispatcher):
    'X.'
    def dispatcher(self, setting):
        return self
    def decide(self, tasks):
        return np.zeros(len(tasks), int)
"""


@pytest.mark.parametrize("name", [f"<svg onload={BOOM}>", "@@DATA@@", "a|b `$\\frac$`"])
def test_files_of_any_name_are_reported(browser, tmp_path, name):
    path = tmp_path / f"{name}.py"
    path.write_text(_POLICY)
    spec = f"{path}:X"
    plan = small_plan((spec, "all-local"), rates=[120.0], name=name, description=name)
    assert not conduct(plan, tmp_path / "study", LocalExecutor()).failed
    written = write_report(load_study(tmp_path / "study"), tmp_path / "out")
    open_page(browser, written.page)
    assert browser.execute_script("return window.attacked") is None
    assert browser.execute_script(
        "return document.querySelector('#methods button').textContent"
    ) == (spec)
    [comparison] = [path for path in written.tables if path.name == "comparison.md"]
    assert spec in {text.strip() for text in _rendered(comparison.read_text()).texts}
    assert browser.get_log("browser") == []
