"""Frame time of the map in a headless browser, by software alone, and the playground's answers.

    python benchmarks/map_frames.py [--small]

A frame is drawn and read back, so that all of its pixels are there: medians and 95th percentiles
in ms of frames over an episode, against a frame of the screen (16.7 ms). An answer is the time from
a moved slider to the first picture of its world, 20 moves. Needs Chromium with chromedriver.
"""

import secrets
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

import uvicorn

sys.path.insert(0, str(Path(__file__).parents[1] / "docs"))
from gallery import browser, opened

from cosmo.control import method
from cosmo.report.page import write_episodes
from cosmo.report.recording import record
from cosmo.scenario import load
from cosmo.web.playground import playground_application
from cosmo.web.server import listening
from cosmo.workload import episode

SCREEN_MS = 1000.0 / 60.0
_FRAMES = """
const player = document.getElementById('map').player;
const pen = document.getElementById('map-a').getContext('2d');
return [...Array(arguments[0]).keys()].map((k) => {
  const start = performance.now();
  const time = 300 + 2 * k, view = player.views[0], { film } = view;
  view.map.draw(film.at(time), { belief: film.sends ? (sn) => film.belief(0, sn, time) : null });
  pen.getImageData(0, 0, 1, 1);
  return performance.now() - start;
});
"""


def spread(values: list[float]) -> str:
    """Median and 95th percentile."""
    last = statistics.quantiles(values, n=20)[-1]
    return f"median {statistics.median(values):.1f} ms, p95 {last:.1f} ms"


def frames(name: str, count: int) -> None:
    """One method on one site."""
    scenario = load(name, ("episode.window_ms=1000", "episode.warmup_ms=100"))
    found = record(scenario, method("power-of-d"), episode(scenario, 0, 0), 0)
    with tempfile.TemporaryDirectory() as folder, browser() as driver:
        page = Path(folder) / "map.html"
        write_episodes([{"title": name, "method": name, **found}], "CoSMO", page)
        opened(driver, page)
        taken = driver.execute_script(_FRAMES, count)
    share = statistics.median(taken) / SCREEN_MS
    print(f"{name}: {len(taken)} frames, {spread(taken)}; {share:.2f} of a frame of the screen")


def answers(moves: int) -> None:
    """The playground on `campus`, two methods."""
    token, found = secrets.token_urlsafe(), listening()
    port = found.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        made = playground_application(port, token, Path(folder))
        server = uvicorn.Server(
            uvicorn.Config(made, log_level="critical", timeout_graceful_shutdown=1)
        )
        thread = threading.Thread(target=server.run, kwargs={"sockets": [found]})
        thread.start()
        taken = []
        try:
            with browser() as driver:
                driver.get(f"http://127.0.0.1:{port}/{token}/")
                number = 0
                for move in range(moves + 1):  # the first one is the beginning
                    while (
                        now := int(
                            driver.execute_script("return document.body.dataset.played || 0")
                        )
                    ) <= number:
                        time.sleep(0.02)
                    number = now
                    told = "return document.getElementById('map').playground.answered"
                    taken.append(float(driver.execute_script(told)))
                    time.sleep(1.0)
                    driver.execute_script(
                        "const s = document.getElementById('slide-load'); s.value = arguments[0];"
                        "s.dispatchEvent(new Event('input'));", 100 + 5 * move,
                    )  # fmt: skip
        finally:
            server.should_exit = True
            thread.join()
    most = max(taken[1:])
    print(f"playground, campus: {moves} moves, {spread(taken[1:])}, at most {most:.0f} ms")


if __name__ == "__main__":
    small = "--small" in sys.argv
    for each in ("campus", "district"):
        frames(each, 30 if small else 300)
    answers(4 if small else 20)
