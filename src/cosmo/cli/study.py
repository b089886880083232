"""`cosmo study`: run whole plans, in local processes or on a cluster."""

import sys
import time
from pathlib import Path
from typing import Annotated

import tomli_w
import typer
from rich.progress import BarColumn, Progress, TaskID
from rich.table import Table

from cosmo.cli import options
from cosmo.cli.comparison import print_results
from cosmo.cli.console import note, notes, prepare_engine, print_json, show, words
from cosmo.cli.loads import overplayed_notices, unread_notices
from cosmo.errors import InputError

_LINE_EVERY_S = 20.0  # in logs, where there are no bars
_DIGEST, _LONGEST = 11, 34  # of a unit's name: what follows what people read, and how much of that

app = typer.Typer(help="Run and inspect studies.", no_args_is_help=True)

PlanArgument = Annotated[str, typer.Argument(help="A preset's name or a TOML file.")]
FolderArgument = Annotated[Path, typer.Argument(help="The study's folder.")]
WorkersOption = Annotated[
    int | None, typer.Option(help="Processes to use (default: as many as cores).")
]


@app.command("list")
def list_plans(as_json: options.JsonOption = False) -> None:
    """List the plans that come with the package.

    cosmo study list
    """
    from cosmo.study import load_plan, plan_names
    from cosmo.study.work import units_of

    plans = [load_plan(name) for name in plan_names()]
    if as_json:
        rows = [{"plan": plan.name, "description": plan.description} for plan in plans]
        print_json(rows)
        return
    table = Table("plan", "what it compares", "units", box=None, pad_edge=False)
    for plan in plans:
        table.add_row(plan.name, plan.description, str(len(units_of(plan))))
    show(table)


@app.command("show")
def show_plan(plan_name: PlanArgument) -> None:
    """Print a plan as a complete TOML file, to start your own from.

    cosmo study show baselines
    """
    from cosmo.documents import dump
    from cosmo.study import load_plan

    typer.echo(dump(load_plan(plan_name, code="skip")))


@app.command("status")
def status(folder: FolderArgument, as_json: options.JsonOption = False) -> None:
    """Show the progress of a study.

    cosmo study status mine
    """
    from cosmo.study import progress_of
    from cosmo.study.plan_files import plan_from
    from cosmo.study.store import read_about

    about = read_about(folder)
    plan = plan_from(about["plan"], about["resolved"])
    progress = progress_of(folder, plan)
    if as_json:
        document = {
            "plan": plan.name,
            "units": len(progress.units),
            "finished": progress.done,
            "left": [name for name, share in progress.share.items() if share < 1.0],
            "failed": progress.failed,
            "damaged": progress.damaged,
        }
        print_json(document)
        return
    show(
        f"{plan.name} in {folder}: {progress.done} of {len(progress.units)} units finished,"
        f" {progress.total:.0%} of the work"
    )
    for what in ("failed", "damaged"):
        for name, cause in getattr(progress, what).items():
            show(f"{what}: {name}: {cause}")


@app.command("run")
def run(
    plan_name: PlanArgument,
    out: options.OutOption,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="Set a field of the plan. Repeatable.")
    ] = None,
    runs: Annotated[
        int | None, typer.Option(help="Number of runs, with seeds 0, 1, …, instead of the plan's.")
    ] = None,
    engines: options.EnginesOption = None,
    workers: WorkersOption = None,
    device: options.DeviceOption = None,
    executor: Annotated[str, typer.Option(help="local or ray.")] = "local",
    address: Annotated[
        str | None, typer.Option(help="Address of a Ray cluster; without it, one is started here.")
    ] = None,
    trust: Annotated[
        bool,
        typer.Option("--trust", help="Run the policies (file.py:Class, sb3:model) it names."),
    ] = False,
) -> None:
    """Run a plan; units that are already finished in the folder are not repeated.

    cosmo study run paper-quick --out quick

    cosmo study run mine.toml --out mine --trust --set 'seeds=[0, 1, 2, 3, 4]'
    """
    from cosmo.study import load_plan, load_study
    from cosmo.study.checks import METRICS_FILE
    from cosmo.study.method_files import runs_code

    chosen = [] if engines is None else [tomli_w.dumps({"engines": options.words_of(engines)})]
    if runs is not None:
        if runs < 1:
            raise InputError(f"--runs = {runs}: must be 1 or greater")
        chosen.append(tomli_w.dumps({"seeds": list(range(runs))}))
    plan = load_plan(plan_name, [*(settings or []), *chosen], "run" if trust else "refuse")
    right = conducted(plan, out, chosen_executor(executor, workers, address))
    if (out / METRICS_FILE).exists():
        print_results(load_study(out))
    own = " --trust" if any(map(runs_code, plan.methods)) else ""
    note(f"next: cosmo report {out}{own}")
    if not right:
        raise typer.Exit(1)


def chosen_executor(name: str, workers: int | None, address: str | None):  # type: ignore[no-untyped-def]
    """The executor: local processes or Ray."""
    from cosmo.study import LocalExecutor

    if workers is not None and workers < 1:
        raise InputError(f"--workers = {workers}: must be 1 or greater")
    if name == "local":
        if address is not None:
            raise InputError("--address: only with --executor ray")
        return LocalExecutor(workers)
    if name == "ray":
        from cosmo.study.ray_cluster import RayExecutor

        return RayExecutor(address, workers)
    raise InputError(f"--executor = {name!r}: must be local or ray")


def conducted(plan, out: Path, executor) -> bool:  # type: ignore[no-untyped-def]
    """Run a plan and show its progress; True if no unit failed."""
    from cosmo.study import conduct
    from cosmo.study.work import notices

    note(*notices(plan))
    scenarios = [scenario for scenario, *_ in plan.points()]
    prepare_engine(*scenarios)
    start = time.monotonic()
    with _Show(plan.name) as told:
        progress = conduct(plan, out, executor, told)
    for name, cause in progress.damaged.items():
        note(f"was damaged and is done again: {name}: {cause}")
    for name, cause in progress.failed.items():
        note(f"failed: {name}: {cause}")
    note(
        f"{plan.name}: {progress.done} of {len(progress.units)} units finished"
        f" in {_clock(time.monotonic() - start)}; wrote {out}",
    )
    for scenario in {each.name: each for each in scenarios}.values():
        told_of_trace = overplayed_notices(scenario, plan.seeds, plan.episodes)
        note(*unread_notices(scenario), *told_of_trace)
    return not progress.failed


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"


def _unit(name: str) -> str:
    """The short name of a unit, without the digest at its end."""
    plain = name[:-_DIGEST]
    return plain if len(plain) <= _LONGEST else f"…{plain[1 - _LONGEST :]}"


class _Show:
    """A bar for the whole study and one for every running unit; occasional lines in logs."""

    def __init__(self, title: str) -> None:
        self._title, self._start, self._next = title, time.monotonic(), 0.0
        self._first: float | None = None
        self._tasks: dict[str, TaskID] = {}
        self._bars = Progress(
            words("{task.description}"),
            BarColumn(bar_width=30),
            words("{task.percentage:>3.0f} %  {task.fields[told]}"),
            console=notes,
            transient=True,
            disable=not sys.stderr.isatty(),
        )
        self._whole = self._bars.add_task(title, total=1.0, told="")

    def __enter__(self) -> "_Show":
        self._bars.start()
        return self

    def __exit__(self, *unused: object) -> None:
        self._bars.stop()

    def __call__(self, progress) -> None:  # type: ignore[no-untyped-def]
        total, passed = progress.total, time.monotonic() - self._start
        if self._first is None:
            self._first = total  # what was finished before took none of this time
        gained = total - self._first
        left = f"{_clock(passed * (1 - total) / gained)} left" if gained > 0.01 else ""
        told = f"{progress.done}/{len(progress.units)} units  {left}"
        self._bars.update(self._whole, completed=total, told=told)
        for name in [*self._tasks]:
            if name not in progress.at_work:
                self._bars.remove_task(self._tasks.pop(name))
        for name in progress.at_work:
            if name not in self._tasks:
                self._tasks[name] = self._bars.add_task(f"  {_unit(name)}", total=1.0, told="")
            self._bars.update(self._tasks[name], completed=progress.share[name])
        if self._bars.disable and passed >= self._next and progress.at_work:
            self._next = passed + _LINE_EVERY_S
            first, *others = progress.at_work
            more = f" and {len(others)} more" if others else ""
            percent = int(100.0 * total)  # not 100 before the end
            line = f"{self._title}: {percent}%  {told.strip()}  at {_unit(first)}{more}"
            note(line)
