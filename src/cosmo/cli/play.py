"""`cosmo play`: the playground in a browser."""

from pathlib import Path
from typing import Annotated

import typer

from cosmo.cli.console import note


def play(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for what is exported.")] = Path(
        "playground"
    ),
    opened: Annotated[bool, typer.Option("--open/--no-open", help="Open it in a browser.")] = True,
) -> None:
    """Watch two methods on one site, and change load, nodes, prices and faults while they work.

    Served on this machine alone, to whoever has the address that is printed.

    cosmo play --out exported
    """
    from cosmo.web.playground import playground_application
    from cosmo.web.server import serve

    serve(lambda port, token: playground_application(port, token, out), opened, note)
