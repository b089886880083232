"""The page of `cosmo live run` in a browser."""

from browsers import open_page, opened_browser

from cosmo.live.bed.plan import load_bed_plan
from cosmo.live.bed.results import standings
from cosmo.study.live_page import write_live_page
from live.beds import row


def test_the_page_has_verdict_chart_and_tables(tmp_path):
    odd = "cosmo:checkpoint=<b>a</b>"
    plan = load_bed_plan("held-out", [f'methods=["priced-books", "{odd}"]', "name=<i>x</i>"])
    rows = [row(live=0.88), row(odd, 0.5, valid=False)]
    path = tmp_path / "live.html"
    write_live_page(plan, standings(plan, rows), rows, path)
    with opened_browser() as browser:
        open_page(browser, path)
        told = browser.execute_script("return document.body.textContent")
        assert "the largest difference is -0.020 (priced-books, 220 tasks/s" in told
        assert "CoSMO on real nodes: <i>x</i>" in told
        assert "fifo = 10" in told
        drawn = browser.execute_script("return document.getElementById('chart-live').data")
        assert [each["name"] for each in drawn[1:]] == ["simulator", "live"]
        assert drawn[1]["x"] == [0.9, 0.9]
        assert drawn[2]["x"] == [0.88, 0.5]
        assert drawn[2]["marker"]["symbol"] == ["circle", "circle-open"]
        links = "return [...document.querySelectorAll('nav a')].map(a => a.textContent)"
        assert browser.execute_script(links) == ["Simulator against live", "Tables", "About"]
        shown = (
            "const box = document.querySelector('details[data-table=live]'); box.open = true;"
            "box.dispatchEvent(new Event('toggle'));"
            "return [...box.querySelectorAll('tr:last-child td')].map(cell => cell.textContent)"
        )
        cells = browser.execute_script(shown)
        assert cells[0] == "cosmo"
        assert cells[7] == "no verdict"
        inside = (
            "const [box, drawn] = ['#chart-live', '#chart-live .main-svg'].map(name =>"
            " document.querySelector(name).getBoundingClientRect());"
            "return drawn.height <= box.height + 1"
        )
        assert browser.execute_script(inside)
        assert browser.get_log("browser") == []
