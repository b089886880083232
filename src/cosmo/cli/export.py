"""`cosmo export`: the networks of a training as ONNX files."""

from pathlib import Path
from typing import Annotated

import typer

from cosmo.cli import options
from cosmo.cli.console import note
from cosmo.files import only_run
from cosmo.policy.onnx_export import export_onnx


def export(
    checkpoint: Annotated[Path, typer.Argument(help="A folder of `cosmo train`.")],
    out: options.OutOption,
    run: Annotated[int | None, typer.Option(help="Seed of the run, if there are several.")] = None,
) -> None:
    """Write the networks of cosmo or cosmo-flat as ONNX files, for one or any number of nodes.

    cosmo export trained --run 0 --out networks
    """
    with only_run(out):
        note(*(f"wrote {path}" for path in export_onnx(checkpoint, out, run)))
