"""Runs a command line, of all commands or of a node's alone; bad input is reported in one line."""

import typer

from cosmo.cli import serve
from cosmo.errors import InputError

_INTERRUPTED = 130

node_app = typer.Typer(name="cosmo", add_completion=False, pretty_exceptions_enable=False)
node_app.add_typer(serve.app, name="serve")


@node_app.callback()
def _root() -> None:
    """Status updating and selective offloading at the network edge."""


def carried_out(app: typer.Typer) -> int:
    """The exit code of the command line.

    Raises InputError for bad input, what is wrong with the command line as well, EngineError if an
    engine failed, KeyboardInterrupt, and OSError if the output cannot be written.
    """
    try:
        code = app(standalone_mode=False)
    except typer.TyperException as error:
        raise InputError(error.format_message().replace("\n", " ")) from None
    except typer.Abort:
        code = _INTERRUPTED
    if code == _INTERRUPTED:  # some versions of typer return it, some raise
        raise KeyboardInterrupt
    return code if isinstance(code, int) else 0
