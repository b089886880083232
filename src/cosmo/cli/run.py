"""`cosmo run`: the main job. Train CoSMO at one load and compare it with every baseline."""

from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE
from rich.table import Table

from cosmo.cli.console import notes, show
from cosmo.cli.options import ScenarioOption, SetOption
from cosmo.cli.study import WorkersOption, chosen_executor, conducted
from cosmo.cli.train import TRAINING, seeds_from
from cosmo.control import BASELINES

# What is shown of a method, the column's title and digits; with an interval where there is room.
_SHOWN = (
    ("success_rate", "success", 3),
    ("decision_accuracy", "accuracy", 3),
    ("net_utility_per_task", "net utility", 1),
    ("update_cost_rate", "cost", 1),
)
_WITH_INTERVAL = ("success_rate",)


def run(
    scenario_name: ScenarioOption = "paper",
    arrivals: Annotated[
        str, typer.Option(help="Arrival processes, separated by commas.")
    ] = "deterministic,poisson",
    rate: Annotated[float, typer.Option(help="Tasks/s in each cell.")] = 320.0,
    settings: SetOption = None,
    seeds: Annotated[str, typer.Option(help="Seeds of the runs, e.g. 0,1,2.")] = "0,1,2",
    episodes: Annotated[int, typer.Option(help="Evaluation episodes of each run.")] = 5,
    workers: WorkersOption = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder to write to.")] = Path(
        "cosmo-run"
    ),
) -> None:
    """Train cosmo at one load, compare it with every baseline on equal workloads, report."""
    from cosmo.study import load, plan_checked
    from cosmo.study.report import write_report

    chosen = settings or []
    plan = plan_checked(
        {
            "name": "run",
            "description": f"CoSMO and every baseline at {rate:g} tasks/s",
            "scenarios": [scenario_name],
            "settings": [item for item in chosen if not item.startswith(TRAINING)],
            "arrivals": [name.strip() for name in arrivals.split(",")],
            "rates": [rate],
            "seeds": seeds_from(seeds),
            "episodes": episodes,
            "training": {
                "settings": [
                    item.removeprefix(TRAINING) for item in chosen if item.startswith(TRAINING)
                ]
            },
            "compare": [{"methods": ["cosmo", *BASELINES]}],
        }
    )
    right = conducted(plan, out, chosen_executor("local", workers, None))
    study = load(out)
    written = write_report(study, out / "report")
    _print_tables(study)
    notes.print(f"metrics: {out / 'metrics.parquet'}\nopen {written.page}", soft_wrap=True)
    if not right:
        raise typer.Exit(1)


def _print_tables(study) -> None:  # type: ignore[no-untyped-def]
    """A row a method, best first; the paper's own numbers in brackets."""
    from cosmo.study.statistics import summarise, with_paper

    summary = with_paper(summarise(study.metrics), study.plan)
    for process in summary["arrivals"].unique(maintain_order=True):
        here = summary.filter(arrivals=process)
        title = (
            f"{here['scenario'][0]}, {process}, {here['rate'][0]:g} tasks/s (paper's in brackets)"
        )
        table = Table(title=title, title_style="bold", title_justify="left", box=SIMPLE)
        table.add_column("method", min_width=22, no_wrap=True)
        for _, title, _ in _SHOWN:
            table.add_column(title, justify="right", no_wrap=True)
        order = here.filter(metric="success_rate").sort("mean", descending=True)["method"]
        for name in order:
            cells = []
            for metric, _, digits in _SHOWN:
                row = here.filter(method=name, metric=metric).row(0, named=True)
                text = "–" if row["mean"] is None else f"{row['mean']:.{digits}f}"
                if row["ci95"] is not None and metric in _WITH_INTERVAL:
                    text += f" ± {row['ci95']:.{digits}f}"
                if row["paper"] is not None:
                    text += f"\n({row['paper']:.{digits}f})"
                cells.append(text)
            table.add_row(name, *cells)
        show(table)
