"""The list of known mutants speaks of the code as it is, or nobody could try them again."""

import tomllib
from pathlib import Path

import pytest

_HOUSE = Path(__file__).parent.parent
_KNOWN = tomllib.loads((_HOUSE / "campaigns/mutants/known.toml").read_text())
_ENTRIES = [(kind, entry) for kind, entries in _KNOWN.items() for entry in entries]


@pytest.mark.parametrize(
    ("kind", "entry"), _ENTRIES, ids=[f"{kind} {n}" for n, (kind, _) in enumerate(_ENTRIES)]
)
def test_a_known_mutant_can_be_made(kind, entry):
    text = (_HOUSE / "src/cosmo" / entry["file"]).read_text()
    if kind == "once":  # a piece of a line
        assert text.count(entry["line"]) == 1
    else:
        assert entry["line"] in [" ".join(line.split()) for line in text.splitlines()]
        assert entry["reason"]
    assert entry["becomes"] != entry["line"]
