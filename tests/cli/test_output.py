"""What commands print at 80 columns, kept as text (see golden_text)."""

import inspect
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import polars
import pytest
import typer
from golden_text import as_before, eighty_columns
from small import small_plan

from cosmo.cli.app import app
from cosmo.cli.comparison import print_results
from cosmo.cli.console import metrics_table, print_json, show
from cosmo.cli.documents import comparison_document
from cosmo.measure import METRICS, Interval
from cosmo.study.statistics import Difference
from cosmo.study.store import NO_CURVES, Study
from cosmo.study.tuning import Tuned


@pytest.fixture(autouse=True)
def narrow(monkeypatch):
    eighty_columns(monkeypatch)


@pytest.mark.parametrize("command", ["methods", "scenario list", "study list"])
def test_lists(cosmo, command):
    code, out, _ = cosmo(*command.split())
    assert code == 0
    as_before(command.replace(" ", "-"), out)


def _study(rates, seeds):
    """Made-up results, so that nothing but what is printed can change them."""
    methods = ("a-policy-of-mine.py:WithAVeryLongName:threshold_ms=25", "aoi-threshold/estimate",
               "full-information")  # fmt: skip
    plan = small_plan(methods[1:], rates=rates, settings=[], seeds=list(seeds))
    rows = [
        {"scenario": "paper", "arrivals": "poisson", "rate": rate, "method": name, "seed": seed,
         "episode": episode, **dict.fromkeys(METRICS, None), "decision_accuracy": 0.5,
         "success_rate": round(0.9 - 0.1 * place - rate / 1000 + 0.01 * seed + 0.005 * episode, 6),
         "net_utility_per_task": -100.0 * place - rate, "update_cost_rate": 1000.0 * place}
        for rate in rates
        for place, name in enumerate(methods)
        for seed in seeds
        for episode in range(2)
    ]  # fmt: skip
    metrics = polars.DataFrame(rows, schema_overrides=dict.fromkeys(METRICS, polars.Float64))
    plan = plan.model_copy(update={"focus": methods[1]})
    return Study(Path(), plan, {}, metrics, polars.DataFrame(schema=NO_CURVES))


@pytest.mark.parametrize(
    ("name", "rates", "seeds"),
    [
        ("one-load", [320.0], range(3)),
        ("two-runs", [320.0], range(2)),
        ("loads", [120.0, 160.0, 220.0, 280.0, 320.0], range(3)),
    ],
)
def test_results(capsys, name, rates, seeds):
    print_results(_study(rates, seeds))
    as_before(f"results-{name}", capsys.readouterr().out)


def test_results_of_a_sweep(capsys):
    study, fields = _study([320.0], range(3)), [2.0, 16.0]
    parts = [
        study.metrics.with_columns(
            scenario=polars.lit(f"paper sn.slots={value:g}"), swept=polars.lit("paper"),
            sweep=polars.lit("sn.slots"), sweep_value=polars.lit(value),
        )
        for value in fields
    ]  # fmt: skip
    print_results(replace(study, metrics=polars.concat(parts)))
    as_before("results-sweep", capsys.readouterr().out)


def test_the_document_of_a_comparison_has_the_same_keys_whatever_was_compared(capsys):
    def shape(value):
        """Keys and kinds; of a list those of its first entry."""
        if isinstance(value, dict):
            return {key: shape(each) for key, each in value.items()}
        return [shape(value[0])] if isinstance(value, list) and value else type(value).__name__

    written = SimpleNamespace(page=Path("report.html"), figures=[Path("a.png"), Path("a.pdf")])
    one = comparison_document(_study([320.0], range(1)), written)
    several = comparison_document(_study([120.0, 320.0], range(3)), written)
    assert one["verdicts"][0]["standings"][0]["focus_minus_it"].keys() == {"mean", "low", "high"}
    assert one["verdicts"][0]["runs"] == 1
    assert one["figures"] == ["a.png"]
    assert several["results"][0]["metrics"].keys() == set(METRICS)
    assert several["results"][0]["runs"] == 3
    print_json([one, several])
    same = json.loads(capsys.readouterr().out.replace("null", "0.0"))
    assert shape(same[0]) == shape(same[1])
    [told] = several["verdicts"]
    assert (told["place"], len(told["loads"]), told["left_out"]) == (2, 2, [])
    assert [each["method"] for each in told["standings"] if each["yardstick"]] == [
        "full-information"
    ]
    assert several["focus"] == "aoi-threshold/estimate"
    [own] = [each for each in told["standings"] if each["method"] == several["focus"]]
    assert own["focus_minus_it"] is None


def test_what_tuning_found(cosmo, tmp_path, monkeypatch):
    over, name = {"threshold_ms": "0.03:30", "keep": "2,3"}, "a-policy.py:WithAVeryLongName"
    rows = [
        {"method": f"{name}:{place}" if place else name, "keep": str(2 + place % 2),
         "threshold_ms": f"{place:.1f}", "success_rate": 0.5 + place / 100 if place < 12 else None,
         "net_utility_per_task": -1000.0 * place, "update_cost_rate": 1000.0,
         "failed": None if place < 12 else "it broke"}
        for place in range(13)
    ]  # fmt: skip
    search = SimpleNamespace(
        method=name, over=over, metric="success_rate", seeds=(0, 1, 2), episodes=5,
        scenario=SimpleNamespace(name="paper"), document=lambda: {"over": over},
    )  # fmt: skip
    found = Tuned(
        search=search, method=f"{name}:keep=3,threshold_ms=11.0",
        parameters={"keep": "3", "threshold_ms": "11.0"}, trials=polars.DataFrame(rows),
        best_mean=0.62, default_mean=0.5, difference=Difference(0.12, 0.1, 0.14),
    )  # fmt: skip
    monkeypatch.setattr("cosmo.study.tuning.tuned_in", lambda *arguments: found)
    monkeypatch.chdir(tmp_path)
    code, out, err = cosmo("tune", "power-of-d", "--over", "threshold_ms=0:30")
    assert code == 0, err
    as_before("tune", out)
    alone = replace(found, difference=None, parameters={}, method=name)
    documents = []
    for each in (found, alone):
        monkeypatch.setattr("cosmo.study.tuning.tuned_in", lambda *arguments, each=each: each)
        out = cosmo("tune", "power-of-d", "--over", "threshold_ms=0:30", "--json")[1]
        documents.append(json.loads(out))
    one, other = documents
    assert one.keys() == other.keys()
    assert one["compared"].keys() == other["compared"].keys()
    assert (one["compared"]["low"], other["compared"]["low"]) == (0.1, None)


@pytest.mark.parametrize("episodes", [1, 2, 5])
def test_metrics_of_one_method(capsys, episodes):
    half = {1: float("nan"), 2: 12.7062 * 1.5, 5: 2.25}[episodes]
    metrics = {
        name: Interval(214.5 + place, half) if place % 2 else Interval(0.25, half / 100.0)
        for place, name in enumerate(METRICS)
    }
    show(metrics_table(f"a method, {episodes} episode(s)", metrics, episodes))
    as_before(f"metrics-{episodes}", capsys.readouterr().out)


def _commands():
    root = typer.main.get_command(app)
    for name, command in root.commands.items():
        inner = getattr(command, "commands", None)
        yield from ([name, each] for each in inner) if inner else [[name]]


def test_every_command_has_help_by_either_name_that_fits_with_an_example(cosmo):
    for command in _commands():
        code, out, _ = cosmo(*command, "-h")
        assert code == 0, command
        assert f" cosmo {' '.join(command)}" in out, command
        assert max(len(line.rstrip()) for line in out.splitlines()) <= 80, command
        assert max(out) < "\U0001f000", f"{command}: a picture, as of :100:"
    assert cosmo("--help")[1] == cosmo("-h")[1]
    assert "--install-completion" in cosmo("-h")[1]


def test_paragraphs_of_help_are_not_broken_twice():
    """Terminals keep the lines of a paragraph as they are written, and break longer ones again."""
    for command in _commands():
        found = typer.main.get_command(app)
        for name in command:
            found = found.commands[name]
        for paragraph in inspect.cleandoc(found.help).split("\n\n"):
            lines = paragraph.splitlines()
            assert len(lines) == 1 or max(map(len, lines)) <= 78, (command, paragraph)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["simulate", "-m", "self-traking"], "unknown, did you mean self-tracking?"),
        (["simulate", "-m", "periodic:interval=5"], "did you mean interval_ms?"),
        (["simulate", "-m", "never", "-s", "shared"], "did you mean shared-sn?"),
        (["simulate", "-m", "never", "--set", "sn.slot=3"], "did you mean slots?"),
        (["study", "show", "baseline"], "did you mean baselines?"),
        (["simulat"], "Did you mean 'simulate'?"),
        (["compare", "never", "--focus", "nevr"], "is not compared, did you mean never?"),
        (["compare", "never", "--rates", "a"], "--rates = 'a': must be numbers of tasks/s"),
        (["compare", "never", "--trace", "t.csv", "--rates", "9"], "--rates: not with a trace"),
        (["compare", "never", "--runs", "0"], "--runs = 0: must be from 1"),
        (["compare", "never", "--runs", "2", "--seeds", "1"], "--runs: not with --seeds"),
        (["compare", "never", "--sweep", "sn.slots"], "--sweep = 'sn.slots': must look like"),
        (["compare", "never", "--sweep", "sn.slot=3,4"], "did you mean slots?"),
        (["compare", "never", "--arrivals", "poison"], "'poisson', 'bursty' or 'steps'\n"),
        (["train", "--method", "cosmo-nxt", "--out", "t"], "did you mean cosmo-next?"),
        (["import", "azure-functions", "f", "--out", "t.csv"], "did you mean azure-functions-2021"),
        (["tune", "periodic", "--over", "interval=1:9"], "did you mean interval_ms?"),
        (
            ["tune", "periodic", "--over", "interval_ms=1:9", "--metric", "sucess_rate"],
            "did you mean success_rate?",
        ),
        (["view", "nothing.json"], "'nothing.json': cannot be read"),
    ],
)
def test_what_was_meant_is_said_in_one_line(cosmo, arguments, line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = cosmo(*arguments)
    assert (code, out) == (2, "")
    assert line in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
