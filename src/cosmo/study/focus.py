"""The focus method of a study, its rivals, and yardsticks, which are set apart."""

from collections.abc import Collection

from cosmo.control import METHODS, method, simulate
from cosmo.errors import InputError
from cosmo.policy.learned_methods import LEARNED
from cosmo.policy.registry import FROM_FILES
from cosmo.scenario import changed
from cosmo.study import method_files
from cosmo.study.plan import Plan
from cosmo.study.units import at_load


def focus_of(plan: Plan, yardsticks: Collection[str] = ()) -> str:
    """The focus method: the one that a report is about, by its name in the results.

    What the plan says (`focus`); else the first method of the user's own (code or a model from a
    file), else the first that learns, else the first that is no yardstick, else the first.
    """
    if plan.focus is not None:
        return plan.focus
    names, trainings = plan.methods, plan.trainings()
    rivals = [name for name in names if not (name in yardsticks or is_known_yardstick(name))]
    own = (name for name in rivals if name not in trainings and _from_file(name))
    learn = (name for name in rivals if name in trainings or base_name(name) in LEARNED)
    return next(own, None) or next(learn, None) or next(iter(rivals), names[0])


def base_name(name: str) -> str:
    """A method's name without its parameters: `periodic` of `periodic:interval_ms=5`."""
    return name.partition(":")[0]


def _from_file(name: str) -> bool:
    return method_files.runs_code(name) or base_name(name) in FROM_FILES


def is_known_yardstick(name: str) -> bool:
    """Whether the registry says that the method is handed the truth (R15); runs no code."""
    kind = METHODS.get(base_name(name))
    return kind is not None and kind.privileged


def yardsticks_of(plan: Plan) -> list[str]:
    """All compared methods that are handed the truth. Runs the code of methods from files."""
    trainings = plan.trainings()
    return [name for name in plan.methods if name not in trainings and _is_privileged(name)]


def _is_privileged(name: str) -> bool:
    if base_name(name) in METHODS:
        return is_known_yardstick(name)
    try:
        return method(name).privileged
    except InputError:  # its unit will say what is wrong
        return False


_TRIAL_MS = 500.0  # of the measured part of an episode


def try_focus(plan: Plan) -> None:
    """Play the beginning of one episode with the focus, if it is a method from a file.

    Raises InputError in one line if it fails: before its rivals have been played for minutes.
    """
    name = plan.focus
    if name is None or name in plan.trainings() or not _from_file(name):
        return
    for scenario, process, rate, played in plan.points():
        if played == name and scenario.engine == "embedded":
            here = at_load(scenario, process, rate)
            window_ms = min(here.episode.window_ms, here.episode.warmup_ms + _TRIAL_MS)
            short = changed(here, {"episode.window_ms": window_ms})
            simulate(short, method(name), seeds=plan.seeds[:1])
            return
