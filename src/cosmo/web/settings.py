"""What can be chosen in the playground: sliders, stories, and the scenario that they make."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from cosmo.control import METHODS, method
from cosmo.errors import InputError
from cosmo.policy.trained import Trained
from cosmo.scenario import Scenario, changed, load, preset_names

_MOST_NODES = 60  # of a preset that is offered: larger ones take long to answer
_DOWN_MS = 400.0  # an outage
_FIRST = ("campus", "aoi-threshold/estimate", "cosmo-next")
SEED = 0


class Slider(NamedTuple):
    """A number that can be changed: its bounds, its step, and the words beside it."""

    label: str
    min: float
    max: float
    step: float


SLIDERS = {
    "load": Slider("load (tasks/s per cell)", 10, 320, 5),
    "price": Slider("price of a status (weight of its cost)", 0, 20, 0.5),
    "ens": Slider("edge nodes", 1, 30, 1),
    "sns": Slider("service nodes", 1, 20, 1),
    "spread": Slider("unknown demand (spread)", 0, 2, 0.1),
    "tenants": Slider("tasks of tenants (per s and SN)", 0, 300, 10),
    "outages": Slider("outages (per minute and SN)", 0, 60, 1),
}


@dataclass(frozen=True)
class Chosen:
    """What is on the screen: a preset, one or two methods, and a number for each slider."""

    scenario: str
    methods: tuple[str, ...]
    numbers: dict[str, float]


def offered() -> dict[str, Any]:
    """All that the page lets a reader choose from: sliders with the values of each preset, methods,
    and guided stories (`stories.toml`), whose words appear after some seconds.
    """
    text = resources.files("cosmo.web").joinpath("stories.toml").read_text(encoding="utf-8")
    return {
        "scenarios": {name: values_of(scenario) for name, scenario in _presets().items()},
        "methods": [{"name": name, "summary": METHODS[name].summary()} for name in _methods()],
        "sliders": {name: each._asdict() for name, each in SLIDERS.items()},
        "stories": [_story(**each) for each in tomllib.loads(text)["story"]],
    }


def _story(
    scenario: str,
    methods: list[str],
    numbers: dict[str, float],
    begin_ms: float = 100.0,
    **shown: Any,
) -> dict[str, Any]:
    """`shown` has its title, speed and steps; `numbers` are those that differ from the preset's."""
    all_numbers = values_of(load(scenario)) | numbers
    chosen = {"scenario": scenario, "methods": methods, "numbers": all_numbers}
    return {**shown, "begin_ms": begin_ms, "chosen": chosen}


def first_choice() -> Chosen:
    """What is shown before anybody has chosen anything."""
    name, *methods = _FIRST
    return Chosen(name, tuple(methods), values_of(load(name)))


def values_of(scenario: Scenario) -> dict[str, float]:
    """A number for each slider, of a scenario."""
    outage = scenario.sn.outage
    rates = scenario.background.each("rates", scenario.sn.count)
    return {
        "load": scenario.workload.rate,
        "price": scenario.utility.update_weight,
        "ens": scenario.en.count,
        "sns": scenario.sn.count,
        "spread": scenario.workload.demand.spread,
        "tenants": sum(sum(each) / 2 for each in rates) / len(rates),
        "outages": 0.0 if outage is None else round(60_000.0 / (outage.up_ms + outage.down_ms), 1),
    }


def chosen_from(told: Any) -> Chosen:
    """What a page sends, checked; InputError in one line."""
    if not isinstance(told, dict) or set(told) != {"scenario", "methods", "numbers"}:
        raise InputError("settings: must have scenario, methods and numbers")
    name, methods, numbers = told["scenario"], told["methods"], told["numbers"]
    presets = list(_presets())
    if name not in presets:
        raise InputError(f"scenario = {name!r}: must be one of {', '.join(presets)}")
    if not isinstance(methods, list) or not 1 <= len(methods) <= 2:
        raise InputError("methods: must be one or two")
    for each in methods:
        if each not in _methods():
            raise InputError(f"method = {each!r}: must be one of {', '.join(_methods())}")
    if not isinstance(numbers, dict) or set(numbers) != set(SLIDERS):
        raise InputError(f"numbers: must be {', '.join(SLIDERS)}")
    for key, value in numbers.items():
        slider = SLIDERS[key]
        real = isinstance(value, int | float) and not isinstance(value, bool)
        if not real or not slider.min <= value <= slider.max:
            raise InputError(f"{key} = {value!r}: must be from {slider.min:g} to {slider.max:g}")
        if key in ("ens", "sns") and value != int(value):
            raise InputError(f"{key} = {value!r}: must be a whole number")
    return Chosen(name, tuple(methods), {key: float(value) for key, value in numbers.items()})


def scenario_of(chosen: Chosen, window_ms: float | None = None) -> Scenario:
    """The preset with what the sliders change in it, and nothing else; played from its first ms
    for `window_ms`, if that is given.
    """
    base = load(chosen.scenario)
    usual, numbers = values_of(base), chosen.numbers
    fields: dict[str, Any] = {
        "workload.rate": numbers["load"],
        "utility.update_weight": numbers["price"],
    }
    if window_ms is not None:
        fields |= {"episode.window_ms": window_ms, "episode.warmup_ms": 0.0}
    moved = {name for name, value in numbers.items() if value != usual[name]}
    if moved:
        fields["name"] = f"{base.name}-played"
    if "spread" in moved:
        fields["workload.demand.spread"] = numbers["spread"]
    if "ens" in moved:
        fields |= {"en.count": int(numbers["ens"]), "workload.weights": []}
    if "sns" in moved:
        fields["sn.count"] = int(numbers["sns"])
    if "tenants" in moved:
        fields["background.rates"] = [0.5 * numbers["tenants"], 1.5 * numbers["tenants"]]
    if "outages" in moved:
        up_ms = max(1.0, 60_000.0 / max(numbers["outages"], 1.0) - _DOWN_MS)
        outage = {"up_ms": up_ms, "down_ms": _DOWN_MS}
        fields["sn.outage"] = outage if numbers["outages"] else None
    return changed(base, fields)


@cache
def _presets() -> dict[str, Scenario]:
    found = {name: load(name) for name in preset_names()}
    return {
        name: each
        for name, each in found.items()
        if each.en.count + each.sn.count <= _MOST_NODES and not each.workload.trace
    }


@cache
def _methods() -> list[str]:
    """Methods that need nothing but their name; looked for once, as controllers are read for it."""
    return [name for name, kind in METHODS.items() if not issubclass(kind, Trained) or _ships(name)]


def _ships(name: str) -> bool:
    """Whether a method that is trained comes with a controller."""
    try:
        method(name)
    except InputError:
        return False
    return True
