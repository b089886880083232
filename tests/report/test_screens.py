"""The pages on every screen, light and dark, by keyboard, and without any network."""

import base64
import re

import pytest
from browsers import open_page, opened_browser
from pages import PAGES, SCREENS, compare_page, on_screen
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from slow import wait_until


@pytest.fixture(scope="module", params=PAGES, ids=lambda made: made.__name__)
def page(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("screens") / "page.html"
    request.param(path)
    return path


@pytest.fixture(scope="module")
def browser():
    with opened_browser("1400,900") as driver:
        yield driver


@pytest.fixture(scope="module")
def opened(page, browser):
    open_page(browser, page)
    browser.execute_script("document.documentElement.style.scrollBehavior = 'auto'")
    return browser


_WIDTH = "return document.scrollingElement.scrollWidth"
# Text and controls that go beyond the screen, but inside of boxes that scroll by themselves.
_BEYOND = """
const wide = (e) => e.scrollWidth > e.clientWidth + 1 && !e.matches("select");
return [...document.querySelectorAll("h1, h2, h3, p, a, button, select, #bars td, summary, .card")]
  .filter((e) => e.offsetParent && !e.closest(".scroll, .js-plotly-plot"))
  .filter((e) => { const b = e.getBoundingClientRect(), screen = document.documentElement;
    return b.right > screen.clientWidth + 1 || b.left < -1 || e.localName !== "a" && wide(e); })
  .map((e) => e.outerHTML.slice(0, 100));
"""
# Pairs of texts or controls that cover one another, on the page and inside of each chart.
_COVERED = """
const pairs = (elements, most) => elements.flatMap((one, k) => elements.slice(k + 1)
  .filter((other) => !one.contains(other) && !other.contains(one))
  .filter((other) => { const a = one.getBoundingClientRect(), b = other.getBoundingClientRect();
    return Math.min(a.right, b.right) - Math.max(a.left, b.left) > most
      && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > most; })
  .map((other) => [one, other].map((e) => (e.textContent || e.outerHTML).trim().slice(0, 60))));
const shown = (e) => e.getClientRects().length && e.getBoundingClientRect().width > 0;
const words = "h1, h2, h3, p, nav a, button, select, summary, .card, .chart";
const inside = ".annotation-text, .xtick text, .ytick text, .legendtext, .xtitle, .ytitle";
const outer = [...document.querySelectorAll(words)].filter((e) => !e.closest(".modebar"));
const charts = [...document.querySelectorAll(".js-plotly-plot")];
return [...pairs(outer.filter(shown), 1), ...charts.flatMap((chart) =>
  pairs([...chart.querySelectorAll(inside)].filter(shown), 4))];
"""


def test_nothing_is_clipped_or_covered_on_any_screen(opened):
    for width, theme in SCREENS:
        on_screen(opened, width, theme)
        where = f"{width} px, {theme}"
        wait_until(  # charts follow the screen a moment later than the page
            lambda width=width: opened.execute_script(_WIDTH) <= width,
            f"it is no wider than {where}",
        )
        assert opened.execute_script(_BEYOND) == [], where
        assert opened.execute_script(_COVERED) == [], where
        dead = opened.execute_script(
            "return [...document.querySelectorAll('nav a')].filter(a =>"
            " !document.querySelector(a.getAttribute('href')).offsetHeight).length"
        )
        assert dead == 0, where
    assert opened.get_log("browser") == []


_BROKEN_RANKS = """
const lines = (cell) => { const range = document.createRange(); range.selectNodeContents(cell);
  return new Set([...range.getClientRects()].map((each) => Math.round(each.top))).size; };
const ranks = [...document.querySelectorAll("#bars tr:not(.head) td:first-child")];
return [ranks.length, ranks.filter((cell) => lines(cell) > 1).map((cell) => cell.textContent)];
"""


def test_a_rank_of_two_digits_stays_on_one_line(tmp_path, browser):
    compare_page(tmp_path / "page.html")
    open_page(browser, tmp_path / "page.html")
    for width, theme in SCREENS:
        on_screen(browser, width, theme)
        ranks, broken = browser.execute_script(_BROKEN_RANKS)
        assert ranks > 9
        assert broken == [], f"{width} px, {theme}"


def test_what_is_trained_for_all_loads_is_called_so(opened):
    note = opened.execute_script("return document.getElementById('training-note').textContent")
    lines = "One line a run: all loads, 120 tasks/s, 320 tasks/s (dark to light)"
    assert note in ("", f"{lines}; solid: cosmo-next, dash: cosmo.")


def test_every_control_is_reached_by_tab_in_order(opened):
    on_screen(opened, 1400, "light")
    controls = opened.execute_script(
        "const all = [...document.querySelectorAll("
        "'a[href], button, input, select, summary, [tabindex]')]"
        ".filter(e => !e.disabled && e.tabIndex >= 0 && e.checkVisibility());"
        "all.forEach((e, k) => { e.dataset.k = k; }); window.reached = [];"
        "document.addEventListener('focusin', (event) => reached.push(event.target.dataset.k));"
        "document.activeElement.blur(); window.scrollTo(0, 0); return all.length;"
    )
    ActionChains(opened).send_keys(Keys.TAB * controls).perform()
    reached = opened.execute_script("return reached.map(Number)")
    assert reached == list(range(controls))


def test_no_request_can_leave_the_page(opened):
    assert opened.execute_script("return performance.getEntriesByType('resource')") == []
    policy = opened.execute_script("return document.querySelector('meta[http-equiv]').content")
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert not re.search(r"https?:|\*|connect-src|'self'", policy)
    refused = opened.execute_async_script(
        "const done = arguments[0]; addEventListener('securitypolicyviolation', (event) =>"
        " done(event.effectiveDirective)); fetch('https://example.invalid').catch(() => {});"
    )
    assert refused == "connect-src"
    told = opened.get_log("browser")  # and nothing else was ever said
    assert all("example.invalid" in each["message"] for each in told)


def test_it_prints_with_all_tables_and_without_controls(opened):
    on_screen(opened, 1400, "light")
    opened.execute_script("window.dispatchEvent(new Event('beforeprint'))")
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        shown = "return [...document.querySelectorAll(arguments[0])].filter(e => e.offsetParent)"
        assert opened.execute_script(shown, ".controls, nav, .chips") == []
        closed = (
            "return [...document.querySelectorAll('#tables-body details')].filter(e => !e.open)"
        )
        assert opened.execute_script(closed) == []
        printed = opened.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"]
    finally:
        opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    pdf = base64.b64decode(printed)
    assert pdf.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) >= 1


def test_a_page_is_small_enough_to_be_sent(page):
    assert page.stat().st_size < 4_000_000
