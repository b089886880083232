"""What methods of a plan say of sites that they are not made for."""

from cosmo.control import method
from cosmo.node import Method
from cosmo.policy.learned_methods import LEARNED
from cosmo.study.focus import base_name
from cosmo.study.plan import Plan
from cosmo.study.units import at_load
from cosmo.world import site_of


def notices(plan: Plan) -> list[str]:
    """A line for each trained controller and scenario, with the scenario's name; each once."""
    trainings = plan.trainings()
    made: dict[str, Method] = {}
    found: dict[tuple[str, str], str] = {}
    for scenario, process, rate, name in plan.points():
        if name in trainings or base_name(name) not in LEARNED:
            continue
        if name not in made:
            made[name] = method(name)
        there = at_load(scenario, process, rate)
        line = made[name].notice(site_of(there))
        if line:
            found.setdefault((scenario.name, name), f"{scenario.name}: {line}")
    return list(found.values())
