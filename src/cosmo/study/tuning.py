"""`cosmo.tune`: the parameters of a method, chosen on validation workloads.

Episodes of tuning are numbered as those of validation are (R25), so that no workload that a method
is evaluated on has chosen its parameters. The best setting is then compared with the default on
further validation episodes, which the search has not seen: the best of many is partly the luckiest
of them, and its lead on the episodes that chose it would be too large.

Settings come in batches of a fixed size and are told to the search in their order, whoever played
them, so that the result depends on the seed alone. Going on after an interruption is doing it
again, with what is finished read from the disk.
"""

import math
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars

import cosmo
from cosmo.control.named import ScenarioLike, Settings, as_scenario
from cosmo.control.registry import kind_of, method
from cosmo.errors import InputError, did_you_mean
from cosmo.files import only_run, read_record, write_record
from cosmo.learn.run import VALIDATION_EPISODES
from cosmo.node import Method
from cosmo.policy.registry import made, with_parameters
from cosmo.scenario import Scenario, without_trace
from cosmo.study.executor import Executor
from cosmo.study.players import Here, InFolder, Player
from cosmo.study.pool import LocalExecutor
from cosmo.study.search import batches
from cosmo.study.space import Over, Setting, Space, corners, grid, space_of
from cosmo.study.statistics import paired_over_loads
from cosmo.study.tuned import Tuned
from cosmo.study.units import PlayUnit, at_load
from cosmo.study.verdict import mean_over_loads
from cosmo.tables import write_table

FORMAT, RECORD, TRIALS, UNITS = 1, "tune.json", "trials.parquet", "units"
GREATER_IS_BETTER = (
    "success_rate", "net_utility_per_task", "utility_per_task", "decision_accuracy",
    "accepted_success_rate", "route_accuracy",
)  # fmt: skip
_SHOWN = ("success_rate", "net_utility_per_task", "update_cost_rate")
_MOST_TRIALS = 100_000


@dataclass(frozen=True)
class Question:
    """What is searched, and on which workloads."""

    method: str  # by its name; of a class without a file, the class's name
    space: Space
    scenario: Scenario
    arrivals: tuple[str, ...]
    rates: tuple[float, ...]
    seeds: tuple[int, ...]
    episodes: int  # of each run, at each load
    metric: str
    seed: int  # of the search

    def units(self, name: str, fresh: bool = False) -> list[PlayUnit]:
        """A method on all loads; on episodes of the search, or on as many that are not in it."""
        first = VALIDATION_EPISODES + (self.episodes if fresh else 0)
        return [
            PlayUnit(self.scenario, process, self.rates, name, self.seeds, self.episodes, first)
            for process in self.arrivals
        ]

    def named(self, setting: Setting) -> str:
        """The method with a setting."""
        return with_parameters(self.method, setting)

    def document(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {
            "method": self.method,
            "over": {name: str(axis) for name, axis in self.space.items()},
            "scenario": self.scenario.model_dump(mode="json"),
            "arrivals": list(self.arrivals),
            "rates": list(self.rates),
            "seeds": list(self.seeds),
            "episodes": self.episodes,
            "metric": self.metric,
            "seed": self.seed,
        }


def tune(
    scenario: ScenarioLike,
    method: str | type[Method],
    over: Over,
    *,
    rates: Iterable[float] | None = None,
    arrivals: str | Sequence[str] | None = None,
    seeds: Iterable[int] = (0, 1, 2),
    episodes: int = 5,
    trials: int = 32,
    metric: str = "success_rate",
    settings: Settings = (),
    search_seed: int = 0,
    out: str | Path | None = None,
    workers: int | None = None,
) -> Tuned:
    """Choose parameters of a method on validation workloads, never on those of evaluation.

    `method` is a name as on the command line (`"mine.py:Mine"`, `"power-of-d:keep=4"`), played by
    `workers` processes (all cores), or a class, played in this process. `over` names parameters:
    `{"threshold_ms": (0, 30)}` for a range, `{"keep": [2, 3, 5]}` for values, or as on the command
    line, `["interval_ms=1:1000:log"]`. Up to `trials` settings are tried; all, if there are no
    more. Each plays `episodes` episodes of every run (`seeds`) at every load. The greatest mean of
    `metric` wins. With `out`, a folder keeps what is finished, and the same call goes on there.

    The best setting is compared with the default on as many episodes again that were not used to
    choose it. Ranges need Optuna. Raises InputError in one line for what is not there or not
    allowed.
    """
    where = as_scenario(scenario, settings)
    question = question_of(
        where, method, over, rates=rates, arrivals=arrivals, seeds=seeds, episodes=episodes,
        metric=metric, search_seed=search_seed,
    )  # fmt: skip
    if isinstance(method, type):
        if out is not None:
            raise InputError("out: only with a method by name, as in mine.py:Mine")
        return answered(question, Here(method), trials)
    with ExitStack() as stack:
        folder = Path(out or stack.enter_context(tempfile.TemporaryDirectory()))
        return tuned_in(folder, question, LocalExecutor(workers), trials)


def question_of(
    scenario: Scenario,
    method: str | type[Method],
    over: Over,
    *,
    rates: Iterable[float] | None,
    arrivals: str | Sequence[str] | None,
    seeds: Iterable[int],
    episodes: int,
    metric: str,
    search_seed: int,
) -> Question:
    """The arguments of `tune`, checked. A trace is replaced by Poisson arrivals, as in training."""
    if isinstance(method, str):
        kind, fixed = kind_of(method)
        name = method
    else:
        kind, fixed, name = method, {}, method.__name__
    if metric not in GREATER_IS_BETTER:
        close = did_you_mean(metric, GREATER_IS_BETTER)
        allowed = ", ".join(GREATER_IS_BETTER)
        raise InputError(f"--metric = {metric!r}: must be one of {allowed}{close}")
    if not 1 <= episodes <= VALIDATION_EPISODES // 4:
        raise InputError(f"--episodes = {episodes}: must be from 1 to {VALIDATION_EPISODES // 4}")
    runs = tuple(seeds)
    if not runs or len(set(runs)) < len(runs):
        raise InputError(f"--seeds = {list(runs)}: must be different, and one at least")
    world = without_trace(scenario)
    processes = (arrivals,) if isinstance(arrivals, str) else tuple(arrivals or ())
    question = Question(
        method=name,
        space=space_of(kind, over, fixed),
        scenario=world,
        arrivals=processes or (world.workload.arrivals,),
        rates=tuple(float(rate) for rate in rates or (world.workload.rate,)),
        seeds=runs,
        episodes=episodes,
        metric=metric,
        seed=search_seed,
    )
    for process in question.arrivals:
        for rate in question.rates:
            at_load(world, process, rate)
    for setting in corners(question.space):  # what a constructor refuses is refused at once
        _made(question, method, setting)
    return question


def _made(question: Question, given: str | type[Method], setting: Setting) -> None:
    name = question.named(setting)
    if isinstance(given, str):
        method(name)
    else:
        made(name, given, name.partition(":")[2])


def tuned_in(
    folder: Path,
    question: Question,
    executor: Executor,
    trials: int,
    told: Callable[[float], None] = lambda share: None,
) -> Tuned:
    """The answer, found in a folder; what is finished there is not done again.

    Raises InputError if the folder is another tuning's, or another run is at work in it.
    """
    with only_run(folder), executor.kept():
        _prepare(folder, question)
        found = answered(question, InFolder(folder / UNITS, executor), trials, told)
        write_table(folder / TRIALS, found.to_frame())
        return found


def _prepare(folder: Path, question: Question) -> None:
    document = question.document()
    if (folder / RECORD).exists():
        before = read_record(folder / RECORD, "there is no tuning", "cosmo tune", FORMAT)
        for name, value in document.items():
            if before.get(name) != value:
                raise InputError(
                    f"--out = '{folder}': has a tuning with another {name}; choose another folder"
                )
        return
    if any(folder.iterdir()):
        raise InputError(f"--out = '{folder}': is not empty and has no tuning in it")
    write_record(folder / RECORD, {"format": FORMAT, "version": cosmo.__version__, **document})


def answered(
    question: Question,
    player: Player,
    trials: int,
    told: Callable[[float], None] = lambda share: None,
) -> Tuned:
    """Play settings until all trials are done, then the best and the default on fresh episodes."""
    if not 1 <= trials <= _MOST_TRIALS:
        raise InputError(f"--trials = {trials}: must be from 1 to {_MOST_TRIALS}")
    few = grid(question.space, trials)
    count, processes, done = len(few) if few else trials, len(question.arrivals), 0
    whole = (count + 3) * processes  # trials, the default, and both again

    def one_more() -> None:
        nonlocal done
        done += 1
        told(min(done / whole, 1.0))

    default, rows = question.method, list[dict[str, Any]]()
    frames: dict[str, polars.DataFrame | str] = {}
    source = batches(question.space, trials, question.seed)
    asked: list[Setting] = next(source)
    while asked:
        names = [question.named(setting) for setting in asked]
        new = [name for name in dict.fromkeys([default, *names]) if name not in frames]
        frames |= _played(question, player, new, one_more)
        if isinstance(frames[default], str):
            raise InputError(f"{default}: {frames[default]}")
        rows += [_trial(question, default, {}, frames[default])] if not rows else []
        rows += [
            _trial(question, name, setting, frames[name])
            for name, setting in zip(names, asked, strict=True)
        ]
        try:
            asked = source.send([_value(frames[name], question.metric) for name in names])
        except StopIteration:
            break
    known = [row for row in rows if row[question.metric] is not None]
    if not known:
        raise InputError(f"{default}: {question.metric} could not be measured in any trial")
    best = max(known, key=lambda row: float(row[question.metric]))
    pair = list(dict.fromkeys([best["method"], default]))
    fresh = _played(question, player, pair, one_more, fresh=True)
    return _told(question, rows, best, fresh)


def _played(
    question: Question,
    player: Player,
    names: Sequence[str],
    told: Callable[[], None],
    fresh: bool = False,
) -> dict[str, polars.DataFrame | str]:
    """Rows of each method on all loads, or why one of them failed."""
    units = {name: question.units(name, fresh) for name in names}
    found = player.play([unit for own in units.values() for unit in own], told)
    together: dict[str, polars.DataFrame | str] = {}
    for name, own in units.items():
        parts = [found[unit.name] for unit in own]
        causes = [part for part in parts if isinstance(part, str)]
        frames = [part for part in parts if not isinstance(part, str)]
        together[name] = causes[0] if causes else polars.concat(frames, how="diagonal")
    return together


def _value(frame: polars.DataFrame | str, metric: str) -> float | None:
    value = math.nan if isinstance(frame, str) else mean_over_loads(frame, metric)
    return None if math.isnan(value) else value


def _trial(
    question: Question, name: str, setting: Setting, frame: polars.DataFrame | str
) -> dict[str, Any]:
    """A row of the table of trials."""
    metrics = dict.fromkeys([question.metric, *_SHOWN])
    return {
        "method": name,
        **{parameter: setting.get(parameter) for parameter in question.space},
        **{metric: _value(frame, metric) for metric in metrics},
        "failed": frame if isinstance(frame, str) else None,
    }


def _told(
    question: Question,
    rows: list[dict[str, Any]],
    best: dict[str, Any],
    fresh: dict[str, polars.DataFrame | str],
) -> Tuned:
    frames = []
    for name, frame in fresh.items():
        if isinstance(frame, str):
            raise InputError(f"{name}: {frame}")
        frames.append(frame)
    metrics, default, metric = (
        polars.concat(frames, how="diagonal"),
        question.method,
        question.metric,
    )
    several = len(question.seeds) * question.episodes > 1
    return Tuned(
        method=str(best["method"]),
        parameters={name: best[name] for name in question.space if best[name] is not None},
        default=default,
        metric=metric,
        trials=polars.DataFrame(rows, infer_schema_length=None),
        best_mean=mean_over_loads(metrics.filter(method=best["method"]), metric),
        default_mean=mean_over_loads(metrics.filter(method=default), metric),
        difference=paired_over_loads(metrics, best["method"], default, metric)
        if len(frames) > 1 and several
        else None,
        document=question.document(),
        checked_on=len(question.seeds) * question.episodes,
    )
