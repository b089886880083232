"""What commands print at 80 columns, kept as text (see golden_text)."""

from pathlib import Path

import polars
import pytest
import typer
from golden_text import as_before, eighty_columns
from small import small_plan

from cosmo.cli.app import app
from cosmo.cli.comparison import print_results
from cosmo.cli.console import metrics_table, show
from cosmo.measure import METRICS, Interval
from cosmo.study.store import NO_CURVES, Study


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


def test_every_command_has_help_by_either_name_that_fits(cosmo):
    for command in _commands():
        code, out, _ = cosmo(*command, "-h")
        assert code == 0, command
        assert max(len(line.rstrip()) for line in out.splitlines()) <= 80, command
    assert cosmo("--help")[1] == cosmo("-h")[1]
    assert "--install-completion" in cosmo("-h")[1]


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
        (["compare", "never", "--runs", "0"], "--runs = 0: must be from 1"),
        (["compare", "never", "--runs", "2", "--seeds", "1"], "--runs: not with --seeds"),
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
