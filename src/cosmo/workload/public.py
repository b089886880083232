"""Public traces of other people's clusters as tasks of a scenario.

    azure-functions-2021   Azure Functions Invocation Trace 2021: app, func, end_timestamp, duration
    alibaba-batch-2018     Alibaba cluster-trace-v2018, batch_task.csv: no header, nine columns
    azure-llm-2023         Azure LLM inference trace: TIMESTAMP, ContextTokens, GeneratedTokens
    burstgpt               BurstGPT: Timestamp, Model, Request tokens, Response tokens, Log Type

Such a trace knows when work came, how much it was and who asked for it. It knows nothing of uploads
and deadlines. So times, their bunching, the order of demands and who asks are the trace's, and the
rest is the scenario's: input sizes are drawn from `workload.input_bytes`, deadlines follow R3.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars
from numpy.typing import NDArray

from cosmo.errors import InputError
from cosmo.files import MOST_TABLE, opened
from cosmo.scenario import Scenario
from cosmo.seeds import Purpose, stream
from cosmo.workload.cells import check_columns, one_line
from cosmo.workload.logs import filled
from cosmo.workload.table import Tasks

Floats = NDArray[np.float64]
_ALIBABA = (
    "task_name", "instance_num", "job_name", "task_type", "status", "start_time", "end_time",
    "plan_cpu", "plan_mem",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a public trace says, a row for each task in any order."""

    start_s: Floats
    work_s: Floats  # of one core
    group: list[str]  # who belongs together: an application, a job
    member: list[str]  # who asks within the group
    clock_s: float = 0.0  # starts are multiples of it, if the trace is that coarse


def azure_functions_2021(file: Path) -> Recorded:
    """A row an invocation; it began `duration` before `end_timestamp`, both in seconds."""
    table = _table(file, ("app", "func", "end_timestamp", "duration"), header=True)
    end, duration = _numbers(file, table, "end_timestamp"), _numbers(file, table, "duration")
    function = table.select(polars.concat_str("app", "func", separator="/")).to_series()
    return Recorded(end - duration, duration, table["app"].to_list(), function.to_list())


def alibaba_batch_2018(file: Path) -> Recorded:
    """A row a task of a batch job; those that did not end well in the recorded time are left out.

    Work is the time from start to end on `plan_cpu` hundredths of a core. Times are whole seconds.
    """
    table = _table(file, _ALIBABA, header=False)
    table = table.filter(polars.col("status") == "Terminated")
    start, end = _numbers(file, table, "start_time"), _numbers(file, table, "end_time")
    cores = _numbers(file, table, "plan_cpu", unknown=100.0) / 100.0
    good = (start > 0.0) & (end >= start)  # 0 means outside the recorded time
    kept = table.filter(polars.Series(good))
    work = (end - start) * cores
    member = kept.select(polars.concat_str("job_name", "task_name", separator="/")).to_series()
    return Recorded(start[good], work[good], kept["job_name"].to_list(), member.to_list(), 1.0)


def azure_llm_2023(file: Path) -> Recorded:
    """A row a request; its work is taken to be in proportion to the tokens that it generates."""
    table = _table(file, ("TIMESTAMP", "ContextTokens", "GeneratedTokens"), header=True)
    start = np.empty(len(table))
    for row, text in enumerate(table["TIMESTAMP"]):
        try:
            start[row] = datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
        except (TypeError, ValueError):
            line = table["line"][row]
            raise InputError(
                f"'{file}', line {line}: TIMESTAMP = {text!r}: must be a date and time"
            ) from None
    everybody = [str(row) for row in range(len(table))]  # the trace does not say who asks
    return Recorded(start, _numbers(file, table, "GeneratedTokens"), everybody, everybody)


def burstgpt(file: Path) -> Recorded:
    """A row a request, in whole seconds; those without a response failed and are left out."""
    names = ("Timestamp", "Model", "Response tokens", "Log Type")
    table = _table(file, names, header=True)
    tokens = _numbers(file, table, "Response tokens")
    start, good = _numbers(file, table, "Timestamp"), tokens > 0.0
    kept = table.filter(polars.Series(good))
    member = kept.select(polars.concat_str("Model", "Log Type", separator="/")).to_series()
    return Recorded(start[good], tokens[good], kept["Model"].to_list(), member.to_list(), 1.0)


FORMATS: dict[str, Callable[[Path], Recorded]] = {
    "azure-functions-2021": azure_functions_2021,
    "alibaba-batch-2018": alibaba_batch_2018,
    "azure-llm-2023": azure_llm_2023,
    "burstgpt": burstgpt,
}


def imported(
    recorded: Recorded, scenario: Scenario, rate: float, most: int | None = None, seed: int = 0
) -> Tasks:
    """The first `most` tasks of a public trace as tasks of a scenario.

    Time is stretched or shrunk so that `rate` tasks a second come to each cell on average, and
    starts at 0. Starts by a coarse clock are spread over its ticks. Work is scaled so that its
    median is the middle of `workload.cycles` and cut off at both ends of that. Groups take the
    cells by turns in order of appearance, their members the UEs.
    """
    if not rate > 0:
        raise InputError(f"rate = {rate:g}: must be greater than 0")
    if not len(recorded.start_s):
        raise InputError("the trace has no task that began and ended in it")
    start = recorded.start_s
    if recorded.clock_s:
        later = stream(seed, Purpose.ARRIVALS, 0).uniform(0.0, recorded.clock_s, len(start))
        start = start + later
    order = np.argsort(start, kind="stable")[:most]
    start = start[order]
    ens = scenario.en.count
    span_s = float(start[-1] - start[0])
    wanted_ms = 1000.0 * (len(order) - 1) / (rate * ens)
    time = (start - start[0]) * (wanted_ms / span_s if span_s > 0.0 else 0.0)
    en = _by_turns([recorded.group[k] for k in order], ens)
    ue = _by_turns([recorded.member[k] for k in order], scenario.ues)
    low, high = scenario.workload.cycles
    work = recorded.work_s[order]
    median = float(np.median(work[work > 0.0])) if (work > 0.0).any() else 1.0
    cycles = np.clip(np.round(work / median * 0.5 * (low + high)), low, high)
    return filled(scenario, time, en, ue, {"cycles": cycles}, seed, [])


def _by_turns(names: list[str], places: int) -> NDArray[np.int64]:
    """The place of each name: the first name takes place 0, the second 1, and so on, and round."""
    seen: dict[str, int] = {}
    return np.array([seen.setdefault(name, len(seen)) for name in names], np.int64) % places


def _table(file: Path, columns: tuple[str, ...], header: bool) -> polars.DataFrame:
    """The columns of a CSV file as texts."""
    names: Any = None if header else list(columns)
    try:
        with one_line(f"'{file}'"), opened(file, MOST_TABLE):  # Polars reads it by its name
            table = polars.read_csv(file, has_header=header, new_columns=names, infer_schema=False)
    except polars.exceptions.PolarsError as error:
        raise InputError(f"'{file}': is no CSV file ({str(error).splitlines()[0]})") from None
    check_columns(file, table.columns, columns)
    return table.with_row_index("line", offset=2 if header else 1)


def _numbers(
    file: Path, table: polars.DataFrame, name: str, unknown: float | None = None
) -> Floats:
    """A column of numbers of 0 or more; what is empty is `unknown`, or refused with its line."""
    read = table[name].str.strip_chars().cast(polars.Float64, strict=False)
    if unknown is not None:
        read = polars.select(
            polars.when(table[name].fill_null("") == "").then(unknown).otherwise(read)
        ).to_series()
    values = read.fill_null(float("nan")).to_numpy()
    bad = ~(np.isfinite(values) & (values >= 0.0))
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"'{file}', line {table['line'][row]}: {name} = {table[name][row]!r}: must be a number,"
            " 0 or greater"
        )
    return np.asarray(values, np.float64)
