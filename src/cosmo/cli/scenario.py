"""`cosmo scenario`: list the presets, show a scenario in full, check a file."""

from typing import Annotated

import typer
from rich.table import Table

from cosmo.cli.console import print_json
from cosmo.cli.console import show as show_table
from cosmo.cli.options import JsonOption, SetOption
from cosmo.scenario import dump, load, preset_names

app = typer.Typer(help="List, show and check scenarios.")


@app.command("list")
def list_presets(as_json: JsonOption = False) -> None:
    """List the presets.

    cosmo scenario list
    """
    if as_json:
        print_json(
            [{"scenario": name, "description": load(name).description} for name in preset_names()]
        )
        return
    table = Table("scenario", "what it is", box=None, pad_edge=False)
    for name in preset_names():
        table.add_row(name, load(name).description)
    show_table(table)


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="A preset's name or a TOML file.")],
    settings: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print a scenario with all its fields, as TOML or JSON.

    cosmo scenario show campus --set sn.slots=6
    """
    scenario = load(name, settings or [])
    typer.echo(scenario.model_dump_json(indent=2) if as_json else dump(scenario).rstrip())


@app.command()
def check(
    file: Annotated[str, typer.Argument(help="A TOML file or a preset's name.")],
    settings: SetOption = None,
) -> None:
    """Check a scenario; a mistake is reported in one line.

    cosmo scenario check mine.toml
    """
    scenario = load(file, settings or [])
    typer.echo(f"{file}: fine ({scenario.en.count} EN, {scenario.sn.count} SN)")
