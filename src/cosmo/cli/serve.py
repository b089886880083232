"""`cosmo serve`: run a node as a daemon. Imports neither simulator nor training."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    help="Run an edge node, a service node, an endpoint picker or its agent as a daemon.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

ConfigOption = Annotated[
    str,
    typer.Option(
        "--config", "-c", help="A TOML file that extends the preset en, sn, picker or agent."
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", help="Set a field, e.g. method.use=priced-books. Repeatable."),
]
HandlerOption = Annotated[
    str | None,
    typer.Option(help="What runs tasks: emulate, module:function, or a program after `command:`."),
]


def _settings(settings: list[str] | None, handler: str | None) -> list[str]:
    found = list(settings or [])
    if handler == "emulate":
        found += ["handler.kind=emulate", 'handler.target=""']
    elif handler is not None and handler.startswith("command:"):
        found += ["handler.kind=command", f"handler.target={handler.removeprefix('command:')!r}"]
    elif handler is not None:
        found += ["handler.kind=python", f"handler.target={handler!r}"]
    return found


def _serve(role: str, config: str, settings: list[str] | None, handler: str | None) -> None:
    from cosmo.live.daemon import serve

    serve(role, Path(config), _settings(settings, handler))


@app.command("en")
def en(  # type: ignore[no-untyped-def]
    config: ConfigOption = "en",
    settings: SetOption = None,
    handler: HandlerOption = None,
    http: Annotated[
        str | None, typer.Option(help="Take HTTP requests there, too, e.g. 127.0.0.1:8080.")
    ] = None,
):
    """Run an edge node until SIGTERM; SIGHUP reads the file again.

    cosmo serve en --config nodes/en0.toml --handler my_functions:resize
    cosmo serve en --config en.toml --http 127.0.0.1:8080
    """
    told = [*(settings or []), *([f"http.listen={http}"] if http is not None else [])]
    _serve("en", config, told, handler)


@app.command("sn")
def sn(config: ConfigOption = "sn", settings: SetOption = None, handler: HandlerOption = None):  # type: ignore[no-untyped-def]
    """Run a service node until SIGTERM; SIGHUP reads the file again.

    cosmo serve sn --config nodes/sn0.toml --set method.use=priced-books
    """
    _serve("sn", config, settings, handler)


@app.command("picker")
def picker(config: ConfigOption = "picker", settings: SetOption = None):  # type: ignore[no-untyped-def]
    """Choose endpoints for Envoy until SIGTERM; SIGHUP reads the file again.

    cosmo serve picker --set picker.endpoints=static:10.0.0.1:8000,10.0.0.2:8000
    """
    _serve("picker", config, settings, None)


@app.command("agent")
def agent(config: ConfigOption = "agent", settings: SetOption = None):  # type: ignore[no-untyped-def]
    """Tell pickers of the load of a service, by its own metrics, until SIGTERM.

    cosmo serve agent --set agent.url=http://127.0.0.1:8000/metrics --set node.slots=4
    """
    _serve("agent", config, settings, None)
