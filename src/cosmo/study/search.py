"""What `cosmo.tune` searches: a method, the values of its parameters to try, and the workloads.

As text, a parameter has `0:30` (a range), `1:1000:log` (spread by ratios) or `2,3,5` (values). All
become Optuna's distributions.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from cosmo.control import registry
from cosmo.engine import engine_of
from cosmo.errors import InputError, did_you_mean
from cosmo.learn.run import VALIDATION_EPISODES
from cosmo.measure import METRICS
from cosmo.node import Method
from cosmo.policy.parameters import parsed, type_and_bounds
from cosmo.policy.registry import made, types_of, with_parameters
from cosmo.scenario import Scenario
from cosmo.study.units import PlayUnit, at_load

_MOST_TRIALS = 10_000


@dataclass(frozen=True)
class Search:
    """A method, the values to try, and the workloads to try them on.

    Raises InputError in one line for what is unknown or not allowed, and if Optuna is missing.
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
            for end in getattr(axis, "choices", None) or (axis.low, axis.high):
                self.made(self.named({name: as_text(end)}))  # its constructor may refuse a value

    def space(self) -> dict[str, Any]:
        """Optuna's distribution of every parameter that is tuned."""
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


def _axis(name: str, text: str, hint: Any) -> Any:
    """Optuna's distribution of a parameter of an annotated type."""
    distributions = optuna_module().distributions
    kind, bounds = type_and_bounds(hint)
    low, *further = (part.strip() for part in text.split(":"))
    try:
        if not further:
            choices = [choice.strip() for choice in text.split(",")]
            if len(set(choices)) < len(choices):
                raise ValueError("values must be different")
            return distributions.CategoricalDistribution(choices)
        if kind not in (int, float) or further[1:] not in ([], ["log"]):
            raise ValueError("must be LOW:HIGH or LOW:HIGH:log of numbers, or values with commas")
        least, most = parsed(low, kind), parsed(further[0], kind)
        if not -math.inf < least < most < math.inf:
            raise ValueError("the first must be less than the second")
        if any(least == bound.above for bound in bounds):  # the parameter must be greater
            least += 1 if kind is int else (most - least) / 1000
        make = distributions.IntDistribution if kind is int else distributions.FloatDistribution
        return make(least, most, log=len(further) == 2)
    except ValueError as error:
        raise InputError(f"over {name}={text}: {error}") from None


def grid(space: Mapping[str, Any], most: int) -> list[dict[str, Any]]:
    """Every setting of a space that has `most` at most; none if it has more."""
    axes, count = list[Iterable[Any]](), 1.0
    for axis in space.values():
        listed = hasattr(axis, "choices")
        ints = isinstance(getattr(axis, "low", None), int)
        axes.append(axis.choices if listed else range(axis.low, axis.high + 1) if ints else ())
        count *= len(axis.choices) if listed else axis.high - axis.low + 1 if ints else math.inf
    few = count <= most
    return [dict(zip(space, values, strict=True)) for values in product(*axes)] if few else []


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
