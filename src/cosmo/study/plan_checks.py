"""What would fail later in a plan is refused before anything is played: InputError in one line."""

from collections.abc import Collection

from cosmo.control import METHODS, method
from cosmo.engine import engine_of
from cosmo.errors import InputError, did_you_mean
from cosmo.policy.learned_methods import LEARNED, learned_method
from cosmo.scenario import changed
from cosmo.study import method_files
from cosmo.study.plan import Code, Plan
from cosmo.study.units import at_load

_AXES_OF_THEIR_OWN = {"workload.rate": "rates", "workload.arrivals": "arrivals"}


def check_plan(plan: Plan, code: Code = "run", own: Collection[str] = ()) -> None:
    """Refuse what would fail later: unknown methods, scenarios, processes, fields.

    To know whether a method of a file is one, the file must be run. `code` says what to do
    about those that are not the user's `own`: run them, refuse them or leave them out.
    """
    check_seeds(plan)
    _check_names(plan)
    _check_trainings(plan)
    check_sweeps(plan)
    check_focus(plan)
    trainings = plan.trainings()
    for scenario, process, rate, name in plan.points():
        at_load(scenario, process, rate)
        if name in trainings and engine_of(scenario).play is not None:
            raise InputError(
                f"engines: {name!r} would be trained first, and nodes of {scenario.engine!r}"
                f" make their methods by name; name its folder: {name}:checkpoint=FOLDER"
            )
        if plan.bound and scenario.engine != "embedded":
            raise InputError(
                f"bound = true: is of the engine 'embedded', {scenario.name!r} is on"
                f" {scenario.engine!r}"
            )
    # A swept method is one's own if the method is.
    bases = {
        name: str(swept[0]) if swept and part.sweep and part.sweep.parameter else name
        for part in plan.parts
        for _, name, swept in plan.variants(part)
    }
    for name, base in bases.items():
        if name not in trainings:
            _check_method(name, code, [*own, name] if base in own else own)
    _check_tracks(plan)


def _check_method(name: str, code: Code, own: Collection[str]) -> None:
    if code == "run" or name in own or not method_files.runs_code(name):
        method(name)
    elif code == "refuse":
        raise InputError(
            f"methods: {name!r} runs code from a file; add --trust if you trust this plan and"
            " its files"
        )


def _check_tracks(plan: Plan) -> None:
    for field, names in (
        ("name", [track.name for track in plan.tracks]),
        ("scenario", [plan.scenario(track.scenario).name for track in plan.tracks]),
    ):
        for name in names:
            if names.count(name) > 1:
                raise InputError(f"tracks.{field} = {name!r}: is there twice")
    # A plan that extends another one may compare fewer methods.
    played = {*METHODS, *(name for part in plan.parts for name in part.methods)}
    named: dict[str, Collection[str]] = {"repeats": plan.repeats}
    named["tune.over"] = plan.tune.over if plan.tune else ()
    for field, methods in named.items():
        for name in methods:
            if name not in played:
                close = did_you_mean(name, played)
                raise InputError(f"{field}.{name}: is no method of the plan{close}")


def _check_names(plan: Plan) -> None:
    names = [scenario.name for source in plan.sources for scenario in plan.worlds(source)]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"scenarios: two are called {name!r}; set another name in one")


def check_sweeps(plan: Plan) -> None:
    """Refuse a sweep of what is an axis already."""
    for part in plan.compare:
        if part.sweep is not None and part.sweep.field in _AXES_OF_THEIR_OWN:
            own = _AXES_OF_THEIR_OWN[part.sweep.field]
            raise InputError(f"sweep.field = {part.sweep.field!r}: is an axis already: {own}")


def check_seeds(plan: Plan) -> None:
    """Refuse a run that is there twice."""
    if len(set(plan.seeds)) < len(plan.seeds):
        raise InputError(f"seeds = {list(plan.seeds)}: must be different")


def check_focus(plan: Plan) -> None:
    """Refuse a focus that is not among the methods."""
    names = plan.methods
    if plan.focus is not None and plan.focus not in names:
        close = did_you_mean(plan.focus, names) or f" (methods: {', '.join(names)})"
        raise InputError(f"focus = {plan.focus!r}: is not compared{close}")


def _check_trainings(plan: Plan) -> None:
    names = [each.name for each in plan.train]
    for each in plan.train:
        if names.count(each.name) > 1:
            raise InputError(f"train: two are called {each.name!r}")
        scope = learned_method(each.method).scope
        if scope == "load" and (each.scenario is not None or each.world):
            raise InputError(
                f"train: {each.name!r}: scenario and world are for methods that are trained"
                f" once for all loads; {each.method} is trained where it is compared"
            )
        if each.scenario is not None:
            changed(plan.scenario(each.scenario), each.world)
    for name, each in plan.trainings().items():
        plan.config(name)
        engines = {plan.training.engine} if plan.training.engine else set(plan.engines)
        if LEARNED[each.method].scope == "scenario" and "ns3" in engines:
            raise InputError(
                f"engines: {name!r} is trained on the embedded engine; set training.engine ="
                ' "embedded"'
            )
