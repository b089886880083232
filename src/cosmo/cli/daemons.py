"""The commands of a node: what `cosmo serve` needs, without the simulator."""

import typer

from cosmo.cli import serve
from cosmo.cli.running import carried_out

app = typer.Typer(name="cosmo", add_completion=False, pretty_exceptions_enable=False)
app.add_typer(serve.app, name="serve")


@app.callback()
def _root() -> None:
    """Status updating and selective offloading at the network edge."""


def run_command() -> int:
    """Run the command line of the process and return its exit code."""
    return carried_out(app)
