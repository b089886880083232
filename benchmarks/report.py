"""What a report costs: seconds to make it, its size, and how soon a reader sees something.

The study has as many methods and loads as a large one, on the paper's world but without `cosmo`, so
that figures in the paper's own form are not among them. Its numbers are drawn at random: they
change what is written and not how long that takes. The episodes of the viewer are played for real.

python benchmarks/report.py           # 20 methods at 14 loads, 3 runs of 5 episodes
python benchmarks/report.py --keep DIR
"""

import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars

from cosmo import simulate
from cosmo.measure import METRICS
from cosmo.report.write import write_report
from cosmo.study import Study, plan_checked
from cosmo.study.store import NO_CURVES, made_here
from measured import seconds, sized

METHODS = sized(
    [
        "self-tracking", "all-local", "all-offload", "local-until-full", "random", "never",
        "periodic", "periodic:interval_ms=20", "aoi-threshold", "aov-gap", "aoci-online",
        "aoi-threshold/estimate", "aov-gap/estimate", "aoci-online/estimate", "prequal",
        "admission-control", "piggyback", "power-of-d", "priced-books", "full-information",
    ],
    ["self-tracking", "all-local", "aoi-threshold", "full-information"],
)  # fmt: skip
RATES = sized([120.0, 160.0, 200.0, 220.0, 240.0, 280.0, 320.0], [120.0, 320.0])
SEEDS, EPISODES = 3, 5
_PATIENCE_S = 300
_FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--window-size=1400,900")
_PAINTED = (
    "return (performance.getEntriesByName('first-contentful-paint')[0] || {}).startTime || null"
)


def made_up_study(folder: Path) -> Study:
    """A study with random results."""
    plan = plan_checked(
        {
            "name": "large",
            "arrivals": ["deterministic", "poisson"],
            "rates": RATES,
            "seeds": list(range(SEEDS)),
            "episodes": EPISODES,
            "focus": METHODS[0],
            "compare": [{"methods": METHODS}],
        }
    )
    random = np.random.default_rng(0)
    rows: list[dict[str, Any]] = [
        {
            "scenario": "paper", "arrivals": process, "rate": rate, "method": name,
            "seed": seed, "episode": episode,
            **dict(zip(METRICS, random.uniform(size=len(METRICS)).tolist(), strict=True)),
        }
        for process in plan.arrivals
        for rate in RATES
        for name in METHODS
        for seed in plan.seeds
        for episode in range(EPISODES)
    ]  # fmt: skip
    return Study(
        folder, plan, made_here(), polars.DataFrame(rows), polars.DataFrame(schema=NO_CURVES)
    )


def browser() -> Any:
    """A headless Chromium, which ends with its `with` block; None where there is none."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        return None
    from selenium.webdriver import Chrome, ChromeOptions
    from selenium.webdriver.chrome.service import Service

    options = ChromeOptions()
    options.binary_location = chromium
    options.arguments.extend(_FLAGS)
    return Chrome(options, Service(driver))  # named, as Selenium would look for one in the network


def shown_after(driver: Any, page: Path) -> tuple[float, float]:
    """Seconds from opening a page to its first paint, and until all charts are drawn."""
    driver.set_script_timeout(_PATIENCE_S)

    def drawn() -> None:
        driver.get(page.absolute().as_uri())
        driver.execute_async_script(
            "const done = arguments[0], look = () => document.body.dataset.ready === 'yes'"
            " ? done() : setTimeout(look, 10); look();"
        )

    whole = seconds(drawn)
    return driver.execute_script(_PAINTED) / 1000.0, whole


def main() -> None:
    size = f"{len(METHODS)} methods at {2 * len(RATES)} loads, {SEEDS} runs of {EPISODES} episodes"
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(sys.argv[sys.argv.index("--keep") + 1] if "--keep" in sys.argv else scratch)
        study = made_up_study(folder)
        simulate(
            "paper", METHODS[0], seeds=0, episodes=1
        )  # compiles the engine, if that is still to be done
        start = time.process_time()
        taken = seconds(lambda: write_report(study, folder / "report"))
        spent = time.process_time() - start
        page = folder / "report" / "report.html"
        print(f"{size}: made in {taken:.1f} s ({spent:.1f} s of CPU; at most 10)")
        print(f"the page has {page.stat().st_size / 1e6:.2f} MB (at most 5)")
        opened = browser()
        if opened is None:
            print("Chromium is left out: it is not installed here")
            return
        with opened as driver:
            first, whole = shown_after(driver, page)
            print(f"first paint after {first:.2f} s (at most 2), all charts after {whole:.2f} s")


if __name__ == "__main__":
    main()
