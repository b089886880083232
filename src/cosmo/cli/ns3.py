"""`cosmo ns3`: install ns-3's libraries and check the engine."""

import time

import typer

from cosmo.cli.console import note

app = typer.Typer(help="Install and check the engine ns3.", no_args_is_help=True)


@app.command("install")
def install() -> None:
    """Install ns-3 from its wheel (70 MB), without its dependencies, and compile our network.

    cosmo ns3 install
    """
    from cosmo.ns3 import library

    folder = library.install()
    library.compiled_network()
    note(f"ns-3 {library.VERSION} is in {folder}")


@app.command("check")
def check() -> None:
    """Play a second of the paper's world on ns-3.

    cosmo ns3 check
    """
    from cosmo.control import method, simulate
    from cosmo.ns3 import library
    from cosmo.scenario import load

    folder = library.ns3_folder()
    scenario = load("paper", ["engine=ns3", "episode.window_ms=1000", "episode.warmup_ms=0"])
    start = time.monotonic()
    result = simulate(scenario, method("self-tracking"))
    success = result.metrics["success_rate"].mean
    typer.echo(
        f"ns-3 in {folder}: fine ({len(result.outcomes[0].tasks)} tasks, success {success:.3f},"
        f" {time.monotonic() - start:.1f} s)"
    )
