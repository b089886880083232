"""Terminal output: progress and notes on standard error, tables on standard output."""

import json
import math
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import typer
from rich.box import SIMPLE
from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from cosmo.control.simulate import ShareDone
from cosmo.engine import engine_of
from cosmo.measure import MACHINE, METRICS, Interval, interval_text
from cosmo.scenario import Scenario, load
from cosmo.workload import episode
from cosmo.world import Worlds

_LARGE = 100.0  # numbers from here on need fewer digits

# Names and causes are anybody's text: `[/home/me]` is no markup, `:x:` no picture.
notes = Console(stderr=True, highlight=False, markup=False, emoji=False)


def show(what: RenderableType) -> None:
    """Print a table or a line on standard output; lines are not wrapped."""
    Console(highlight=False, markup=False, emoji=False).print(what, soft_wrap=isinstance(what, str))


def note(*lines: str) -> None:
    """Print lines on standard error; they are not wrapped."""
    for line in lines:
        notes.print(line, soft_wrap=True)


def show_words(text: str) -> None:
    """Print a sentence on standard output, wrapped between words."""
    Console(highlight=False, markup=False, emoji=False).print(text)


def print_json(document: object) -> None:
    """Print a document as JSON; null where there is no number (NaN, infinities)."""
    typer.echo(json.dumps(_finite(document), indent=2, allow_nan=False))


def _finite(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return value


def words(template: str) -> TextColumn:
    """A column of a progress bar whose texts are shown literally."""
    return TextColumn(template, markup=False)


@contextmanager
def progress(text: str) -> Iterator[ShareDone]:
    """A progress bar on standard error, if it is a terminal."""
    columns = words("{task.description}"), BarColumn(), TimeRemainingColumn()
    with Progress(*columns, console=notes, transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task(text, total=1.0)
        yield lambda share: bar.update(task, completed=share)


def prepare_engine(*scenarios: Scenario) -> None:
    """Have the engines of scenarios ready; compiling (once on each machine) is announced."""
    notice = threading.Timer(2.0, notes.print, ["compiling the engine, once on this machine …"])
    notice.daemon = True
    notice.start()
    try:
        for each in {(each.engine, each.live): each for each in scenarios}.values():
            engine_of(each).prepare(each)
        short = load("paper", ["episode.window_ms=1", "episode.warmup_ms=0"])
        Worlds(short, [episode(short, 0, 0)]).advance()
    finally:
        notice.cancel()


def number(value: float, digits: int = 3) -> str:
    """The number, rounded; a dash if there is none."""
    return "–" if math.isnan(value) else f"{value:.{digits}f}"


def metrics_table(title: str, metrics: Mapping[str, Interval], replications: int) -> Table:
    """Every metric with its interval and its meaning; for two replications, with their range."""
    table = Table("metric", title=title, title_justify="left", title_style="bold", box=SIMPLE)
    two = replications == 2
    table.add_column("both" if two else "mean", justify="right")
    if not two:
        table.add_column("± 95 %", justify="right")
    table.add_column("what it is")
    for name, value in metrics.items():
        digits = 4 if abs(value.mean) < _LARGE else 2
        if two:
            cells = [interval_text(value.mean, value.ci95, 2, digits)]
        else:
            cells = [number(value.mean, digits), number(value.ci95, digits)]
        table.add_row(name, *cells, (METRICS | MACHINE)[name].meaning)
    return table
