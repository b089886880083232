"""`cosmo report`: write figures, tables and one HTML file from a study."""

from pathlib import Path
from typing import Annotated

import typer

from cosmo.cli.console import note, notes, prepare_engine


def report(
    folder: Annotated[Path, typer.Argument(help="The study's folder.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Where to write (default: FOLDER/report).")
    ] = None,
    focus: Annotated[
        str | None, typer.Option(help="The focus method of the report (default: the plan's).")
    ] = None,
    trust: Annotated[
        bool,
        typer.Option("--trust", help="Run policies (file.py:Class, sb3:model) for the viewer."),
    ] = False,
) -> None:
    """Write the figures, the tables and report.html of a study.

    cosmo report quick --focus self-tracking
    """
    from cosmo.report.write import write_report
    from cosmo.study import load_study

    study = load_study(folder)
    if focus is not None:
        study = study.about_method(focus)
    prepare_engine()
    with notes.status("writing figures, tables, episodes for the viewer"):
        written = write_report(study, out or folder / "report", trust)
    for line in written.left_out:
        note(f"not in the episode viewer: {line}")
    note(f"wrote {len(written.figures)} figures, {len(written.tables)} tables\nopen {written.page}")
