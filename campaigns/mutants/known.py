"""Mutants that somebody has looked at: `known.toml`."""

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from changes import PACKAGE, Mutant, mutant

_ENTRIES = tomllib.loads((Path(__file__).parent / "known.toml").read_text())


def once() -> Iterator[Mutant]:
    """Those that went unnoticed once."""
    for entry in _ENTRIES.get("once", ()):
        text, line = (PACKAGE / entry["file"]).read_text(), entry["line"]
        if text.count(line) != 1:
            raise SystemExit(
                f"{entry['file']}: {line!r} is there {text.count(line)} times, not once"
            )
        start = text.index(line)
        yield mutant(entry["file"], text, start, start + len(line), entry["becomes"])


def reasons(kind: str) -> Mapping[tuple[str, str, str], str]:
    """{(file, line, what it becomes): why}, of "equivalent" or "open"."""
    found = {}
    for entry in _ENTRIES.get(kind, ()):
        file, line = entry["file"], entry["line"]
        lines = [" ".join(each.split()) for each in (PACKAGE / file).read_text().splitlines()]
        if line not in lines:
            print(f"known.toml: {line!r} is no longer in {file}")
        found[file, line, entry["becomes"]] = entry["reason"]
    return found
