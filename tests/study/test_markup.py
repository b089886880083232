"""Text of others stays text: in templates, in Markdown, in LaTeX, and on the page in a browser."""

import json
import re
from dataclasses import replace

import polars
import pytest
from browsers import open_page, opened_browser
from hypothesis import given
from hypothesis import strategies as st
from small import small_plan

from cosmo.study import LocalExecutor, conduct, load, markup, page, tables
from cosmo.study.report import write_report
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


@given(st.text())
def test_data_in_a_script_cannot_leave_it(text):
    found = markup.in_script({text: [text]})
    assert not set("<>&\u2028\u2029") & set(found)
    assert json.loads(found) == {text: [text]}


@given(st.lists(st.text(), min_size=1))
def test_cells_of_markdown_come_back(row):
    line = tables.markdown(row, [row]).split("\n")[2]
    assert markup.cells(line) == [" ".join(text.split()) for text in row]


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
    conduct(small_plan(("all-local", "all-offload")), folder, LocalExecutor(1))
    return load(folder)


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
    assert not conduct(plan, tmp_path / "study", LocalExecutor(1)).failed
    written = write_report(load(tmp_path / "study"), tmp_path / "out")
    open_page(browser, written.page)
    assert browser.execute_script("return window.attacked") is None
    assert browser.execute_script(
        "return document.querySelector('#methods button').textContent"
    ) == (spec)
    [comparison] = [path for path in written.tables if path.name == "comparison.md"]
    rows = [line for line in comparison.read_text().splitlines() if "X" in line]
    assert rows
    assert all(markup.cells(row)[0] == f"`{spec}`" for row in rows)
    assert browser.get_log("browser") == []
