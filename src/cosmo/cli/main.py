"""The `cosmo` command: gathers the commands and turns what went wrong into one line."""

import sys
from contextlib import suppress
from typing import Annotated, NoReturn

import typer

import cosmo
from cosmo.cli import (
    calibrate,
    evaluate,
    methods,
    ns3,
    report,
    run,
    scenario,
    simulate,
    streams,
    study,
    train,
    workload,
)
from cosmo.errors import EngineError, InputError

_INTERRUPTED = 130

app = typer.Typer(
    name="cosmo",
    help="Status updating and selective offloading at the network edge.",
    add_completion=False,
    pretty_exceptions_enable=False,
)

app.command("run")(run.run)
app.command("simulate")(simulate.simulate)
app.command("train")(train.train)
app.command("evaluate")(evaluate.evaluate)
app.command("report")(report.report)
app.command("workload")(workload.workload)
app.command("methods")(methods.methods)
app.add_typer(study.app, name="study")
app.add_typer(scenario.app, name="scenario")
app.add_typer(ns3.app, name="ns3")
app.add_typer(calibrate.app, name="calibrate")


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    if version:
        typer.echo(f"cosmo {cosmo.__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    """Run a command. Exit codes: 0 done, 1 an engine failed, 2 bad input, 130 interrupted."""
    streams.prepare()
    try:
        code = app(standalone_mode=False)
        sys.stdout.flush()
    except InputError as error:
        _fail(str(error), 2)
    except EngineError as error:
        _fail(str(error), 1)
    except typer.TyperException as error:
        _fail(error.format_message().replace("\n", " "), 2)
    except (KeyboardInterrupt, typer.Abort):
        code = _INTERRUPTED
    except BrokenPipeError:
        streams.abandon(sys.stdout)
        sys.exit(141)
    except OSError as error:  # of a stream: what becomes of files is said where it happens
        streams.abandon(sys.stdout)
        _fail(f"output: cannot be written ({error.strerror or error})", 2)
    if code == _INTERRUPTED:  # some versions of typer return it, some raise
        _fail("interrupted, nothing was left half-written", _INTERRUPTED)
    sys.exit(code if isinstance(code, int) else 0)


def _fail(message: str, code: int) -> NoReturn:
    with suppress(OSError):
        typer.echo(f"cosmo: {streams.one_line(message)}", err=True)
    sys.exit(code)
