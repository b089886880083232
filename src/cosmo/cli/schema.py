"""`cosmo schema`: JSON schemas of the files that people write, for editors."""

import json
from pathlib import Path
from typing import Annotated

import typer

from cosmo.cli.console import note
from cosmo.errors import InputError, did_you_mean
from cosmo.files import whole_file

KINDS = ("scenario", "plan", "daemon", "metrics")


def schema(
    kind: Annotated[str, typer.Argument(help=f"One of {', '.join(KINDS)}.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The file to write (default: print it).")
    ] = None,
) -> None:
    """Print the JSON schema of scenarios, plans, daemons' files or names of metrics.

    cosmo schema scenario --out scenario.schema.json
    """
    text = json.dumps(schema_of(kind), indent=2)
    if out is None:
        typer.echo(text)
        return
    with whole_file(out) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")
    note(f"wrote {out}; name it in a file's first line: #:schema {out}")


def schema_of(kind: str) -> dict[str, object]:
    """The schema of one of `KINDS`, made from the models that check these files."""
    if kind == "scenario":
        from cosmo.scenario.files import DOCUMENTS as SCENARIOS

        return SCENARIOS.schema()
    if kind == "plan":
        from cosmo.study.plan_files import DOCUMENTS as PLANS

        return PLANS.schema()
    if kind == "daemon":
        from cosmo.live.config import DOCUMENTS as CONFIGS

        return CONFIGS.schema()
    if kind == "metrics":
        from cosmo.live.readings.metric_names import DOCUMENTS as NAMES

        return NAMES.schema()
    close = did_you_mean(kind, KINDS)
    raise InputError(f"kind = {kind!r}: must be one of {', '.join(KINDS)}{close}")
