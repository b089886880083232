"""axe-core on every kind of page and every screen: nothing keeps people from using them.

Here and not among the tests of the page, as it takes a minute.
"""

import pytest
from axe import axe_script, findings
from browsers import open_page, opened_browser
from pages import PAGES, SCREENS, on_screen


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
