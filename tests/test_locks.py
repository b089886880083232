"""What the lock files promise: every file is known by its hash, wherever it is fetched from."""

import re
from pathlib import Path

import pytest

LOCKS = sorted(Path(__file__).parents[1].glob("*.lock"))


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.name)
def test_every_requirement_has_hashes_and_no_lock_names_a_host(path):
    text = path.read_text()
    assert "://" not in text
    assert not re.search(r"^(-i|--[a-z-]*(index|url|links|host))\b", text, re.MULTILINE)
    requirements = re.split(r"\n(?=\S)", re.sub(r"^ *#.*\n", "", text, flags=re.MULTILINE))
    assert len(requirements) > 20
    for each in requirements:
        assert re.match(r"[A-Za-z0-9._-]+(\[[a-z,-]+\])?==\S+ ", each), each[:100]
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", each), each[:100]


def test_there_are_locks():
    assert len(LOCKS) >= 3
