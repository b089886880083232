"""A pytest plugin: the tests that the file COSMO_PICKED lists, in its order."""

import json
import os
from pathlib import Path

import pytest

_PLACES = {
    test: place
    for place, test in enumerate(json.loads(Path(os.environ["COSMO_PICKED"]).read_text()))
}


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """After what `conftest` has sorted by files."""
    items[:] = sorted(
        (item for item in items if item.nodeid in _PLACES), key=lambda item: _PLACES[item.nodeid]
    )
