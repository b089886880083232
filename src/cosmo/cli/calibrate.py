"""`cosmo calibrate`: the embedded world fitted to ns-3."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE
from rich.table import Table

from cosmo.cli.console import notes, prepare_engine, print_json, progress, show
from cosmo.cli.options import (
    ArrivalsOption,
    EpisodesOption,
    JsonOption,
    ScenarioOption,
    SetOption,
    check_output,
    check_run,
    chosen_scenario,
)
from cosmo.errors import InputError
from cosmo.files import whole_file
from cosmo.scenario import changed, dump

app = typer.Typer(help="Fit the embedded world to ns-3.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Keeps `access` a command of its own."""


@app.command("access")
def access(
    scenario_name: ScenarioOption = "paper",
    arrivals: ArrivalsOption = None,
    rates: Annotated[
        str | None,
        typer.Option(help="Tasks/s, e.g. 120,220 (default: the scenario's rates of interest)."),
    ] = None,
    settings: SetOption = None,
    seed: Annotated[int, typer.Option(help="Seed of the workloads.")] = 1000,
    episodes: EpisodesOption = 2,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write the fitted scenario to this file.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure the uplink on ns-3 and fit the fields of `access` (R6) to it.

    cosmo calibrate access --rates 120,220,320 --out access.toml
    """
    from cosmo.ns3.calibrate import calibrate

    scenario = chosen_scenario(scenario_name, settings, arrivals, None)
    check_run(seed, episodes)
    if out is not None:
        check_output(out, (".toml",))
    chosen = _rates(rates) if rates is not None else scenario.workload.rates_of_interest
    prepare_engine(scenario.model_copy(update={"engine": "ns3"}))
    with progress(f"uplink of {scenario.name} on ns-3") as share_done:
        found = calibrate(scenario, chosen, seed, episodes, share_done)
    fields = {
        "rate_mbps": found.rate_mbps,
        "overhead_ms": found.overhead_ms,
        "contention_ms": found.contention_ms,
    }
    if out is not None:
        named = {"name": f"{scenario.name}-calibrated"}
        fitted = changed(scenario, named | {f"access.{k}": v for k, v in fields.items()})
        with whole_file(out) as temporary:
            temporary.write_text(dump(fitted) + "\n", encoding="utf-8")
    if as_json:
        fits = [asdict(fit) for fit in found.fits]
        document = {"scenario": scenario.name, "access": fields, "rates": fits}
        print_json(document)
        return
    title = f"uplink of {scenario.name} ({scenario.workload.arrivals}), ns-3 against R6"
    table = Table("tasks/s", title=title, title_justify="left", title_style="bold", box=SIMPLE)
    for name in ("tasks", "lost", "mean, ms", "R6", "error", "p95, ms", "R6", "error"):
        table.add_column(name, justify="right", no_wrap=True)
    for fit in found.fits:
        table.add_row(
            f"{fit.rate:g}",
            f"{fit.tasks}",
            f"{fit.lost}",
            *_compared(fit.mean_ms, fit.embedded_mean_ms),
            *_compared(fit.p95_ms, fit.embedded_p95_ms),
        )
    show(table)
    typer.echo("\n".join(f"access.{name} = {value}" for name, value in fields.items()))
    if out is not None:
        notes.print(f"wrote {out}", soft_wrap=True)


def _compared(real: float, ours: float) -> tuple[str, str, str]:
    return f"{real:.2f}", f"{ours:.2f}", f"{ours / real - 1:+.1%}"


def _rates(text: str) -> list[float]:
    try:
        rates = [float(part) for part in text.split(",")]
    except ValueError:
        rates = []
    if not rates or not all(0 < rate <= 1e6 for rate in rates):
        raise InputError(f"--rates = {text!r}: must be numbers greater than 0, as in 120,220")
    return rates
