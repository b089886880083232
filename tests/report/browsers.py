"""The page in a real browser, where there is one."""

import shutil
from contextlib import contextmanager

import pytest

from slow import LIMIT_S, wait_until

_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip


@contextmanager
def opened_browser(size="1280,900"):
    """A headless Chromium, driven by Selenium; the test is skipped if there is none."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    chromedriver = shutil.which("chromedriver")
    if chromium is None or chromedriver is None:
        pytest.skip("no Chromium with chromedriver on this machine (.ci/run installs them)")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*_FLAGS, f"--window-size={size}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(chromedriver))
    driver.set_script_timeout(LIMIT_S)
    driver.set_page_load_timeout(LIMIT_S)
    try:
        yield driver
    finally:
        driver.quit()


def open_page(browser, page):
    """Open a report and wait until its charts are drawn."""
    browser.get(page.as_uri())
    ready = "return document.body.dataset.ready"
    wait_until(lambda: browser.execute_script(ready) == "yes", "the page is drawn")
