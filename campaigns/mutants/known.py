"""Mutants that somebody has looked at: `known.toml`."""

import tomllib
from collections.abc import Mapping
from pathlib import Path

from changes import PACKAGE

_ENTRIES = tomllib.loads((Path(__file__).parent / "known.toml").read_text())


def reasons(kind: str) -> Mapping[tuple[str, str, str], str]:
    """{(file, line, what it becomes): why}, of "equivalent" or "open"."""
    found = {}
    for entry in _ENTRIES.get(kind, ()):
        file, line = entry["file"], entry["line"]
        text = (PACKAGE / file).read_text() if (PACKAGE / file).exists() else ""
        if line not in [" ".join(each.split()) for each in text.splitlines()]:
            print(f"known.toml: {line!r} is no longer in {file}")
            continue
        found[file, line, entry["becomes"]] = entry["reason"]
    return found
