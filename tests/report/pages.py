"""Pages of every kind, made in seconds: of a study, of a comparison, of episodes alone."""

from dataclasses import replace

import numpy as np
import polars
from small import SHORT

import cosmo
from cosmo import Dispatcher, Method, load, method
from cosmo.report.page import write_episodes, write_page
from cosmo.report.recorded import recordings
from cosmo.report.recording import record
from cosmo.study.plan import Compare, OwnTraining
from cosmo.study.statistics import bounds, summarise, with_paper
from cosmo.workload import episode
from slow import wait_until

SCREENS = [(width, theme) for width in (1400, 768, 390) for theme in ("light", "dark")]


class MyPolicyWithALongNameThatHasNoSpaces(Method, Dispatcher):
    """Local while there is room."""

    def dispatcher(self, site):
        return self

    def decide(self, tasks):
        return np.where(tasks.local_room, 0, 1)


def study_page(path):
    """All sections: both arrival processes, the paper's numbers, training."""
    methods = ["aoi-threshold", "all-local", "self-tracking", "full-information"]
    arrivals = ["deterministic", "poisson"]
    compared = cosmo.compare("paper", methods, rates=[120, 320], arrivals=arrivals,
                             seeds=range(2), episodes=1, settings=SHORT)  # fmt: skip
    curves = polars.DataFrame(
        [
            {"scenario": "paper", "method": name, "arrivals": "poisson", "rate": rate,
             "seed": seed, "episode": number, "reward": rate * number}
            for name, rate in (("cosmo-next", 220.0), ("cosmo", 120.0), ("cosmo", 320.0))
            for seed in (0, 1) for number in range(8)
        ]
    )  # fmt: skip
    learners = Compare(methods=(*methods, "cosmo", "cosmo-next"))
    trained = OwnTraining(name="cosmo-next", method="cosmo-next")
    plan = compared.study.plan.model_copy(update={"compare": (learners,), "train": (trained,)})
    study = replace(compared.study, plan=plan, curves=curves)
    summary = with_paper(summarise(study.metrics), study.plan).with_columns(
        paper=polars.lit(0.5), paper_std=polars.lit(None)
    )
    write_page(study, summary, bounds(study.plan), recordings(study), path)


def compare_page(path):
    """A policy of the user's own among more than nine others, for several ENs and SNs."""
    rules = ("all-local", "all-offload", "local-until-full", "random", "self-tracking", "back-off")
    methods = [MyPolicyWithALongNameThatHasNoSpaces(), "aov-gap/estimate", *rules, "in-flight",
               "never", "full-information"]  # fmt: skip
    cosmo.compare("campus", methods, rates=[60, 140], seeds=range(3), episodes=1,
                  settings=SHORT).page(path)  # fmt: skip


def viewer_page(path):
    """Episodes alone, as `cosmo view` shows them."""
    scenario = load("campus", ["episode.window_ms=600", "episode.warmup_ms=100"])
    found = record(scenario, method("aoi-threshold"), episode(scenario, 0, 0), 0)
    write_episodes([{"title": "episode-0.json", "method": "", **found}], "CoSMO", path)


def on_screen(browser, width, theme):
    """As on another screen: the page draws itself again."""
    shape = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", shape)
    scheme = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", scheme)
    drawn = "return document.body.dataset.drawn"
    wait_until(lambda: browser.execute_script(drawn) == f"{width} {theme}", "it is drawn for it")


PAGES = (study_page, compare_page, viewer_page)
