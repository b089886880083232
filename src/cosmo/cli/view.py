"""`cosmo view`: make a page of recorded episodes."""

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from cosmo.cli.console import note
from cosmo.cli.options import check_output


def view(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Episodes of RecordEpisode (episode-0.json) or decision logs of nodes."
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The page (default: beside the first file, .html)."),
    ] = None,
    opened: Annotated[bool, typer.Option("--open", help="Open it in a browser.")] = False,
) -> None:
    """Make a page of recorded episodes: estimated state, true state, decisions.

    A decision log of a live node (CSV or Parquet) has the statuses that the EN
    held, its decisions, and how tasks ended.

    cosmo view episodes/episode-0.json --open

    cosmo view decisions.csv --out decisions.html
    """
    from cosmo.report.decision_log import is_decision_log, read_decisions
    from cosmo.report.page import write_episodes
    from cosmo.report.recording import read_recording

    page = out or files[0].with_suffix(".html")
    check_output(page, (".html",))
    recordings = [
        {"title": path.name, "method": ""}
        | (read_decisions(path) if is_decision_log(path) else read_recording(path))
        for path in files
    ]
    write_episodes(recordings, f"CoSMO: {', '.join(path.name for path in files)}", page)
    note(f"open {page}")
    if opened:
        webbrowser.open(page.absolute().as_uri())
