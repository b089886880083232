"""What `cosmo.tune` searches: a method, the values of its parameters to try, and the workloads.

As text, a parameter has `0:30` (a range), `1:1000:log` (spread by ratios) or `2,3,5` (values).
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from types import MappingProxyType
from typing import Any, NamedTuple

from cosmo.control import registry
from cosmo.engine import engine_of
from cosmo.errors import InputError, did_you_mean
from cosmo.learn.run import VALIDATION_EPISODES
from cosmo.measure import METRICS
from cosmo.node import Method
from cosmo.policy.parameters import parsed, type_and_bounds
from cosmo.policy.registry import made, parameters_of, types_of, with_parameters
from cosmo.scenario import Scenario
from cosmo.study.units import PlayUnit, at_load

_MOST_TRIALS = 10_000


class Axis(NamedTuple):
    """The values of a parameter to try: `choices`, as text, or the numbers of a range."""

    choices: tuple[str, ...] = ()
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    whole: bool = False

    @property
    def size(self) -> float:
        """How many values there are."""
        return len(self.choices) or (self.high - self.low + 1 if self.whole else math.inf)

    @property
    def values(self) -> Sequence[Any]:
        """All values of an axis with finitely many."""
        return self.choices or range(int(self.low), int(self.high) + 1)

    def distribution(self) -> Any:
        """Optuna's form of it."""
        kinds = optuna_module().distributions
        if self.choices:
            return kinds.CategoricalDistribution(self.choices)
        make = kinds.IntDistribution if self.whole else kinds.FloatDistribution
        return make(self.low, self.high, log=self.log)


@dataclass(frozen=True)
class Search:
    """A method, the values to try, and the workloads to try them on.

    Raises InputError in one line for what is unknown or not allowed.
    """

    scenario: Scenario
    method: str
    over: Mapping[str, str]  # LOW:HIGH, LOW:HIGH:log or values with commas, by parameter
    arrivals: tuple[str, ...]
    rates: tuple[float, ...]  # tasks/s in each cell
    seeds: tuple[int, ...]  # of the runs
    episodes: int  # of each run, at each load
    metric: str  # the setting with the greatest mean over the loads wins
    seed: int  # of Optuna's sampler
    trials: int  # settings to try at most; if there are no more, all are tried
    kind: type[Method] | None = None  # of a method that other processes cannot find by its name

    def __post_init__(self) -> None:
        allowed = [name for name, metric in METRICS.items() if metric.better > 0]
        if self.metric not in allowed:
            told = ", ".join(allowed) + did_you_mean(self.metric, allowed)
            raise InputError(f"metric = {self.metric!r}: must be one of {told}")
        for name, most in (("episodes", VALIDATION_EPISODES // 4), ("trials", _MOST_TRIALS)):
            if not 1 <= getattr(self, name) <= most:
                raise InputError(f"{name} = {getattr(self, name)}: must be from 1 to {most}")
        if not self.seeds or len(set(self.seeds)) < len(self.seeds):
            raise InputError(f"seeds = {list(self.seeds)}: must be different, and one at least")
        for process, rate in product(self.arrivals, self.rates):
            at_load(self.scenario, process, rate)
        if engine_of(self.scenario).play is not None:
            raise InputError(f"engine = {self.scenario.engine!r}: tune on an engine that simulates")
        for name, axis in self.space().items():
            for end in axis.choices or (axis.low, axis.high):
                self.made(self.named({name: as_text(end)}))  # its constructor may refuse a value

    def space(self) -> dict[str, Axis]:
        """The values to try of every parameter that is tuned."""
        kind, fixed = (self.kind, {}) if self.kind else registry.kind_of(self.method)
        types = types_of(kind)
        if not self.over:
            raise InputError("over: names no parameter, as in threshold_ms=0:30")
        for name in self.over:
            if name not in types:
                close = did_you_mean(name, types) or f" (allowed: {', '.join(types) or 'none'})"
                raise InputError(f"over {name}: unknown parameter{close}")
            if name in fixed:
                raise InputError(f"over {name}: the method's name sets it already")
        return {name: _axis(name, text, types[name]) for name, text in self.over.items()}

    def named(self, setting: Mapping[str, str]) -> str:
        """The method with a setting, by a name that can be pasted into any command."""
        return with_parameters(self.method, setting)

    def made(self, name: str) -> Method:
        """The method of such a name."""
        parameters = name.partition(":")[2]
        return made(name, self.kind, parameters) if self.kind else registry.method(name)

    def units(self, name: str, fresh: bool) -> list[PlayUnit]:
        """A method at all loads, on the episodes of the search or on as many `fresh` ones."""
        first = VALIDATION_EPISODES + (self.episodes if fresh else 0)
        return [
            PlayUnit(self.scenario, process, self.rates, name, self.seeds, self.episodes, first)
            for process in self.arrivals
        ]

    def document(self) -> dict[str, Any]:
        """What must be the same when a search is resumed, as plain data."""
        own = {name: value for name, value in vars(self).items() if name not in ("trials", "kind")}
        own["scenario"] = self.scenario.model_dump(mode="json")
        plain: dict[str, Any] = json.loads(json.dumps(own))
        return plain


def as_texts(over: Mapping[str, Any] | Iterable[str]) -> dict[str, str]:
    """Parameters and what to try, as on the command line: `0:30`, `1:1000:log`, `2,3,5`."""
    found: dict[str, str] = {}
    pairs = over.items() if isinstance(over, Mapping) else (item.split("=", 1) for item in over)
    items: Iterable[Sequence[Any]] = pairs
    for name, *given in items:
        if (name := name.strip()) in found:
            raise InputError(f"over {name}: is there twice")
        match given:
            case [str(text)]:
                found[name] = text
            case [tuple((low, high))]:
                found[name] = f"{low}:{high}"
            case [list() | tuple() | range() as values]:
                found[name] = ",".join(map(str, values))
            case _:
                raise InputError(f"over {name}: must look like threshold_ms=0:30 or keep=2,3,5")
    return found


_WIDE = 8.0  # a range without a word about it: from an eighth of the default to eight times of it


def ranges_of(
    kind: type[Method], fixed: Mapping[str, str] = MappingProxyType({})
) -> dict[str, str]:
    """Ranges for the parameters of a method that have a number or a truth value as default.

    Those whose default is not positive, or that are `fixed`, have none, and neither has a parameter
    of which the method refuses an end of the range. A range keeps to the bounds of the type.
    """
    found, types = {}, types_of(kind)
    for name, parameter in parameters_of(kind).items():
        default = parameter.default
        if name in fixed or not isinstance(default, bool | int | float):
            continue
        if isinstance(default, bool):
            found[name] = "true,false"
        elif default > 0:
            whole, bounds = type_and_bounds(types[name])
            low, high = default / _WIDE, min([default * _WIDE, *(each.most for each in bounds)])
            if whole is int:
                low, high = max(1, int(low)), int(high)
            if low < high and _allowed(kind, {**fixed, name: low}, {**fixed, name: high}):
                found[name] = f"{as_text(low)}:{as_text(high)}:log"
    return found


def _allowed(kind: type[Method], *settings: Mapping[str, Any]) -> bool:
    texts = (",".join(f"{name}={value}" for name, value in each.items()) for each in settings)
    try:
        return all(made(kind.__name__, kind, text) is not None for text in texts)
    except InputError:
        return False


def _axis(name: str, text: str, hint: Any) -> Axis:
    """What a text says of a parameter of an annotated type."""
    kind, bounds = type_and_bounds(hint)
    low, *further = (part.strip() for part in text.split(":"))
    try:
        if not further:
            choices = tuple(choice.strip() for choice in text.split(","))
            if len(set(choices)) < len(choices):
                raise ValueError("values must be different")
            return Axis(choices)
        if kind not in (int, float) or further[1:] not in ([], ["log"]):
            raise ValueError("must be LOW:HIGH or LOW:HIGH:log of numbers, or values with commas")
        least, most = parsed(low, kind), parsed(further[0], kind)
        if not -math.inf < least < most < math.inf:
            raise ValueError("the first must be less than the second")
        if any(least == bound.above for bound in bounds):  # the parameter must be greater
            least += 1 if kind is int else (most - least) / 1000
        if least <= 0 and further[1:]:
            raise ValueError("a logarithmic range must begin above 0")
        return Axis(low=least, high=most, log=bool(further[1:]), whole=kind is int)
    except ValueError as error:
        raise InputError(f"over {name}={text}: {error}") from None


def grid(space: Mapping[str, Axis], most: int) -> list[dict[str, Any]]:
    """Every setting of a space that has `most` at most; none if it has more."""
    if math.prod(axis.size for axis in space.values()) > most:
        return []
    axes = (axis.values for axis in space.values())
    return [dict(zip(space, values, strict=True)) for values in product(*axes)]


def as_text(value: Any) -> str:
    """A value as a method's name has it: what is played is what can be pasted."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def optuna_module() -> Any:
    """Optuna, if it is installed; else InputError that names the extra."""
    try:
        import optuna
    except ModuleNotFoundError:
        raise InputError(
            "tuning needs Optuna; install it from a clone of the repository: pip install '.[tune]'"
        ) from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna
