"""A plan carried out, unit by unit; what is finished in its folder is not done again.

plan.toml        the plan
results.parquet  a row for every episode of every method, at each load and time scale
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from types import FrameType

import polars

from cosmo.errors import InputError
from cosmo.files import made_folder, only_run, whole_file
from cosmo.live.bed.compare import Compared, compared
from cosmo.live.bed.grounds import Ground, check_fifo
from cosmo.live.bed.namespaces import namespaces
from cosmo.live.bed.plan import BedPlan, Key, bed_plan_text, load_bed_plan
from cosmo.live.bed.results import pace_told
from cosmo.tables import read_parquet, write_table

PLAN, RESULTS = "plan.toml", "results.parquet"

Note = Callable[[str], None]


def conducted(
    plan: BedPlan, out: Path | None = None, note: Note = lambda line: None
) -> list[Compared]:
    """All rows of a plan, in its order; in a folder they are kept as they come.

    Rows without a verdict that are there from an earlier attempt are played again.
    """
    with ExitStack() as held:
        held.enter_context(_told_to_end())
        if out is not None:
            held.enter_context(only_run(out))
        done: dict[Key, Compared] = {} if out is None else _begun(out, plan)
        units = list(plan.units())
        left = [unit for unit in units if unit.key not in done]
        for scale in plan.scales:
            own = [unit for unit in left if unit.scale == scale]
            if not own:
                continue
            with _ground_of(plan, scale) as ground:
                for unit in own:
                    load = f"{unit.scenario.workload.rate:g} tasks/s, {pace_told(scale)}"
                    run = f"run {unit.seed}, episode {unit.episode}"
                    note(f"{len(done) + 1} of {len(units)}: {unit.method}, {load}, {run}")
                    done[unit.key] = compared(unit, ground, plan.most_late_ms)
                    if out is not None:
                        write_table(out / RESULTS, table_of(list(done.values())))
        return [done[unit.key] for unit in units]


def table_of(rows: list[Compared]) -> polars.DataFrame:
    """A row an episode; shares are of measured tasks."""
    return polars.DataFrame([asdict(row) for row in rows])


def read_rows(folder: Path) -> list[Compared]:
    """What a folder has so far; none if it has nothing."""
    path = folder / RESULTS
    try:
        table = read_parquet(path, f"'{path}': is not a table of cosmo live run")
    except FileNotFoundError:
        return []
    try:
        return [Compared(**row) for row in table.iter_rows(named=True)]
    except TypeError:
        raise InputError(f"'{path}': was written by another version of cosmo") from None


def _begun(folder: Path, plan: BedPlan) -> dict[Key, Compared]:
    """Make the folder this plan's, or go on in it; what it has with a verdict."""
    empty = made_folder(folder)
    path = folder / PLAN
    if path.exists():
        before = load_bed_plan(path)
        for name in BedPlan.model_fields:
            if getattr(before, name) != getattr(plan, name):
                raise InputError(
                    f"--out = '{folder}': has results of a plan with another {name}; choose"
                    " another folder"
                )
        return {row.key: row for row in read_rows(folder) if row.valid}
    if not empty:
        raise InputError(f"--out = '{folder}': is not empty and has no results in it")
    with whole_file(path) as temporary:
        temporary.write_text(bed_plan_text(plan), encoding="utf-8")
    return {}


@contextmanager
def _ground_of(plan: BedPlan, scale: float) -> Iterator[Ground]:
    """What a plan asks for; InputError in one line where this machine does not allow it."""
    if plan.fifo:
        check_fifo(plan.fifo)
    if plan.transport == "loopback":
        yield Ground(plan.fifo)
        return
    with namespaces(plan.loads()[0], scale, plan.fifo) as ground:
        yield ground


@contextmanager
def _told_to_end() -> Iterator[None]:
    """Within the block SIGTERM ends this process by an exception, so that nothing stays behind."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
