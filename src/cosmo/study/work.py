"""A plan cut into units of work that need nothing of one another; dear ones come first.

A method that is trained for each load is trained in stacks: all its runs at one rate, or, if there
is but one rate, at one load. One that is trained for all loads is trained once, for its own
scenario or for each that it is compared on. The others are played at all rates of an arrival
process; in real time, each episode is a unit of its own. A method that is tuned for a scenario is
a unit there.
"""

from dataclasses import replace
from itertools import product

from cosmo.control import method
from cosmo.node import Method
from cosmo.policy.learned_methods import LEARNED
from cosmo.scenario import Scenario, changed, without_trace
from cosmo.study.focus import base_name
from cosmo.study.plan import OwnTraining, Plan
from cosmo.study.tune_units import tune_units
from cosmo.study.units import BoundUnit, PlayUnit, TrainUnit, Unit, at_load
from cosmo.world import hidden_of, site_of

_Point = tuple[Scenario, str, float]  # scenario, arrivals, rate


def units_of(plan: Plan) -> list[Unit]:
    """All of a plan's work, in the order in which it should be begun."""
    trainings = plan.trainings()
    trained: dict[str, list[_Point]] = {name: [] for name in trainings}
    batches: dict[tuple[str, str, str], list[float]] = {}
    scenarios: dict[str, Scenario] = {}
    for scenario, process, rate, name in plan.points():
        scenarios[scenario.name] = scenario
        if name in trainings:
            trained[name].append((scenario, process, rate))
        else:
            batches.setdefault((scenario.name, name, process), []).append(rate)
    units: list[Unit] = []
    for name, points in trained.items():
        scope = LEARNED[trainings[name].method].scope
        make = _for_each_load if scope == "load" else _for_all_loads
        units += make(plan, trainings[name], points)
    units.sort(key=lambda unit: -sum(unit.rates))  # the longest first: no one waits at the end
    for (where, name, process), rates in batches.items():
        whole = PlayUnit(scenarios[where], process, tuple(rates), name, plan.seeds, plan.episodes)
        units += _single_episodes(whole) if whole.alone else [whole]
    return units + tune_units(plan) + _bounds(plan)


def _single_episodes(whole: PlayUnit) -> list[PlayUnit]:
    """A unit for each episode, so that one that has to be played again costs no other."""
    return [
        replace(whole, rates=(rate,), seeds=(seed,), episodes=1, first_episode=number)
        for rate, seed, number in product(whole.rates, whole.seeds, range(whole.episodes))
    ]


def _bounds(plan: Plan) -> list[BoundUnit]:
    """Of every load, once however many methods are played at it."""
    loads: dict[tuple[str, str], dict[float, Scenario]] = {}
    for scenario, process, rate, _ in plan.points() if plan.bound else ():
        loads.setdefault((scenario.name, process), {})[rate] = scenario
    return [
        BoundUnit(next(iter(at.values())), process, tuple(at), plan.seeds, plan.episodes)
        for (_, process), at in loads.items()
    ]


def _for_each_load(plan: Plan, training: OwnTraining, points: list[_Point]) -> list[TrainUnit]:
    one_rate = len({rate for _, _, rate in points}) == 1
    stacks: dict[tuple[str, float, str], list[Scenario]] = {}
    for scenario, process, rate in points:
        key = scenario.name, rate, process if one_rate else ""
        stacks.setdefault(key, []).append(at_load(scenario, process, rate))
    return [
        _unit(plan, training, [_where_trained(plan, each, rate) for each in played], played, False)
        for (_, rate, _), played in stacks.items()
    ]


def _for_all_loads(plan: Plan, training: OwnTraining, points: list[_Point]) -> list[TrainUnit]:
    homes: dict[str, Scenario] = {}
    played: dict[str, list[Scenario]] = {}
    for scenario, process, rate in points:
        home = scenario if training.scenario is None else plan.scenario(training.scenario)
        homes[home.name] = _where_trained(plan, changed(home, training.world))
        played.setdefault(home.name, []).append(at_load(scenario, process, rate))
    return [_unit(plan, training, [homes[name]], played[name], True) for name in homes]


def _where_trained(plan: Plan, scenario: Scenario, rate: float | None = None) -> Scenario:
    """On the training's engine; with generated arrivals, as what is compared on a trace must not
    have been trained on it, at the trace's mean `rate`.
    """
    engine = plan.training.engine
    if scenario.workload.trace and rate is not None:
        scenario = changed(scenario, {"workload.rate": rate})
    scenario = without_trace(scenario)
    return scenario if engine is None else changed(scenario, {"engine": engine})


def _unit(
    plan: Plan,
    training: OwnTraining,
    trained_on: list[Scenario],
    played_on: list[Scenario],
    everywhere: bool,
) -> TrainUnit:
    return TrainUnit(
        label=training.name,
        method=training.method,
        trained_on=tuple(trained_on),
        played_on=tuple(played_on),
        everywhere=everywhere,
        seeds=plan.seeds,
        episodes=plan.episodes,
        config=plan.config(training.name),
    )


def notices(plan: Plan) -> list[str]:
    """What trained controllers of a plan say of sites that they were not trained for.

    A line for each controller and scenario, with the scenario's name; each once.
    """
    trainings = plan.trainings()
    made: dict[str, Method] = {}
    found: dict[tuple[str, str], str] = {}
    for scenario, process, rate, name in plan.points():
        if name in trainings or base_name(name) not in LEARNED:
            continue
        if name not in made:
            made[name] = method(name)
        there = at_load(scenario, process, rate)
        line = made[name].notice(site_of(there), hidden_of(there))
        if line:
            found.setdefault((scenario.name, name), f"{scenario.name}: {line}")
    return list(found.values())
