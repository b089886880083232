"""`cosmo.tune`: parameters of a method, chosen by Optuna on validation workloads.

Tuning plays the episodes that a training is validated on (R25), so that no workload of an
evaluation helps to choose a parameter. The best setting is then compared with the default on as
many further validation episodes: on the episodes that chose it, its lead is partly luck.

The result depends on the seeds and not on the number of processes: Optuna is asked for settings in
batches of a fixed size and given their values in their order. To resume a search is to repeat it,
with what is finished read from the folder.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import polars

import cosmo
from cosmo.control.arguments import (
    ScenarioLike,
    as_scenario,
    several,
    several_seeds,
    whole_number,
)
from cosmo.device import environment_of
from cosmo.documents import Settings
from cosmo.errors import InputError
from cosmo.files import made_folder, only_run, read_record, temporary_folder, write_record
from cosmo.measure import METRICS
from cosmo.node import Method
from cosmo.scenario import without_trace
from cosmo.study import checks
from cosmo.study.executor import Executor, Failed, Finished, carry_out
from cosmo.study.pool import LocalExecutor, environment
from cosmo.study.search import Search, as_text, as_texts, grid, optuna_module
from cosmo.study.statistics import Difference, mean_over_loads, paired_over_loads
from cosmo.study.units import PlayUnit, result_table
from cosmo.tables import read_parquet, write_table

SHOWN = ("success_rate", "net_utility_per_task", "update_cost_rate")
_FORMAT, _RECORD = 1, "tune.json"
_BATCH = 8

# Plays units: (a unit's name, its `result_table`), in any order. If a unit fails, its table has one
# column, `failed`: why, in one line.
Play = Callable[[Sequence[PlayUnit]], Iterator[tuple[str, polars.DataFrame]]]
Progress = Callable[[float], None]  # the share of the work that is done


@dataclass(frozen=True, repr=False)
class Tuned:
    """The result of `cosmo.tune`.

    `best_mean`, `default_mean` and `difference` are measured on validation episodes that the search
    did not use; the numbers of the trials on those that it used.
    """

    search: Search  # what was asked
    method: str  # the best, by a name that can be pasted; the default's if nothing beat it
    parameters: Mapping[str, str]  # its setting, as text; empty if it is the default
    trials: polars.DataFrame
    best_mean: float  # of the metric, over the loads
    default_mean: float
    difference: Difference | None  # best minus default, paired; None if there is nothing to compare
    study: Any = None  # Optuna's, for `optuna.visualization` and `optuna.importance`

    @property
    def checked_on(self) -> int:
        """Episodes of the comparison with the default, at each load."""
        return len(self.search.seeds) * self.search.episodes

    def to_frame(self) -> polars.DataFrame:
        """A row for every trial, in the order in which they were tried, the default first.

        Columns: `method`, each parameter as text (null: its default), the metric, success, net
        utility and update cost as means over the loads, `failed` (the cause, or null).
        """
        return self.trials

    def ranked(self) -> polars.DataFrame:
        """The same, best first, every method once; what failed comes last."""
        once = self.trials.unique("method", maintain_order=True, keep="first")
        return once.sort(self.search.metric, descending=True, nulls_last=True, maintain_order=True)

    def sentence(self) -> str:
        """The best setting against the default, in words."""
        metric, lead = METRICS[self.search.metric], self.difference
        title, digits = metric.title, metric.digits
        where = f"on {self.checked_on} validation episodes that the search did not use"
        if not self.parameters:
            value = f"{title} {self.default_mean:.{digits}f}"
            return f"No setting beats the default {self.search.method} ({value} {where})."
        setting = ", ".join(f"{name}={value}" for name, value in self.parameters.items())
        means = f"{title} {self.best_mean:.{digits}f} against {self.default_mean:.{digits}f}"
        if lead is None or not lead.known:
            return f"{setting}: {means} of the default, {where}, too few to say which is better."
        how = "and the default cannot be told apart"
        if lead.low > 0.0 or lead.high < 0.0:
            how = "beats the default" if lead.low > 0.0 else "is worse than the default after all"
        interval = f"{lead.mean:+.{digits}f} [{lead.low:+.{digits}f}, {lead.high:+.{digits}f}]"
        return f"{setting} {how}: {means}, {interval}, {where}."

    def __repr__(self) -> str:
        return f"<Tuned {self.method}: {self.sentence()}>"


def tune(
    scenario: ScenarioLike,
    method: str | type[Method],
    over: Mapping[str, Any] | Iterable[str],
    *,
    rates: float | Iterable[float] | None = None,
    arrivals: str | Sequence[str] | None = None,
    seeds: int | Iterable[int] = (0, 1, 2),
    episodes: int = 5,
    trials: int = 32,
    metric: str = "success_rate",
    settings: Settings = (),
    search_seed: int = 0,
    out: str | Path | None = None,
    workers: int | None = None,
    device: str | None = None,
) -> Tuned:
    """Choose parameters of a method on validation workloads, never on those of evaluation.

    The best setting is compared with the default on as many episodes again that were not used to
    choose it.

    Args:
        scenario: A scenario, a preset's name or the path of a TOML file; a trace is replaced by
            Poisson arrivals.
        method: A name as on the command line (`"mine.py:Mine"`, `"power-of-d:keep=4"`), or a class,
            which is played in this process.
        over: Parameters and what to try: `{"threshold_ms": (0, 30)}` for a range,
            `{"keep": [2, 3]}` for values, or as on the command line, `["interval_ms=1:1000:log"]`.
        rates: Tasks/s in each cell, one or several; the scenario's by default.
        arrivals: One or several arrival processes; the scenario's by default.
        seeds: One or several, one run a seed.
        episodes: Validation episodes of each run at each load.
        trials: Settings to try at most; all of them, if there are no more.
        metric: The setting with the greatest mean of it over the loads is chosen.
        settings: Fields of the scenario, `{"sn.slots": 6}` or `["sn.slots=6"]`.
        search_seed: The seed of the search.
        out: A folder that keeps what is finished; the same call resumes there.
        workers: Processes, all cores by default.
        device: "cpu" or "gpu", where rules are played, with the same results; by default, what
            `COSMO_DEVICE` says.

    Returns:
        The best setting, all trials, and the comparison with the default.

    Raises:
        InputError: In one line, for what is unknown or not allowed, a folder of another search, or
            if Optuna is missing.

    """
    world, place = without_trace(as_scenario(scenario, settings)), environment_of(device)
    processes = [arrivals] if isinstance(arrivals, str) else arrivals
    search = Search(
        scenario=world,
        method=method if isinstance(method, str) else method.__name__,
        over=as_texts(over),
        arrivals=tuple(processes or [world.workload.arrivals]),
        rates=tuple([world.workload.rate] if rates is None else several(rates)),
        seeds=tuple(several_seeds(seeds)),
        episodes=whole_number("episodes", episodes),
        metric=metric,
        seed=whole_number("search_seed", search_seed, 0, 2**32 - 1),
        trials=whole_number("trials", trials),
        kind=None if isinstance(method, str) else method,
    )
    if search.kind is not None:
        if out is not None:
            raise InputError("out: only with a method by name, as in mine.py:Mine")
        with environment(place):
            return tuned(search)
    with ExitStack() as stack:
        stack.enter_context(environment(place))
        # The temporary folder itself is locked, as that of a run is.
        folder = Path(out) if out else stack.enter_context(temporary_folder()) / "tuning"
        return tuned_in(folder, search, LocalExecutor(workers))


def tuned_in(
    folder: Path, search: Search, executor: Executor, progress: Progress = lambda share: None
) -> Tuned:
    """The same as `tuned`, played by an executor; what is finished in the folder is not played.

    Raises InputError also if the folder is another search's, or another run is at work in it.
    """
    with only_run(folder), executor.kept():
        _prepare(folder, search.document())
        result = tuned(search, in_folder(folder / "units", executor), progress)
        write_table(folder / "trials.parquet", result.to_frame())
        return result


def tuned(
    search: Search, play: Play | None = None, progress: Progress = lambda share: None
) -> Tuned:
    """The best of the default and all settings tried, compared with the default.

    The same for the same search, whoever plays (this process, unless `play` is given) and in
    whichever order. Raises InputError if the default fails, or the metric cannot be measured.
    """
    optuna, space = optuna_module(), search.space()
    sampler = optuna.samplers.TPESampler(seed=search.seed)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    distributions = {name: axis.distribution() for name, axis in space.items()}
    listed = grid(space, search.trials)
    for values in listed:
        study.enqueue_trial(values)
    count, default, rows = len(listed) or search.trials, search.method, list[dict[str, Any]]()
    whole = (count + 3) * len(search.arrivals)  # trials, the default, and the comparison
    known: dict[str, polars.DataFrame] = {}  # by unit

    def played(names: Sequence[str], fresh: bool = False) -> list[polars.DataFrame]:
        """Of each method over all loads."""
        units = [search.units(name, fresh) for name in names]
        new = {unit.name: unit for own in units for unit in own if unit.name not in known}
        for name, frame in (play or in_this_process(search))(list(new.values())):
            known[name] = frame
            progress(len(known) / whole)
        tables = ([known[unit.name] for unit in own] for own in units)
        return [polars.concat(own, how="diagonal") for own in tables]

    for first in range(0, count, _BATCH):
        asked = [study.ask(distributions) for _ in range(min(_BATCH, count - first))]
        settings = [{name: as_text(trial.params[name]) for name in space} for trial in asked]
        batch = [{}, *settings] if not rows else settings
        frames = played([search.named(setting) for setting in batch])
        rows += [_row(search, *each) for each in zip(batch, frames, strict=True)]
        if rows[0]["failed"] is not None:
            raise InputError(f"{default}: {rows[0]['failed']}")
        for trial, row in zip(asked, rows[-len(asked) :], strict=True):
            value = row[search.metric]
            study.tell(trial, value, optuna.trial.TrialState.FAIL if value is None else None)
    measured = [row for row in rows if row[search.metric] is not None]
    if not measured:
        raise InputError(f"{default}: {search.metric} could not be measured in any trial")
    best = max(measured, key=lambda row: float(row[search.metric]))
    check = played([best["method"], default], fresh=True)
    for name, frame in zip((best["method"], default), check, strict=True):
        if failed := _failure(frame):
            raise InputError(f"{name}: {failed}")
    lead = None
    if best["method"] != default and len(search.seeds) * search.episodes > 1:
        both = polars.concat(check, how="diagonal")
        lead = paired_over_loads(both, best["method"], default, search.metric)
    return Tuned(
        search=search,
        method=best["method"],
        parameters={name: best[name] for name in space if best[name] is not None},
        trials=polars.DataFrame(rows, infer_schema_length=None),
        best_mean=mean_over_loads(check[0], search.metric),
        default_mean=mean_over_loads(check[1], search.metric),
        difference=lead,
        study=study,
    )


def in_this_process(search: Search) -> Play:
    """Plays units one after the other."""

    def play(units: Sequence[PlayUnit]) -> Iterator[tuple[str, polars.DataFrame]]:
        for unit in units:
            try:
                yield unit.name, result_table(unit.played(search.made))
            except InputError as error:
                yield unit.name, polars.DataFrame({"failed": [str(error)]})

    return play


def in_folder(folder: Path, executor: Executor) -> Play:
    """Has an executor play units, each in a folder of its own; what is finished is only read."""

    def play(units: Sequence[PlayUnit]) -> Iterator[tuple[str, polars.DataFrame]]:
        for unit in units:
            if checks.damage(folder / unit.name):
                checks.discard(folder / unit.name)
        left = [unit for unit in units if not checks.finished(folder / unit.name)]
        events = list(map(Finished, (unit for unit in units if unit not in left)))
        for event in chain(events, executor.run(left, folder, carry_out) if left else ()):
            path = folder / event.unit.name / checks.METRICS_FILE
            if isinstance(event, Failed):
                yield event.unit.name, polars.DataFrame({"failed": [event.cause]})
            elif isinstance(event, Finished):
                yield event.unit.name, read_parquet(path, f"'{path}': is damaged")

    return play


def _failure(frame: polars.DataFrame) -> str | None:
    return frame["failed"].drop_nulls()[0] if "failed" in frame.columns else None


def _row(search: Search, setting: Mapping[str, str], frame: polars.DataFrame) -> dict[str, Any]:
    """A row of the table of trials."""
    failed = _failure(frame)
    means = {metric: mean_over_loads(frame, metric) for metric in (search.metric, *SHOWN)}
    return {
        "method": search.named(setting),
        **{parameter: setting.get(parameter) for parameter in search.over},
        **{name: None if failed or math.isnan(mean) else mean for name, mean in means.items()},
        "failed": failed,
    }


def _prepare(folder: Path, document: Mapping[str, Any]) -> None:
    """Make the folder this search's; InputError if it has another one's results, or other files."""
    empty = made_folder(folder)
    if (folder / _RECORD).exists():
        before = read_record(folder / _RECORD, "there is no tuning", "cosmo tune", _FORMAT)
        for name in (name for name, value in document.items() if before.get(name) != value):
            raise InputError(
                f"out = '{folder}': has a tuning with another {name}; choose another folder"
            )
    elif not empty:
        raise InputError(f"out = '{folder}': is not empty and has no tuning in it")
    else:
        about = {"format": _FORMAT, "version": cosmo.__version__, **document}
        write_record(folder / _RECORD, about)
