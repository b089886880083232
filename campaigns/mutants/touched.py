"""A pytest plugin: which functions of the package each test enters, and how long it takes.

Written to the file that COSMO_TOUCHED names: {test: {"seconds", "passed", "functions"}}; without
"functions" are those that did not come to their turn.
"""

import json
import os
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

_PACKAGE = "/src/cosmo/"
_entered: set[CodeType] = set()
_by_fixture: dict[tuple[str, str], set[CodeType]] = {}
_found: dict[str, dict[str, Any]] = defaultdict(lambda: {"seconds": 0.0, "passed": True})


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests, in their order."""
    for item in items:
        _found[item.nodeid]["passed"] = True
    _write()


def _note(frame: FrameType, _event: str, _argument: object) -> None:
    _entered.add(frame.f_code)


threading.settrace(_note)


def name_of(code: CodeType) -> str:
    """`world/links.py:Class.method`; comprehensions and lambdas count as what they stand in."""
    file = code.co_filename.rpartition(_PACKAGE)[2]
    return f"{file}:{code.co_qualname.partition('.<locals>.<')[0]}"


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> Iterator[None]:
    """What a shared fixture enters, every test that asks for it has entered."""
    before = _entered.copy()
    _entered.clear()
    try:
        return (yield)
    finally:
        _by_fixture[fixturedef.baseid, fixturedef.argname] = _entered.copy()
        _entered.update(before)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Function) -> Iterator[None]:
    """One test, with JAX compiling anew: else only the first test of a function would enter it."""
    if "jax" in sys.modules:
        sys.modules["jax"].clear_caches()
    _entered.clear()
    sys.settrace(_note)  # again each time: an exception inside `_note` ends the tracing
    start = time.process_time()
    try:
        return (yield)
    finally:
        for (base, name), codes in _by_fixture.items():
            if name in item.fixturenames and item.nodeid.startswith(base):
                _entered.update(codes)
        # A copy: what this loop itself enters is noted, too.
        inside = {code for code in _entered.copy() if _PACKAGE in code.co_filename}
        _found[item.nodeid]["functions"] = sorted({name_of(code) for code in inside})
        _found[item.nodeid]["seconds"] = round(time.process_time() - start, 3)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Skipped is not passed: such a test notices nothing.

    Written after every test: what takes too long in the end is killed, and loses the last one.
    """
    _found[report.nodeid]["passed"] &= bool(report.passed)
    if report.when == "teardown":
        _write()


def pytest_sessionfinish() -> None:
    """Also after failures: they are what is looked for in the interpreted kernel."""
    sys.settrace(None)
    _write()


def _write() -> None:
    path = Path(os.environ["COSMO_TOUCHED"])
    whole = path.with_suffix(".part")
    whole.write_text(json.dumps(_found))
    whole.replace(path)
