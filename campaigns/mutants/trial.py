"""One mutant, and the tests that should notice it."""

import compileall
import json
import os
import re
import shutil
import time
from pathlib import Path

from changes import Mutant
from knowledge import COMPILED_LIMIT_S, PLAIN_LIMIT_S, ROOT, Knowledge
from warm import Warm

OUT_OF_TIME, SLOW = "no time for all tests", "tests that need the compiled kernel"
_BUNCH_S = (2.0, 15.0)  # tests of a file as plain Python: the shortest, then so many seconds more
_MOST_COMPILED = 16  # tests
_COMPILED_LIMIT_S = 1200.0
_HANGS_S = 60.0  # after its time is over
_NOTHING_TO_RUN = 5
_PLAIN, _LIMITED, _WHOLE = ("interpreted", "limited"), ("limited",), ()  # plugins


def copied(number: int) -> Path:
    """The sources, and what their tests read, where they may be changed.

    Always the same folder: what Numba and JAX have compiled there is kept for the next time.
    """
    to = ROOT / f".cache/mutants/copy-{number}"
    to.mkdir(parents=True, exist_ok=True)
    for part in (
        "src",
        "tests",
        "benchmarks",
        "campaigns",
        "docs",
        "examples",
        "pyproject.toml",
        "README.md",
    ):
        source, there = ROOT / part, to / part
        if source.is_dir():
            shutil.rmtree(there, ignore_errors=True)
            shutil.copytree(source, there, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, there)
    compileall.compile_dir(to / "src", quiet=1)
    return to


class Trial:
    """A copy in which mutants live, one after the other."""

    def __init__(self, number: int, knowledge: Knowledge, compiled: bool) -> None:
        """`compiled`: whether tests that need the compiled kernel are run, too."""
        self._compiled = compiled
        self._copy = copied(number)
        self._warm = Warm(self._copy)
        self._knowledge = knowledge
        self._whole: dict[str, tuple[str, int]] = {}  # files that were changed, and their times
        self._passes: dict[tuple[str, tuple[str, ...]], bool] = {}
        self._missed = False  # whether there was no time for a test of the present mutant

    def caught_by(self, mutant: Mutant, limit_s: float, until_s: float) -> tuple[str, str]:
        """The first test that fails because of the mutant, empty if none does; and why not all
        tests that might have noticed it were tried, empty if they were.

        What it takes to measure a test file, which others need as well, is added to the limit;
        nothing begins after `until_s`.
        """
        end = min(time.monotonic() + limit_s, until_s)
        slow: list[str] = []
        self._missed = False
        try:
            for file in self._knowledge.files_for(mutant):
                left_s = end - time.monotonic()
                if left_s < 1.0:
                    return "", OUT_OF_TIME
                tests = self._knowledge.tests_of(file, mutant, self._copy, self._warm, left_s)
                end = min(time.monotonic() + left_s, until_s)
                if tests is None:
                    self._missed = True
                    continue
                slow += [test for test, plain, _ in tests if not plain]
                caught = self._caught_in_turns(mutant, [each for each in tests if each[1]], end)
                if caught:
                    return caught, ""
            if slow and mutant.compiled and not self._compiled:
                return "", SLOW
            left_s = end - time.monotonic()
            if slow and self._compiled:
                caught = self._caught(mutant, slow[:_MOST_COMPILED], _WHOLE, _COMPILED_LIMIT_S)
            elif slow and left_s > 1.0:
                self._write(mutant.file, None)
                self._warm.compile_kernel()
                caught = self._caught(mutant, slow[:_MOST_COMPILED], _LIMITED, left_s)
            else:
                caught = ""
                self._missed |= bool(slow)
            self._missed |= len(slow) > _MOST_COMPILED
            return caught, OUT_OF_TIME if self._missed and not caught else ""
        finally:
            self._write(mutant.file, None)

    def _caught_in_turns(
        self, mutant: Mutant, tests: list[tuple[str, bool, float]], end: float
    ) -> str:
        """Most mutants are caught by the first, shortest tests."""
        spent_s, place = 0.0, 0
        for bunch_s in _BUNCH_S:
            picked: list[str] = []
            while place < len(tests) and (not picked or spent_s < bunch_s):
                picked.append(tests[place][0])
                spent_s += tests[place][2]
                place += 1
            left_s = end - time.monotonic()
            plugins = _PLAIN if mutant.plain else _LIMITED
            if (
                picked
                and left_s > 1.0
                and (caught := self._caught(mutant, picked, plugins, left_s))
            ):
                return caught
            self._missed |= bool(picked) and left_s <= 1.0
        return ""

    def _caught(
        self, mutant: Mutant, tests: list[str], plugins: tuple[str, ...], limit_s: float
    ) -> str:
        """Some tests fail wherever they run alone: what counts is that they pass without the
        mutant. One of real nodes, which a busy machine may hold up, has to fail twice.
        """
        while tests:
            self._write(mutant.file, mutant.text)
            failed = self._failed(tests, plugins, limit_s)
            if failed not in tests:
                return failed  # none, or it cannot even be imported
            again = not failed.startswith("tests/live/") or self._failed([failed], plugins, limit_s)
            if again and self._sound(mutant, failed, plugins, limit_s):
                return failed
            tests = tests[tests.index(failed) + 1 :]
        return ""

    def _sound(self, mutant: Mutant, test: str, plugins: tuple[str, ...], limit_s: float) -> bool:
        """Whether a test passes alone and without a mutant."""
        if (test, plugins) not in self._passes:
            self._write(mutant.file, None)
            self._passes[test, plugins] = not self._failed([test], plugins, max(limit_s, 10.0))
        return self._passes[test, plugins]

    def _write(self, file: str, text: str | None) -> None:
        """A file of the copy; None: as it was, with its time, so that its byte code is right."""
        path = self._copy / "src/cosmo" / file
        whole, time_ns = self._whole.setdefault(file, (path.read_text(), path.stat().st_mtime_ns))
        path.write_text(whole if text is None else text)
        if text is None:
            os.utime(path, ns=(time_ns, time_ns))

    def _failed(self, tests: list[str], plugins: tuple[str, ...], limit_s: float) -> str:
        """The first of the tests that fails; what went wrong if that is none of them."""
        picked = self._copy / "picked.json"
        picked.write_text(json.dumps(tests))
        files = dict.fromkeys(test.partition("::")[0] for test in tests)
        named = [option for name in ("picked", *plugins) for option in ("-p", name)]
        one_s = PLAIN_LIMIT_S if plugins == _PLAIN else COMPILED_LIMIT_S
        code, printed = self._warm.pytest(
            ["-x", "--tb=no", *named, *files],
            {
                "COSMO_PICKED": str(picked),
                "COSMO_LIMIT_S": str(3.0 * one_s),
                "COSMO_SESSION_S": str(limit_s),
            },
            limit_s + _HANGS_S,
        )
        if code in (0, _NOTHING_TO_RUN):
            return ""
        found = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", printed, re.MULTILINE)
        # Who computes without end has a limit of its own; who waits may wait for the machine.
        if found or (code is not None and "out of time" not in printed):
            return found[1] if found else f"exit code {code}"
        self._missed = True
        return ""

    def end(self) -> None:
        """No more mutants."""
        self._warm.end()
