"""What is printed at 80 columns, kept as text: a cell that is cut shows here.

Change it on purpose: `COSMO_GOLDEN=write python -m pytest tests/cli`.
"""

import os
from pathlib import Path

GOLDEN = Path(__file__).parent / "golden"


def as_before(name, text):
    """The text is what golden/NAME.txt has, and no line is longer than 80 columns."""
    lines = [line.rstrip() for line in text.splitlines()]
    assert max(map(len, lines)) <= 80
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("COSMO_GOLDEN") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert lines == path.read_text(encoding="utf-8").splitlines()


def eighty_columns(monkeypatch):
    """A terminal of that width that knows no colours."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")
