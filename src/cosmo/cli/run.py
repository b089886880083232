"""`cosmo run`: the main job. Every method on equal workloads, over all loads of interest."""

from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from cosmo.cli.console import compile_engine, notes, number, progress
from cosmo.cli.options import EpisodesOption, ScenarioOption, SeedOption, SetOption, check_run
from cosmo.control import BASELINES, FEATURED
from cosmo.errors import InputError
from cosmo.files import write_table
from cosmo.scenario import load
from cosmo.study import Comparison, compare
from cosmo.study.figures import success_figure


def run(
    scenario_name: ScenarioOption = "paper",
    settings: SetOption = None,
    seed: SeedOption = 0,
    episodes: EpisodesOption = 5,
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder to write to.")] = Path(
        "cosmo-run"
    ),
) -> None:
    """Compare every method at every load of interest, and write the table and the figure."""
    scenario = load(scenario_name, settings or [])
    check_run(seed, episodes)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--out = '{out}': cannot be made a folder ({error.strerror})") from None
    compile_engine()
    with progress(f"{scenario.name}: {len(BASELINES)} methods") as share_done:
        comparison = compare(
            scenario_name,
            settings or [],
            arrivals=("deterministic", "poisson"),
            rates=scenario.workload.rates_of_interest,
            methods=BASELINES,
            seed=seed,
            episodes=episodes,
            share_done=share_done,
        )
    write_table(out / "metrics.csv", comparison.table)
    success_figure(comparison, out / "success.png", FEATURED)
    for process in ("deterministic", "poisson"):
        Console().print(_table(comparison, process))
    notes.print(f"wrote {out / 'metrics.csv'} and {out / 'success.png'}", soft_wrap=True)


def _table(comparison: Comparison, process: str) -> Table:
    """Success rates, a row a method and a column a load; the paper's own in brackets."""
    title = f"{comparison.scenario.name}, {process} arrivals: success rate (paper) by tasks/s"
    here = comparison.table.filter(arrivals=process, metric="success_rate")
    rates = here["rate"].unique(maintain_order=True)
    table = Table(title=title, title_style="bold", title_justify="left", box=SIMPLE)
    table.add_column("method", min_width=22, no_wrap=True)
    for rate in rates:
        table.add_column(f"{rate:g}", justify="right")
    for (name,), rows in here.group_by("method", maintain_order=True):
        cells = [
            number(mean) + ("" if paper is None else f"\n({paper:.3f})")
            for mean, paper in rows.select("mean", "paper").iter_rows()
        ]
        table.add_row(str(name), *cells)
    return table
