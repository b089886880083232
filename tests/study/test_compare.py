"""Comparing from Python: names and objects, tables, verdicts, a page."""

import re

import numpy as np
import polars
import pytest
from small import SHORT

import cosmo
from cosmo import Dispatcher, InputError, Method
from cosmo.study.verdict import verdict


class Mine(Method, Dispatcher):
    """<b>Local</b> while there is room."""

    def dispatcher(self, site):
        return self

    def decide(self, tasks):
        return np.where(tasks.local_room, 0, 1)


@pytest.fixture(scope="module")
def comparison():
    return cosmo.compare(
        "paper",
        [Mine(), "local-until-full", "self-tracking", "full-information"],
        rates=[220, 320],
        seeds=range(2),
        episodes=2,
        settings=SHORT,
    )


def test_objects_and_names_play_the_same_workloads(comparison):
    frame = comparison.to_frame()
    assert comparison.methods == ["Mine", "local-until-full", "self-tracking", "full-information"]
    assert frame.height == 4 * 2 * 2 * 2
    numbers = polars.exclude("method")
    mine = frame.filter(method="Mine").select(numbers)
    assert mine.equals(frame.filter(method="local-until-full").select(numbers))  # the same rule
    single = cosmo.simulate("paper", "self-tracking", 1, 2, rate=320, settings=SHORT)
    rows = frame.filter(method="self-tracking", rate=320.0, seed=1)
    assert rows["success_rate"].to_list() == [each["success_rate"] for each in single.episodes]
    assert repr(single).startswith("<Simulation of 2 episode(s): success 0.")


def test_the_verdict_is_about_the_focus_and_sets_yardsticks_apart(comparison):
    told = comparison.verdict()
    assert told.sentence().startswith("Mine is ")
    assert told.place == 2
    assert [each.method for each in told.others if each.yardstick] == ["full-information"]
    assert [each.method for each in told.rivals] == ["self-tracking", "local-until-full"]
    lead = told.rivals[0].ahead
    rows = comparison.paired().filter(method="self-tracking")
    assert lead.mean == pytest.approx(rows["difference"].mean())
    assert lead.low <= lead.mean <= lead.high
    assert repr(comparison).startswith("<Comparison of 4 methods: Mine is 2nd of 3 methods: self")
    other = comparison.verdict("self-tracking").sentence()
    assert other.startswith("self-tracking wins of 3 methods: it succeeds in 0.")
    with pytest.raises(InputError, match="focus = 'mine': is not compared, did you mean Mine"):
        comparison.paired("mine")


def _metrics(values):
    rows = [
        {"scenario": "s", "arrivals": "poisson", "rate": 1.0, "method": name, "seed": seed,
         "episode": 0, "success_rate": value, "update_cost_rate": 2.0, "net_utility_per_task": 1.0}
        for name, runs in values.items()
        for seed, value in enumerate(runs)
    ]  # fmt: skip
    return polars.DataFrame(rows)


def test_what_the_sentence_says_by_hand():
    def sentence(values):
        return verdict(_metrics(values), "a", lambda name: name == "y").sentence()

    won = sentence({"a": [0.6, 0.7], "b": [0.5, 0.6], "y": [0.9, 0.9]})
    assert won == (
        "a wins of the two: it succeeds in 0.650 of the tasks, +0.100 [+0.100, +0.100] ahead of b"
        " (0.550), with 2.0 update units/s against 2.0."
    )
    open_ = sentence({"a": [0.6, 0.5], "b": [0.5, 0.6], "c": [0.1, 0.1]})
    assert open_.startswith("a and b cannot be told apart: they succeed in 0.550 and 0.550")
    one = sentence({"a": [0.6], "b": [0.5]})
    assert "(one episode, no interval)" in one
    assert "there is no rival" in sentence({"a": [0.6], "y": [0.9]})
    assert verdict(_metrics({"b": [0.5]}), "a", lambda name: False) is None


def test_the_page_and_the_notebook_show_names_as_text(comparison, tmp_path):
    text = comparison.page(tmp_path / "page.html").read_text()
    assert re.search(r'<p id="verdict">Mine is 2nd of 3 methods', text)
    table = comparison._repr_html_()
    assert table.startswith("<p><b>Mine is 2nd")
    assert table.count("<tr>") == 5
    figure = comparison.plot("net_utility_per_task")
    assert [panel.get_title() for panel in figure.axes] == ["poisson"]
    with pytest.raises(InputError, match="metric = 'x': must be one of success_rate"):
        comparison.plot("x")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("papr", ["random"]), "scenario = 'papr'.*did you mean paper"),
        (("paper", ["radnom"]), "did you mean random"),
        (("paper", "random"), "must be a list"),
        (("paper", ["random", "random"]), "'random' is there twice"),
        (("paper", [3]), "must be a method's name"),
    ],
)
def test_bad_input_is_one_line(arguments, line):
    with pytest.raises(InputError, match=line) as found:
        cosmo.compare(*arguments)
    assert "\n" not in str(found.value)


def test_a_run_twice_is_refused():
    with pytest.raises(InputError, match=r"seeds = .* must be different"):
        cosmo.compare("paper", ["never"], seeds=[1, 1])
