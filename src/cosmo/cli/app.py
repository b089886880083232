"""All commands of `cosmo`, gathered."""

from typing import Annotated

import typer

from cosmo.cli import (
    bound,
    compare,
    evaluate,
    export,
    importing,
    live,
    methods,
    ns3,
    play,
    report,
    run,
    scenario,
    schema,
    serve,
    simulate,
    study,
    train,
    tune,
    view,
    workload,
)
from cosmo.cli.versions import versions

app = typer.Typer(
    name="cosmo",
    help="Status updating and selective offloading at the network edge.",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command("run")(run.run)
app.command("compare")(compare.compare)
app.command("simulate")(simulate.simulate)
app.command("train")(train.train)
app.command("tune")(tune.tune)
app.command("evaluate")(evaluate.evaluate)
app.command("export")(export.export)
app.command("bound")(bound.bound)
app.command("report")(report.report)
app.command("view")(view.view)
app.command("play")(play.play)
app.command("workload")(workload.workload)
app.command("import")(importing.import_trace)
app.command("methods")(methods.methods)
app.command("schema")(schema.schema)
app.add_typer(study.app, name="study")
app.add_typer(serve.app, name="serve")
app.add_typer(live.app, name="live")
app.add_typer(scenario.app, name="scenario")
app.add_typer(ns3.app, name="ns3")


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="With --version: also of engines and libraries.")
    ] = False,
) -> None:
    if version:
        typer.echo("\n".join(versions(everything)))
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())
