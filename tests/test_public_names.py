"""What is promised to be kept (docs/stability.md) is described: arguments, returns, exceptions."""

import inspect
from typing import Any

import pytest

import cosmo
import cosmo.envs
import cosmo.node
import cosmo.study


def _kept() -> dict[str, Any]:
    found = {}
    for room in (cosmo, cosmo.envs, cosmo.node, cosmo.study):
        for name in room.__all__:
            thing = getattr(room, name)
            if inspect.isfunction(thing) or inspect.isclass(thing):
                found[f"{room.__name__}.{name}"] = thing
    return found


KEPT = _kept()
FUNCTIONS = {name: thing for name, thing in KEPT.items() if inspect.isfunction(thing)}
ENVIRONMENTS = {name: thing for name, thing in KEPT.items() if name.endswith("Env")}
assert len(ENVIRONMENTS) == 4


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_public_function_describes_every_argument_and_what_it_returns(name):
    function = FUNCTIONS[name]
    text, signature = inspect.getdoc(function) or "", inspect.signature(function)
    for argument in signature.parameters:
        assert f"\n    {argument}: " in text, argument
    if signature.parameters and signature.return_annotation is not None:
        assert "\nReturns:\n" in text


@pytest.mark.parametrize("name", KEPT)
def test_a_public_name_is_described_in_a_sentence(name):
    first = (inspect.getdoc(KEPT[name]) or "").partition("\n\n")[0]
    assert len(first.split()) >= 3, first
    assert first.endswith("."), first


def test_a_scenario_is_loaded_with_settings_as_a_dictionary_or_as_text():
    typed = cosmo.load("paper", ["workload.rate=250", "sn.slots=6"])
    assert cosmo.load("paper", {"workload.rate": 250.0, "sn.slots": 6}) == typed


def test_a_plan_is_loaded_with_settings_as_a_dictionary_or_as_text():
    typed = cosmo.study.load_plan("baselines", ["episodes=2", "seeds=[4]"])
    assert cosmo.study.load_plan("baselines", {"episodes": 2, "seeds": [4]}) == typed


def test_arrivals_of_a_trace_cannot_be_set_in_either_form(tmp_path):
    file = tmp_path / "tasks.csv"
    scenario = cosmo.load("paper", {"episode.window_ms": 500.0, "episode.warmup_ms": 0.0})
    cosmo.write_trace(file, cosmo.episode(scenario, 0, 0).tasks, 1)
    for settings in (
        {"workload.trace": str(file), "workload.arrivals": "poisson"},
        [f"workload.trace={file}", "workload.arrivals=poisson"],
    ):
        with pytest.raises(cosmo.InputError, match=r"^workload\.arrivals: the tasks come from"):
            cosmo.load("paper", settings)


def test_the_load_is_given_in_the_same_order_everywhere():
    """Scenario and method first, then rate or rates, arrivals, seeds, episodes, settings."""
    order = ["scenario", "method", "rate", "arrival", "seed", "episode", "setting"]
    for name, thing in {**FUNCTIONS, **ENVIRONMENTS}.items():
        if name in ("cosmo.play", "cosmo.episode"):  # of episodes that are there, of one episode
            continue
        parameters = inspect.signature(thing).parameters.values()
        if name == "cosmo.check_method":  # of a method alone; scenarios need not be given
            parameters = [each for each in parameters if each.kind is each.KEYWORD_ONLY]
        names = [each.name.removesuffix("s") for each in parameters]
        there = [each for each in order if each in names]
        assert [each for each in names if each in order] == there, name


def test_what_plays_many_takes_rates_and_seeds_and_an_environment_has_one_rate():
    for name in ("check_method", "compare", "evaluate", "play", "simulate", "train", "tune"):
        names = {*inspect.signature(FUNCTIONS[f"cosmo.{name}"]).parameters}
        assert not names & {"rate", "seed"}, name
        assert names & {"rates", "seeds"}, name
    for name, thing in ENVIRONMENTS.items():
        names = {*inspect.signature(thing).parameters}
        assert "rate" in names, name
        assert not names & {"rates", "seeds"}, name
