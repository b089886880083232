"""Takes the pictures of docs/gallery.md from real runs: `make gallery` (minutes).

A small study of methods that need no training is carried out, its report is made, and the report is
opened in a headless Chromium. Numbers and tasks come from fixed seeds; pixels also depend on the
version of Chromium and on the fonts of the machine.

    python docs/gallery.py               # writes docs/images/gallery-*
    python docs/gallery.py REPORT.html   # the same pictures of another report
    python docs/gallery.py map           # the film of the map alone
"""

import io
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from PIL import Image

from cosmo.control import method
from cosmo.report.page import write_episodes
from cosmo.report.recording import record
from cosmo.report.write import write_report
from cosmo.scenario import load
from cosmo.study import LocalExecutor, conduct, load_study, plan_checked
from cosmo.workload import episode

IMAGES = Path(__file__).parent / "images"
PLAN = {
    "name": "gallery",
    "description": "Status methods where the SN also serves others",
    "scenarios": ["shared-sn"],
    "settings": ["episode.window_ms=5000"],
    "arrivals": ["poisson"],
    "rates": [80.0, 120.0, 160.0],
    "seeds": [0, 1, 2],
    "episodes": 2,
    "focus": "aov-gap/estimate",
    "compare": [
        {
            "methods": [
                "aov-gap/estimate", "aoi-threshold/estimate", "aoci-online/estimate", "periodic",
                "never", "prequal", "self-tracking", "full-information",
            ]
        }
    ],
}  # fmt: skip
# The film: a window of this length moves over the episode, from and to these times.
SPAN_MS, FIRST_MS, LAST_MS, FRAMES, FRAME_MS = 800.0, 1000.0, 2600.0, 17, 300
# The film of the map: the herd of the playground, from one time to another.
MAP_SITE = ("en.count=8", "sn.count=4", "workload.rate=140", "episode.window_ms=700",
            "episode.warmup_ms=100")  # fmt: skip
MAP_METHODS = ("aoi-threshold/estimate", "power-of-d")
MAP_FIRST_MS, MAP_LAST_MS, MAP_FRAMES, MAP_FRAME_MS = 300.0, 372.0, 37, 100
MAP_WIDTH = 1000
FILM_WIDTH, FILM_BYTES, PICTURE_BYTES = 800, 600_000, 150_000
PATIENCE_S, TRIES, BLANK = 120.0, 10, 4  # a picture of at most four colours is blank
_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--force-device-scale-factor=1", "--window-size=1000,1200",
)  # fmt: skip
_CHART = "#chart-viewer"


def made_report(folder: Path) -> Path:
    """The page of the study above."""
    progress = conduct(plan_checked(PLAN), folder, LocalExecutor())
    if progress.failed:
        sys.exit(f"gallery: {progress.failed}")
    return write_report(load_study(folder), folder).page


@contextmanager
def browser() -> Iterator[Any]:
    """A headless Chromium; one line if there is none."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        sys.exit("gallery: needs Chromium with chromedriver (Debian: chromium, chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in _FLAGS:
        options.add_argument(flag)
    opened = webdriver.Chrome(options=options, service=Service(driver))
    try:
        yield opened
    finally:
        opened.quit()


def opened(driver: Any, page: Path) -> None:
    """Open a report and wait until its charts are drawn."""
    driver.get(page.resolve().as_uri())
    deadline = time.monotonic() + PATIENCE_S
    while driver.execute_script("return document.body.dataset.ready") != "yes":
        if time.monotonic() > deadline:
            sys.exit(f"gallery: {page} was not drawn within {PATIENCE_S:g} s")
        time.sleep(0.1)
    # A picture must not be taken on the way to what is shown.
    driver.execute_script("document.documentElement.style.scrollBehavior = 'auto'")


def picture(driver: Any, selector: str) -> Image.Image:
    """An element of the page, as it is seen; without a selector, the first screen."""
    found = driver.find_elements("css selector", selector or "body")
    if not found:
        sys.exit(f"gallery: the report has no {selector}")
    from selenium.common.exceptions import TimeoutException

    if selector:  # what is only half on the screen would be cut
        driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", found[0])
    for _ in range(TRIES):
        try:
            png = found[0].screenshot_as_png if selector else driver.get_screenshot_as_png()
            seen = Image.open(io.BytesIO(png)).convert("RGB")
        except TimeoutException:  # the driver waits 10 s, too short for a busy machine
            continue
        if seen.getcolors(BLANK) is None:  # more colours than that
            return seen
        time.sleep(0.5)  # scrolled to, but not painted yet
    sys.exit(f"gallery: no picture of {selector} in {TRIES} tries; is the machine very busy?")


def film(driver: Any) -> list[Image.Image]:
    """The episode viewer, while its window moves over the episode."""
    frames = []
    for number in range(FRAMES):
        start = FIRST_MS + (LAST_MS - FIRST_MS) * number / (FRAMES - 1)
        driver.execute_script(
            "Plotly.relayout(document.querySelector(arguments[0]), {'xaxis.range': arguments[1]})",
            _CHART,
            [start, start + SPAN_MS],
        )
        seen = picture(driver, _CHART)
        frames.append(seen.resize((FILM_WIDTH, seen.height * FILM_WIDTH // seen.width)))
    return frames


def map_page(folder: Path) -> Path:
    """A page with the map of two methods on one workload."""
    scenario = load("campus", MAP_SITE)
    workload, page = episode(scenario, 0, 0), folder / "map.html"
    recordings = [
        {"title": name, "method": name, **record(scenario, method(name), workload, 0)}
        for name in MAP_METHODS
    ]
    write_episodes(recordings, "CoSMO", page)
    return page


def map_film(driver: Any) -> list[Image.Image]:
    """Two maps side by side, while time passes."""
    driver.set_window_size(1240, 900)
    frames = []
    for number in range(MAP_FRAMES):
        time_ms = MAP_FIRST_MS + (MAP_LAST_MS - MAP_FIRST_MS) * number / (MAP_FRAMES - 1)
        driver.execute_script("document.getElementById('map').player.seek(arguments[0])", time_ms)
        seen = picture(driver, "#map-figures")
        frames.append(seen.resize((MAP_WIDTH, seen.height * MAP_WIDTH // seen.width)))
    return frames


def written(name: str, frames: list[Image.Image], limit: int, frame_ms: int = FRAME_MS) -> None:
    """Write a picture (PNG) or a film (WebP) that is no larger than `limit` bytes."""
    path, made = IMAGES / name, io.BytesIO()
    if len(frames) == 1:
        frames[0].quantize(128, dither=Image.Dither.NONE).save(made, "PNG", optimize=True)
    else:
        first, *others = frames
        first.save(
            made, "WEBP", save_all=True, append_images=others, duration=frame_ms, loop=0, quality=50
        )
    size = len(made.getvalue())
    if size > limit:
        sys.exit(f"gallery: {path.name} would have {size} bytes, at most {limit} are allowed")
    path.write_bytes(made.getvalue())
    print(f"{path.name}: {frames[0].width} × {frames[0].height}, {size / 1000:.0f} kB")


def main() -> None:
    """Take all pictures."""
    with tempfile.TemporaryDirectory() as scratch:
        if sys.argv[1:] in ([], ["map"]):
            with browser() as driver:
                opened(driver, map_page(Path(scratch)))
                written("gallery-map.webp", map_film(driver), FILM_BYTES, MAP_FRAME_MS)
        if sys.argv[1:] == ["map"]:
            return
        page = Path(sys.argv[1]) if sys.argv[1:] else made_report(Path(scratch) / "study")
        # A browser each: after a picture of one chart, Chromium may never paint the next.
        with browser() as driver:
            opened(driver, page)
            written("gallery-viewer.webp", film(driver), FILM_BYTES)
        shown = (("page", ""), ("comparison", "#chart-load"), ("cost", "#chart-pareto"))
        for name, chart in shown:
            with browser() as driver:
                opened(driver, page)
                written(f"gallery-{name}.png", [picture(driver, chart)], PICTURE_BYTES)


if __name__ == "__main__":
    main()
