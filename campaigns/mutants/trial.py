"""One mutant, and the tests that should notice it."""

import compileall
import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from changes import Mutant
from knowledge import ROOT, Knowledge
from warm import Warm

# Tests as plain Python first, so many seconds of them: most mutants are caught by the first.
_PLAIN_S = (2.0, 10.0, 60.0)
_IMPORT_S = 0.4  # of a test file, about
_MOST_COMPILED = 16  # tests
_LIMIT_S = 40.0  # of one test, as plain Python
_STAGE_LIMIT_S = {"plain": 300.0, "compiled": 1200.0}  # on a busy machine, too
_NOTHING_TO_RUN = 5


def copied() -> Path:
    """The sources, and what their tests read, where they may be changed.

    Always the same folder: what Numba and JAX have compiled there is kept for the next time.
    """
    to = ROOT / ".cache/mutants/copy"
    to.mkdir(parents=True, exist_ok=True)
    for part in ("src", "tests", "benchmarks", "docs", "examples", "pyproject.toml", "README.md"):
        source, there = ROOT / part, to / part
        if source.is_dir():
            shutil.rmtree(there, ignore_errors=True)
            shutil.copytree(source, there, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, there)
    compileall.compile_dir(to / "src", quiet=1)
    return to


class Trial:
    """The copy in which mutants live, one after the other."""

    def __init__(self, compiled: bool) -> None:
        """`compiled`: whether tests that need the compiled kernel are run, too."""
        self._compiled = compiled
        self._copy = copied()
        self._warm = Warm(self._copy)
        self._knowledge = Knowledge(self._copy, self._warm)
        self._whole: dict[str, tuple[str, int]] = {}  # files that were changed, and their times
        self._passes: dict[tuple[str, str], bool] = {}
        self._kept = ROOT / ".cache/mutants/caught.json"
        self._last: dict[str, str] = (
            json.loads(self._kept.read_text()) if self._kept.exists() else {}
        )

    def caught_by(self, mutant: Mutant) -> str:
        """The first test that fails because of the mutant; empty if none does."""
        try:
            for picked, kind in self._stages(mutant):
                caught = self._caught(mutant, picked, kind)
                if caught:
                    self._last[str(mutant)] = caught
                    self._kept.write_text(json.dumps(self._last))
                    return caught
            return ""
        finally:
            self._write(mutant.file, None)

    def _caught(self, mutant: Mutant, tests: list[str], kind: str) -> str:
        """Some tests fail wherever they run alone: what counts is that they pass without the
        mutant. One of real nodes, which a busy machine may hold up, has to fail twice.
        """
        while tests:
            self._write(mutant.file, mutant.text)
            failed = self._failed(tests, kind)
            if failed not in tests:
                return failed  # none, or it cannot even be imported
            held_up = failed.startswith("tests/live/") and not self._failed([failed], kind)
            if not held_up and self._sound(mutant, failed, kind):
                return failed
            tests = tests[tests.index(failed) + 1 :]
        return ""

    def _sound(self, mutant: Mutant, test: str, kind: str) -> bool:
        """Whether a test passes alone and without a mutant."""
        if (test, kind) not in self._passes:
            self._write(mutant.file, None)
            self._passes[test, kind] = not self._failed([test], kind)
        return self._passes[test, kind]

    def _write(self, file: str, text: str | None) -> None:
        """A file of the copy; None: as it was, with its time, so that its byte code is right."""
        path = self._copy / "src/cosmo" / file
        whole, time_ns = self._whole.setdefault(file, (path.read_text(), path.stat().st_mtime_ns))
        path.write_text(whole if text is None else text)
        if text is None:
            os.utime(path, ns=(time_ns, time_ns))

    def _stages(self, mutant: Mutant) -> Iterator[tuple[list[str], str]]:
        """Tests, and how they are run: first the one that caught the mutant last time."""
        tests = list(self._knowledge.tests_for(mutant))
        done = {self._last.get(str(mutant), "")}
        for test, kind, _ in tests:
            if test in done:
                yield [test], kind
        plain = _with_costs([(test, seconds) for test, kind, seconds in tests if kind == "plain"])
        for limit_s in _PLAIN_S:
            within = {test for test, spent_s in plain if spent_s <= limit_s}
            picked = [test for test, _ in plain if test in within - done]
            done |= within
            if picked:
                yield picked, "plain"
        compiled = [test for test, kind, _ in tests if kind == "compiled" and test not in done]
        if compiled and self._compiled:
            yield _of_all_files(compiled)[:_MOST_COMPILED], "compiled"

    def _failed(self, tests: list[str], kind: str) -> str:
        picked = self._copy / "picked.json"
        picked.write_text(json.dumps(tests))
        files = dict.fromkeys(test.partition("::")[0] for test in tests)
        plugins = ["-p", "interpreted", "-p", "limited"] if kind == "plain" else []
        code, printed = self._warm.pytest(
            ["-x", "--tb=no", "-p", "picked", *plugins, *files],
            {"COSMO_PICKED": str(picked), "COSMO_LIMIT_S": str(_LIMIT_S)},
            _STAGE_LIMIT_S[kind],
        )
        if code in (0, _NOTHING_TO_RUN):
            return ""
        named = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", printed, re.MULTILINE)
        return named[1] if named else f"exit code {code}"

    def end(self) -> None:
        """No more mutants."""
        self._warm.end()


def _with_costs(tests: list[tuple[str, float]]) -> list[tuple[str, float]]:
    """(test, seconds of it and all before it); a file takes a while to be imported."""
    files: set[str] = set()
    spent_s, found = 0.0, []
    for test, seconds in tests:
        file = test.partition("::")[0]
        spent_s += seconds + (0.0 if file in files else _IMPORT_S)
        files.add(file)
        found.append((test, spent_s))
    return found


def _of_all_files(tests: list[str]) -> list[str]:
    """The first test of each file, then the second of each, and so on."""
    seen: Counter[str] = Counter()
    turns = []
    for test in tests:
        file = test.partition("::")[0]
        turns.append(seen[file])
        seen[file] += 1
    return [test for _, test in sorted(zip(turns, tests, strict=True), key=lambda pair: pair[0])]
