"""Comparing from Python: names and objects, tables, verdicts, a page."""

import re
from typing import ClassVar

import numpy as np
import polars
import pytest
from small import SHORT

import cosmo
from cosmo import Dispatcher, InputError, Method
from cosmo.device import chosen_device
from cosmo.report.tables import standings_table
from cosmo.report.verdict import Standing, Verdict, verdict
from cosmo.workload import episode, write_trace


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
        episodes=3,
        settings=SHORT,
    )


class Placed(Mine):
    """Notes on which device rules are played while it is made."""

    seen: ClassVar[list[str]] = []

    def dispatcher(self, site):
        self.seen.append(chosen_device())
        return self


@pytest.mark.parametrize("device", ["cpu", "gpu", None])
def test_the_device_is_chosen_for_one_comparison(device, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.delenv("COSMO_DEVICE", raising=False)
    Placed.seen.clear()
    found = cosmo.compare(
        "paper", [Placed, "local-until-full"], seeds=0, episodes=1, settings=SHORT, device=device
    )
    assert set(Placed.seen) == {device or "cpu"}
    assert chosen_device() == "cpu"  # as before
    mine, rule = found.to_frame().partition_by("method")
    assert mine.drop("method").equals(rule.drop("method"))  # wherever it was played


def test_objects_and_names_play_the_same_workloads(comparison):
    frame = comparison.to_frame()
    assert comparison.methods == ["Mine", "local-until-full", "self-tracking", "full-information"]
    assert frame.height == 4 * 2 * 2 * 3
    numbers = polars.exclude("method")
    mine = frame.filter(method="Mine").select(numbers)
    assert mine.equals(frame.filter(method="local-until-full").select(numbers))  # the same rule
    single = cosmo.simulate(
        "paper", "self-tracking", seeds=1, episodes=3, rates=320, settings=SHORT
    )
    rows = frame.filter(method="self-tracking", rate=320.0, seed=1)
    assert rows["success_rate"].to_list() == [each["success_rate"] for each in single.episodes]
    assert repr(single).startswith("<Simulation of 3 episode(s): success 0.")


def test_the_verdict_is_about_the_focus_and_sets_yardsticks_apart(comparison):
    told = comparison.verdict()
    assert told.sentence().startswith("Mine is 2nd of 3 methods: with it ")
    assert told.place == 2
    assert [each.method for each in told.others if each.yardstick] == ["full-information"]
    assert [each.method for each in told.rivals] == ["self-tracking", "local-until-full"]
    lead = told.rivals[0].ahead
    rows = comparison.paired().filter(method="self-tracking")
    assert lead.mean == pytest.approx(rows["difference"].mean())
    assert lead.low <= lead.mean <= lead.high
    assert repr(comparison).startswith("<Comparison of 4 methods: Mine is 2nd of 3 methods: with")
    other = comparison.verdict("self-tracking").sentence()
    assert other.startswith("self-tracking is best of 3 methods: with it ")
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

    won = sentence({"a": [0.6, 0.7] * 3, "b": [0.5, 0.6] * 3, "y": [0.9, 0.9] * 3})
    assert won == (
        "a is the better of the two methods: with it 65.0 % of the tasks are in time; b, its only"
        " rival, manages 55.0 % (difference 10.0 points, 95 % interval 10.0 to 10.0) and sends 2.0"
        " update units a second instead of 2.0."
    )
    lost = sentence({"a": [0.59, 0.60] * 3, "b": [0.98, 0.99] * 3, "c": [0.7, 0.7] * 3})
    assert lost == (
        "a is 3rd of 3 methods: with it 59.5 % of the tasks are in time; b, the best of 2 rivals,"
        " manages 98.5 % (difference 39.0 points, 95 % interval 39.0 to 39.0) and sends 2.0 update"
        " units a second instead of 2.0."
    )
    open_ = sentence({"a": [0.6, 0.5] * 3, "b": [0.5, 0.6] * 3, "c": [0.1, 0.1] * 3})
    assert open_.startswith(
        "a and b, the best of 2 rivals, cannot be told apart: with a 55.0 % of the tasks are in"
        " time, with b 55.0 % (difference"
    )
    # Ahead or behind on average is not enough: the interval must leave 0 out.
    ahead = verdict(_metrics({"a": [0.8, 0.4] * 3, "b": [0.5, 0.5] * 3}), "a", lambda name: False)
    assert ahead.rivals[0].ahead.low < 0.0 < ahead.rivals[0].ahead.mean
    assert "cannot be told apart: with a 60.0 % of the tasks" in ahead.sentence()
    behind = sentence({"a": [0.5, 0.5] * 3, "b": [0.8, 0.4] * 3})
    assert (
        "with a 50.0 % of the tasks are in time, with b 60.0 % (difference -10.0 points" in behind
    )
    silent = _metrics({"a": [0.6, 0.7] * 3, "b": [0.5, 0.6] * 3}).with_columns(
        update_cost_rate=polars.when(method="a").then(3.0).otherwise(0.0)
    )
    told = verdict(silent, "a", lambda name: False).sentence()
    assert told.endswith(" and sends no status, instead of 3.0 update units a second.")
    one = sentence({"a": [0.6], "b": [0.5]})
    assert one == (
        "With a 60.0 % of the tasks are in time, with b 50.0 %, its only rival, which sends 2.0"
        " update units a second instead of 2.0; one episode is too few to say which of them is"
        " better."
    )
    few = sentence({"a": [0.6] * 5, "b": [0.5] * 5, "c": [0.55] * 5})
    assert "with c 55.0 %, the best of 2 rivals, which sends" in few
    assert few.endswith("; 5 episodes are too few to say which of them is better.")
    told = verdict(_metrics({"a": [0.6], "b": [0.5]}), "a", lambda name: False)
    assert told.where() == "s: poisson at 1 tasks/s per cell; 1 run of 1 episode"
    assert standings_table(told).texts()[1][3] == "+0.100"
    assert "there is no rival" in sentence({"a": [0.6], "y": [0.9]})
    assert verdict(_metrics({"b": [0.5]}), "a", lambda name: False) is None


def test_a_page_says_when_another_method_is_first_by_net_utility():
    def one(method, success, net_utility, yardstick=False):
        return Standing(method, yardstick, success, net_utility, 0.0, None)

    def told(focus, *others):
        return Verdict("paper", (("poisson", 220.0),), 2, 3, focus, others, ()).by_net_utility()

    ours, other = one("ours", 0.9, 60.0), one("other", 0.8, 90.0)
    assert "other is first (90.0 a task, ours 60.0)" in told(ours, other)
    assert "other is first (90.0 a task)" in told(other, ours)
    assert told(one("ours", 0.9, 95.0), other) == ""
    assert told(ours, one("perfect", 0.8, 99.0, yardstick=True)) == ""
    assert told(ours, one("other", 0.8, float("nan"))) == ""


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


def test_a_field_of_the_scenario_is_swept_with_objects_too(tmp_path):
    found = cosmo.compare(
        "paper", [Mine(), "self-tracking"], rates=[320], seeds=[0], episodes=6, settings=SHORT,
        sweep={"sn.slots": [2, 8]},
    )  # fmt: skip
    table = found.swept().filter(metric="success_rate")
    assert table.select("line", "value").rows() == [
        ("Mine", "2"), ("Mine", "8"), ("self-tracking", "2"), ("self-tracking", "8")
    ]  # fmt: skip
    alone = cosmo.compare(
        "paper", [Mine()], rates=[320], seeds=[0], episodes=6, settings=[*SHORT, "sn.slots=8"]
    )
    mean = alone.summary().filter(metric="success_rate")["mean"][0]
    assert table.filter(line="Mine", value="8")["mean"][0] == mean
    verdicts = found.verdicts()
    assert list(verdicts) == ["sn.slots=2", "sn.slots=8"]
    assert all(each.focus.method == "Mine" for each in verdicts.values())
    with pytest.raises(InputError, match=r"a verdict for each of sn.slots=2, sn.slots=8"):
        found.verdict()
    assert repr(found).count("sn.slots=") == 2
    assert found._repr_html_().count("<h4>sn.slots=") == 2
    figure = found.plot("net_utility_per_task")
    assert figure.axes[0].get_xlabel() == "sn.slots"
    assert (
        '<p id="verdict">Mine is the worse of the two'
        in found.page(tmp_path / "page.html").read_text()
    )


def test_a_parameter_of_named_methods_is_swept():
    found = cosmo.compare(
        "paper", ["periodic"], rates=[320], seeds=[0], episodes=1, settings=SHORT,
        sweep={"method.interval_ms": [20, 90]},
    )  # fmt: skip
    assert found.methods == ["periodic:interval_ms=20", "periodic:interval_ms=90"]
    assert found.focus == found.methods[0]
    assert found.swept()["number"].unique().to_list() == [20.0, 90.0]
    assert found.plot().axes[0].get_xlabel() == "method.interval_ms"


@pytest.mark.parametrize(
    ("methods", "sweep", "line"),
    [
        (["never"], {}, "must have one field, as in"),
        (["never"], {"sn.slots": 3}, "must have a list of values"),
        (["never"], {"sn.slot": [3]}, "did you mean slots"),
        (["never"], {"workload.rate": [3]}, "is an axis already: rates"),
        (["never"], {"sn.slots": []}, "values"),
        ([Mine], {"method.x": [3]}, "'Mine' is an object, whose parameters are set"),
    ],
)
def test_sweeps_that_cannot_be(methods, sweep, line):
    with pytest.raises(InputError, match=line) as found:
        cosmo.compare("paper", methods, sweep=sweep)
    assert "\n" not in str(found.value)


def test_a_trace_is_compared_on_by_its_windows(tmp_path):
    world = cosmo.load("paper", ["episode.window_ms=3000", "workload.rate=200"])
    write_trace(tmp_path / "tasks.csv", episode(world, 0, 0).tasks, 1)
    found = cosmo.compare(
        "paper", [Mine, "self-tracking"], trace=tmp_path / "tasks.csv", settings=SHORT,
        seeds=[0, 1], episodes=3,
    )  # fmt: skip
    frame = found.to_frame()
    assert set(frame["arrivals"]) == {"trace"}
    assert set(frame["trace_windows"]) == {2.0}
    first = cosmo.simulate(
        "paper", "self-tracking", settings=[*SHORT, f"workload.trace={tmp_path / 'tasks.csv'}"]
    )
    recorded = frame.filter(method="self-tracking", seed=0, episode=0)
    assert recorded["success_rate"].to_list() == [first.episodes[0]["success_rate"]]
    found.page(tmp_path / "page.html")
    with pytest.raises(InputError, match="rates: not with a trace, which settles"):
        cosmo.compare("paper", ["never"], trace=tmp_path / "tasks.csv", rates=[220])
