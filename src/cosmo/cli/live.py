"""`cosmo live`: simulator against real nodes, files for daemons, and what daemons are doing."""

import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE
from rich.table import Table

from cosmo.cli.console import notes, number, prepare_engine, print_json, show
from cosmo.cli.options import (
    ArrivalsOption,
    JsonOption,
    RateOption,
    ScenarioOption,
    SeedOption,
    SetOption,
    check_run,
    chosen_scenario,
)
from cosmo.errors import InputError
from cosmo.files import made_folder, whole_file

app = typer.Typer(help="Real nodes: compare with the simulator, configure, watch.")


@app.command()
def run(
    methods: Annotated[
        list[str], typer.Option("--method", "-m", help="A method's name. Repeatable.")
    ],
    scenario_name: ScenarioOption = "paper",
    arrivals: ArrivalsOption = None,
    rate: RateOption = None,
    settings: SetOption = None,
    seed: SeedOption = 0,
    episodes: Annotated[int, typer.Option(help="How many episodes of each method.")] = 1,
    scale: Annotated[float, typer.Option(help="How many times slower than real time.")] = 5.0,
    fifo: Annotated[
        int, typer.Option(help="Real-time priority of the daemons (chrt -f); 0: none.")
    ] = 0,
    as_json: JsonOption = False,
) -> None:
    """Play episodes in the simulator and on daemons of this machine, side by side."""
    scenario = chosen_scenario(scenario_name, settings, arrivals, rate, None)
    check_run(seed, episodes)
    if not 0.1 <= scale <= 1000.0:
        raise InputError(f"--scale = {scale:g}: must be from 0.1 to 1000")
    if not 0 <= fifo <= 50:
        raise InputError(f"--fifo = {fifo}: must be from 0 to 50")
    if scenario.fading.factors != (1.0, 1.0) or any(scenario.background.rates):
        raise InputError(
            f"scenario = {scenario.name!r}: has links that fade or background load, which daemons"
            " cannot emulate"
        )
    from cosmo.live.testbed import MOST_LATE_MS, compared

    prepare_engine(scenario)
    prefix = ("chrt", "-f", str(fifo)) if fifo else ()
    found = compared(
        scenario, methods, range(episodes), scale, seed, prefix, lambda line: notes.print(line)
    )
    if as_json:
        print_json([{**asdict(each), "valid": each.valid} for each in found])
        return
    title = f"{scenario.name}, {scenario.workload.arrivals}, {scenario.workload.rate:g} tasks/s"
    title += f", {scale:g} times slower: share of tasks in time"
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE)
    table.add_column("method", overflow="fold")
    for name in ("sim", "live", "live - sim", "same", "late ms"):
        table.add_column(name, justify="right", no_wrap=True)
    for spec in methods:
        own = [each for each in found if each.method == spec]
        mean = {
            name: sum(getattr(each, name) for each in own) / len(own)
            for name in ("simulated", "live", "same")
        }
        valid = all(each.valid for each in own)
        table.add_row(
            spec,
            number(mean["simulated"]),
            number(mean["live"]),
            f"{mean['live'] - mean['simulated']:+.3f}" if valid else "no verdict",
            number(mean["same"]),
            number(max(each.timer_p99_ms for each in own), 2),
        )
    show(table)
    if not all(each.valid for each in found):
        notes.print(
            f"no verdict where timers were late by more than {MOST_LATE_MS:g} ms (p99, `late ms`)"
            " or calls failed: slow down (--scale) or ask for priority (--fifo)"
        )


@app.command()
def config(
    scenario_name: ScenarioOption = "paper",
    settings: SetOption = None,
    method_name: Annotated[
        str, typer.Option("--method", "-m", help="Who decides on all nodes.")
    ] = "priced-books",
    out: Annotated[Path, typer.Option(help="The folder for the files.")] = Path("nodes"),
) -> None:
    """Write a TOML file for every EN and SN of a scenario, for this machine."""
    from cosmo.live.config import changed_config, config_text, load_config
    from cosmo.live.sites import configs_of
    from cosmo.policy.registry import method

    scenario = chosen_scenario(scenario_name, settings, None, None, None)
    method(method_name)
    fields: dict[str, object] = {"method.use": method_name}
    ens, sns = configs_of(
        scenario,
        changed_config(load_config("en"), {**fields, "admin": "127.0.0.1:7300"}),
        changed_config(load_config("sn"), {**fields, "admin": "127.0.0.1:7400"}),
    )
    made_folder(out)
    for each in (*ens, *sns):
        with whole_file(out / f"{each.name}.toml") as path:
            path.write_text(config_text(each), encoding="utf-8")
        notes.print(f"wrote {out / each.name}.toml", soft_wrap=True)


@app.command()
def top(
    addresses: Annotated[list[str], typer.Argument(help="Admin addresses, host:port.")],
    every: Annotated[float, typer.Option(help="Seconds between looks.")] = 1.0,
    looks: Annotated[int, typer.Option(help="How often to look; 0: until interrupted.")] = 0,
) -> None:
    """Show what daemons are doing, line by line, again and again."""
    if not 0.1 <= every <= 3600.0:
        raise InputError(f"--every = {every:g}: must be from 0.1 to 3600, in seconds")
    from cosmo.live.top import HEADER, line_of, scraped

    before, taken = {address: scraped(address) for address in addresses}, 0
    while looks == 0 or taken < looks:
        time.sleep(every)
        table = Table(*HEADER, box=SIMPLE)
        for address in addresses:
            now = scraped(address)
            table.add_row(*line_of(address, now, before[address], every))
            before[address] = now
        show(table)
        taken += 1
