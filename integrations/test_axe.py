"""axe-core on every kind of page and every screen: nothing keeps people from using them.

Here and not among the tests of the page, as it takes a minute.
"""

from contextlib import contextmanager
from pathlib import Path

import pytest
from admin_ports import admin_ports, en_text, sn_text
from axe import axe_script, findings
from browsers import open_page, opened_browser
from pages import PAGES, SCREENS, on_screen
from served import served

from cosmo.web.playground import playground_application
from cosmo.web.watching import watching_application
from slow import wait_until


@pytest.mark.parametrize("made", PAGES, ids=lambda made: made.__name__)
def test_axe_finds_nothing_serious_on_any_screen(made, tmp_path):
    script = axe_script()
    made(tmp_path / "page.html")
    with opened_browser("1400,900") as browser:
        open_page(browser, tmp_path / "page.html")
        browser.execute_script(script)
        browser.execute_script(
            "for (const each of document.querySelectorAll('details')) each.open = true"
        )
        for width, theme in SCREENS:
            on_screen(browser, width, theme)
            serious = [each for each in findings(browser) if each[0] in ("serious", "critical")]
            assert serious == [], f"{width} px, {theme}"


@contextmanager
def _playground():
    with served(lambda port, token: playground_application(port, token, Path("exports"))) as url:
        yield url


@contextmanager
def _live():
    with admin_ports(en_text("e0"), sn_text("s0")) as nodes:
        addresses = [*(f"127.0.0.1:{node.port}" for node in nodes), "127.0.0.1:1"]
        with served(lambda port, token: watching_application(port, token, addresses, 0.5)) as url:
            yield url


@pytest.mark.parametrize(
    ("page", "shown"), [(_playground, "played"), (_live, "read")], ids=["playground", "live"]
)
def test_axe_finds_nothing_serious_on_served_pages(page, shown):
    """Their scripts come from the server alone, so axe's is put in by the browser's own door."""
    script = axe_script()
    with page() as url, opened_browser("1400,900") as browser:
        browser.get(url)
        state = f"return document.body.dataset.{shown}"
        wait_until(lambda: browser.execute_script(state), "something is shown")
        browser.execute_script(script)
        for width, theme in SCREENS:
            shape = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", shape)
            scheme = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
            browser.execute_cdp_cmd("Emulation.setEmulatedMedia", scheme)
            now = "return document.documentElement.dataset.theme"
            wait_until(
                lambda wanted=theme, now=now: browser.execute_script(now) == wanted, "the theme"
            )
            serious = [each for each in findings(browser) if each[0] in ("serious", "critical")]
            assert serious == [], f"{width} px, {theme}"
            wide = "return document.documentElement.scrollWidth"
            assert browser.execute_script(wide) <= width, f"{width} px: nothing sticks out"
