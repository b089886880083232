"""`cosmo live`: write files for daemons, watch daemons."""

import time
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE
from rich.table import Table

from cosmo.cli.console import note, show
from cosmo.cli.options import ScenarioOption, SetOption
from cosmo.errors import InputError
from cosmo.files import made_folder, whole_file
from cosmo.scenario import load

app = typer.Typer(help="Real nodes: configure, watch.")


@app.command()
def config(
    scenario_name: ScenarioOption = "paper",
    settings: SetOption = None,
    method_name: Annotated[
        str, typer.Option("--method", "-m", help="The method of all nodes.")
    ] = "priced-books",
    out: Annotated[Path, typer.Option(help="The folder for the files.")] = Path("nodes"),
    for_whom: Annotated[
        str, typer.Option("--for", help="nodes, or envoy: an Envoy that asks a picker.")
    ] = "nodes",
    picker: Annotated[str, typer.Option(help="The picker's file, with --for envoy.")] = "picker",
    listen: Annotated[
        str, typer.Option(help="Where Envoy takes requests, with --for envoy.")
    ] = "127.0.0.1:8080",
    shadow: Annotated[
        bool, typer.Option(help="Envoy shows the picker its requests and does not obey.")
    ] = False,
    bodies: Annotated[
        bool, typer.Option(help="Bodies go through the picker, which sees where answers end.")
    ] = False,
) -> None:
    """Write a TOML file for every EN and SN of a scenario, for this machine; or Envoy's own.

    cosmo live config --scenario campus --method self-tracking --out nodes
    cosmo live config --for envoy --picker picker.toml --out nodes
    """
    if for_whom == "envoy":
        _write_envoy(picker, listen, shadow, bodies, out)
        return
    if for_whom != "nodes":
        raise InputError(f"--for = {for_whom!r}: must be nodes or envoy")
    from cosmo.live.config import changed_config, config_text, load_config
    from cosmo.live.scenario_files import configs_of
    from cosmo.policy.registry import method

    scenario = load(scenario_name, settings or [])
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
        note(f"wrote {out / each.name}.toml")


def _write_envoy(picker: str, listen: str, shadow: bool, bodies: bool, out: Path) -> None:
    import json

    from cosmo.live.config import load_config
    from cosmo.live.picker.envoy_config import envoy_of

    config = load_config(picker)
    if config.role != "picker":
        raise InputError(f"--picker = {picker!r}: role = {config.role!r}: must be 'picker'")
    document = envoy_of(config, listen, shadow, bodies)
    made_folder(out)
    with whole_file(out / "envoy.json") as path:
        path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    note(f"wrote {out / 'envoy.json'}")


@app.command()
def top(
    addresses: Annotated[list[str], typer.Argument(help="Admin addresses, host:port.")],
    every: Annotated[float, typer.Option(help="Seconds between two readings.")] = 1.0,
    looks: Annotated[int, typer.Option(help="Number of readings; 0: until interrupted.")] = 0,
) -> None:
    """Show what daemons are doing, one line for each, repeatedly.

    cosmo live top 127.0.0.1:7300 127.0.0.1:7400
    """
    if not 0.1 <= every <= 3600.0:
        raise InputError(f"--every = {every:g}: must be from 0.1 to 3600, in seconds")
    from cosmo.live.top import HEADER, check_addresses, line_of, scraped

    check_addresses(addresses)
    before, taken = {address: scraped(address) for address in addresses}, 0
    while looks == 0 or taken < looks:
        time.sleep(every)
        table = _wide_enough(HEADER)
        for address in addresses:
            now = scraped(address)
            table.add_row(*line_of(address, now, before[address], every))
            before[address] = now
        show(table)
        taken += 1


@app.command()
def watch(
    addresses: Annotated[list[str], typer.Argument(help="Admin addresses, host:port.")],
    every: Annotated[float, typer.Option(help="Seconds between two readings.")] = 0.5,
    opened: Annotated[bool, typer.Option("--open/--no-open", help="Open it in a browser.")] = True,
) -> None:
    """Show a map of running daemons in a browser: their work, and the last status of it at each EN.

    Nodes are read on their admin ports and never asked for anything else.

    cosmo live watch 127.0.0.1:7300 127.0.0.1:7400
    """
    from cosmo.live.top import check_addresses
    from cosmo.web.server import serve
    from cosmo.web.watching import FASTEST_S, watching_application

    if not FASTEST_S <= every <= 3600.0:
        raise InputError(f"--every = {every:g}: must be from {FASTEST_S:g} to 3600, in seconds")
    check_addresses(addresses)
    serve(lambda port, token: watching_application(port, token, addresses, every), opened, note)


def _wide_enough(header: tuple[str, ...]) -> Table:
    """Names wrap in a narrow terminal; numbers are never cut."""
    table = Table(box=SIMPLE, padding=(0, 1, 0, 0))
    for name in header[:2]:
        table.add_column(name, overflow="fold")
    for name in header[2:]:
        table.add_column(name, justify="right", no_wrap=True)
    return table
