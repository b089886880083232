"""The page in plain words: site, workload, terms, methods, the paper's claim."""

import re

import polars
import pytest
from browsers import open_page, opened_browser
from small import SHORT

import cosmo
from cosmo import load
from cosmo.control import METHODS
from cosmo.report import explained
from cosmo.report.page_data import page_data
from cosmo.report.paper_claim import claim_sentences
from cosmo.report.tables import Results, results_of
from cosmo.report.verdict import rate_text, verdict
from cosmo.report.write import known_words, write_tables
from cosmo.study.statistics import bounds, with_paper
from cosmo.workload import episode, write_trace
from scenarios import SMALL_WILD


def _data(comparison):
    study = comparison.study
    return page_data(study, with_paper(comparison.summary(), study.plan), bounds(study.plan))


def test_site_and_workload_are_in_words_with_numbers_by_hand():
    methods = ["self-tracking", "all-local", "full-information"]
    found = cosmo.compare("campus", methods, rates=[60], seeds=[0], episodes=1, settings=SHORT)
    [site] = _data(found)["sites"]
    scenario = load("campus")
    assert (site["ens"], site["sns"]) == (scenario.en.count, scenario.sn.count) == (3, 2)
    assert site["links"] == [(en, sn) for en in range(3) for sn in range(2)]
    # (0.1 + 1.2) / 2 Mcycles: 650000 / 18000 = 36 ms at ENs, 650000 / 27000 = 24 ms at SNs.
    assert site["site"][0] == (
        "3 edge nodes, each with 2 slots (tasks run at a time); an average task takes 36 ms there."
    )
    assert "takes 24 ms there" in site["site"][1]
    # 3 · 2 · 18000 + 2 · 4 · 27000 = 324000 cycles/ms, 498 tasks of 650000 cycles in a second.
    assert site["site"][3] == "All nodes together can finish about 498 average tasks a second."
    assert site["workload"][0].startswith(
        "60 tasks a second come to each edge node (180 in all) at random times (Poisson); that is"
        " 36 % of what all nodes together can do."
    )
    assert site["workload"][1].startswith("A task brings 20 to 50 kB of input")
    # 60 tasks/s at three ENs, 1.5 s without the first 0.3 s.
    assert site["workload"][2].endswith(
        " Every method plays 1 run of 1 episode: about 216 measured tasks."
    )


def test_every_method_of_the_registry_has_a_sentence_and_a_reference():
    study = cosmo.compare(
        "paper", ["all-local"], rates=[120], seeds=[0], episodes=1, settings=SHORT
    ).study  # fmt: skip
    names = [*METHODS, "periodic-37", "periodic:interval_ms=5", "mine.py:Mine"]
    for told in explained.methods(study, names):
        assert len(told["summary"]) > 15, told
        assert told["reference"] not in ("", "own"), told
    told = {each["method"]: each for each in explained.methods(study, names)}
    assert told["periodic:interval_ms=5"]["summary"].endswith("Here interval_ms = 5.")
    assert told["mine.py:Mine"]["reference"] == "from mine.py"
    assert told["aov-gap"]["reference"] == "a baseline of the paper"
    assert told["aov-gap/estimate"]["reference"].startswith("aov-gap with a stronger rule")


def test_intervals_stay_within_what_a_metric_can_be():
    from cosmo.report.page_data import mean_text

    assert mean_text("update_cost_rate", 4.5, 8.1, 3) == "4.5 (0.0 to 12.6)"
    assert mean_text("success_rate", 0.999, 0.003, 3) == "99.9 % (99.6 to 100.0)"
    assert mean_text("success_rate", 0.9, 0.003, 3) == "90.0 ± 0.3 %"
    assert mean_text("net_utility_per_task", 1.0, 3.0, 3) == "1.0 ± 3.0"
    assert mean_text("success_rate", None, None, 0) == "–"


def _results(values, rates=(320.0,), arrivals="poisson", paper=0.6):
    rows = [
        {"scenario": "paper", "arrivals": arrivals, "rate": rate, "method": name, "seed": seed,
         "episode": 0, "success_rate": value + 0.001 * seed, "update_cost_rate": 1.0,
         "net_utility_per_task": 1.0}
        for name, value in values.items() for rate in rates for seed in range(6)
    ]  # fmt: skip
    summary = polars.DataFrame({"paper": [paper]})
    return Results(polars.DataFrame(rows), summary, polars.DataFrame(), "cosmo", lambda _: False)


def test_the_papers_claim_is_held_against_what_was_played():
    # The text of the paper says +24.5 % at 320 tasks/s, Poisson.
    held = claim_sentences(_results({"cosmo": 0.623, "aov-gap": 0.5, "priced-books": 0.7}))
    assert "finishes 24.5 % more tasks in time than the best of its six baselines" in held[0]
    assert "it is +24." in held[0]
    assert held[0].endswith("against aov-gap: the claim holds, by about what the paper says.")
    assert held[1] == (
        "The paper's six baselines are all-local, all-offload, local-until-full, aoi-threshold,"
        " aov-gap, aoci-online."
    )
    assert held[2].startswith("One method that the paper did not compare with is stronger here")
    less = claim_sentences(_results({"cosmo": 0.55, "aov-gap": 0.5}))
    assert less[0].endswith("the claim holds, by less than the paper says.")
    assert len(less) == 2  # nothing is stronger
    lost = claim_sentences(_results({"cosmo": 0.4, "aov-gap": 0.5}))
    assert lost[0].endswith("the claim does not hold here.")
    # Of one deterministic load the paper's text says nothing: it is not held against a mean.
    other = claim_sentences(_results({"cosmo": 0.6, "aov-gap": 0.5}, arrivals="deterministic"))
    assert other[0].endswith("it is ahead at this load, too.")
    elsewhere = _results({"cosmo": 0.6, "aov-gap": 0.5}, paper=None)
    assert claim_sentences(elsewhere) == []  # another world: the paper says nothing of it


def test_the_papers_baselines_are_marked_in_the_list_of_methods():
    marked = [
        name
        for name, kind in METHODS.items()
        if kind.reference.startswith("a baseline of the paper")
    ]
    assert marked == [
        "all-local", "all-offload", "local-until-full", "aoi-threshold", "aov-gap", "aoci-online"
    ]  # fmt: skip


def test_an_upper_limit_is_told_in_a_sentence():
    results = _results({"cosmo": 0.6, "aov-gap": 0.4995}, rates=(220.0, 320.0))
    found = verdict(results.metrics, "cosmo", lambda name: name == "aov-gap")
    table = {"scenario": "paper", "arrivals": "poisson", "rate": [220.0, 320.0, 400.0]}
    table |= {"fluid_bound": [1.0, 0.8, 0.1], "clairvoyant_bound": [None, 0.75, 0.1]}
    limits = polars.DataFrame(table)
    marks = "Yardsticks, which know the true state of every node, have: aov-gap 50.2 %."
    told = found.upper_limit(limits)  # of its own loads; the other bound is not known at both
    assert told.startswith("Upper limit: no method can have more than 90.0 % of the tasks in time")
    assert "fluid bound" in told
    assert told.endswith(marks)
    known = limits.with_columns(clairvoyant_bound=polars.Series([0.95, 0.75, 0.1]))
    assert "no method can have more than 85.0 % of the tasks" in found.upper_limit(known)
    enough = found.upper_limit(limits.with_columns(fluid_bound=polars.lit(1.0)))
    assert enough == f"Upper limit: the capacity of the nodes would do for all tasks. {marks}"
    assert found.upper_limit(limits.clear()) == marks


@pytest.mark.parametrize(
    ("seeds", "told"),
    [
        ([0], "Episodes of each method that are the trace as it was recorded: 1 of 2. The other 1"),
        ([1, 2], "Episodes of each method that are the trace as it was recorded: 0 of 4."),
    ],
)
def test_only_the_run_of_seed_0_has_a_trace_as_it_was_recorded(tmp_path, seeds, told):
    write_trace(tmp_path / "t.csv", episode(load("paper", SHORT), 0, 0).tasks, 1)
    compared = cosmo.compare(
        "paper", ["never"], trace=tmp_path / "t.csv", seeds=seeds, episodes=2, settings=SHORT
    )
    [site] = _data(compared)["sites"]
    assert told in " ".join(site["workload"])


def test_the_number_of_messages_is_beside_their_cost():
    found = cosmo.compare(
        "paper", ["periodic", "random"], rates=[120], seeds=[0], episodes=1, settings=SHORT
    )
    shown = _data(found)["summary"]
    rows = zip(shown["method"], shown["metric"], shown["mean"], strict=True)
    mean = {(method, metric): value for method, metric, value in rows}
    assert mean["periodic", "status_rate"] > 0.0
    # A raw state has four numbers of half a unit each.
    assert mean["periodic", "update_cost_rate"] == pytest.approx(
        2.0 * mean["periodic", "status_rate"], rel=1e-4
    )


def test_the_page_explains_itself_in_a_browser(tmp_path):
    cosmo.compare("campus", ["self-tracking", "power-of-d"], rates=[60, 120], seeds=range(2),
                  episodes=1, settings=SHORT).page(tmp_path / "page.html")  # fmt: skip
    with opened_browser("1200,900") as browser:
        open_page(browser, tmp_path / "page.html")
        text = browser.find_element("id", "methods-told").text
        assert "edge node (EN)" in text
        assert "update unit" in text
        assert "The workload" in browser.find_element("id", "explained").text
        drawn = browser.execute_script(
            "return [...document.querySelectorAll('.site text')].map(e => e.textContent)"
        )
        assert {"EN 0", "EN 2", "SN 0", "SN 1"} <= set(drawn)
        assert "EN 3" not in drawn
        told = browser.find_element("id", "methods-list").text
        assert "Mitzenmacher" in told
        assert "status messages (messages/s)" in _text(browser, "bars")
        assert "Upper limit" in _text(browser, "claims")
        assert re.match(r"Success rate: .* More is better\.", _text(browser, "metric-note"))
        assert "per cell" in _text(browser, "bars-title")
        # A task is shown at once, and lines of the SNs differ in more than colour.
        assert _text(browser, "task").startswith("task ")
        lines = browser.execute_script(
            "return document.getElementById('chart-viewer').data.filter(t =>"
            " /^tasks in SN/.test(t.name)).map(t => t.line.dash + ' ' + t.marker.symbol)"
        )
        assert len(lines) == len(set(lines)) == 2
        # Outcomes are in words: an abbreviation had another sense in a metric.
        whole = browser.execute_script("return document.querySelector('main').textContent")
        assert "needless rejections" in whole
        assert re.search(r"\b(FN|FP|TN|TP)\b", whole) is None
        assert browser.get_log("browser") == []


def _text(browser, name):
    return browser.find_element("id", name).text


def test_page_and_tables_say_what_nodes_knew(tmp_path):
    few = [*SMALL_WILD, "episode.window_ms=700", "episode.warmup_ms=200"]
    found = cosmo.compare("wild", ["random", "all-local"], seeds=[0], episodes=1, settings=few)
    [site] = _data(found)["sites"]
    assert "true demands differ by a lognormal factor (sigma 0.5)" in " ".join(site["site"])
    fails = "Each SN fails after 0.15 s on average"
    assert fails in " ".join(site["site"])
    results = results_of(found.study, with_paper(found.summary(), found.study.plan), "wild")
    known = known_words(found.study, "wild")
    tables = write_tables(results, tmp_path, "", known)
    assert tables
    assert all(fails in path.read_text() for path in tables if path.suffix == ".md")


def test_a_method_of_the_authors_is_described_by_its_own_words(tmp_path):
    policy = tmp_path / "mine.py"
    policy.write_text(
        "import numpy as np\nfrom cosmo import Dispatcher, Method\n\n"
        "class Mine(Method, Dispatcher):\n"
        "    '''Local, <b>always</b>.\n\n    More.'''\n"
        "    def dispatcher(self, site):\n        return self\n"
        "    def decide(self, tasks):\n        return np.zeros(len(tasks), int)\n"
    )
    name = f"{policy}:Mine"
    compared = cosmo.compare(
        "paper", [name, "all-local"], rates=[120], seeds=[0], episodes=1, settings=SHORT
    )
    mine, other = _data(compared)["methods"]
    assert mine["summary"] == "A method of the author of this study: Local, <b>always</b>."
    assert other["summary"].startswith("Runs")
    policy.write_text("class Mine(:")  # what cannot be read is not described
    assert _data(compared)["methods"][0]["summary"] == "A method of the author of this study."


def test_the_load_of_a_trace_is_told_in_percent_and_rates_are_rounded_once(tmp_path):
    rows = "".join(f"{8 * k},{k % 4},35000,720000,120\n" for k in range(125))  # 1 s
    trace = tmp_path / "t.csv"
    trace.write_text("time_ms,ue,input_bytes,cycles,deadline_ms\n" + rows)
    compared = cosmo.compare("paper", ["all-local"], seeds=[0], episodes=1, trace=trace)
    [site] = _data(compared)["sites"]
    # 125 tasks of 720000 cycles a second on 144000 cycles/ms.
    assert site["workload"][0].endswith("that is 62 % of what all nodes together can do.")
    demand = "of 35 kB and 0.72 million processor cycles, with deadlines of 120 ms;"
    assert demand in site["workload"][0]
    assert rate_text(156.25) == "156.3"
    assert rate_text(117.612) == "117.6"
