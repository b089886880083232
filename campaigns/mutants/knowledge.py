"""Which tests enter which functions, and how long they take: measured once, file by file.

All tests are played with the kernel as plain Python (`interpreted`), in which every function can be
seen. Those that take too long that way are left to the compiled kernel; what they entered until
then is known.

Kept in `.cache/mutants` of the repository; a test file that has changed is measured again.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from changes import Mutant
from warm import Warm

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# Tests that say something of a formula. Others start processes, browsers or whole commands.
MEASURED = (
    "world", "measure", "control", "node", "policy", "live", "learn", "golden", "properties",
    "workload/test_effort.py", "workload/test_windows.py", "study/test_bounds.py",
    "study/test_statistics.py", "cli/test_output.py",
)  # fmt: skip
LEFT_OUT = (
    "learn/test_session.py", "learn/test_cpus.py", "learn/test_trainer.py",
    "control/test_paper_points.py",
)  # fmt: skip
PLAIN_LIMIT_S = 5.0
_SLOW = 6  # tests of a file that are; then the rest of it is left, too
_FILE_LIMIT_S = 1200.0
_STRANGER_S = 0.3  # by which a test of another room seems longer than it is
_STARTS = "live/processes.py:Running.__init__"  # a daemon


class Knowledge:
    """What has been measured."""

    def __init__(self, copy: Path, warm: Warm) -> None:
        self._warm = warm
        self._tests: dict[str, dict[str, Any]] = {}
        self._words: dict[str, set[str]] = {}  # of each test file
        for part in MEASURED:
            path = copy / "tests" / part
            for file in [path] if path.is_file() else sorted(path.rglob("test_*.py")):
                name = str(file.relative_to(copy))
                if not name.endswith(LEFT_OUT):
                    self._learn(copy, name)
                    self._words[name] = _words(file.read_text())
        self._importers = _importers(copy / "src/cosmo")

    def _learn(self, copy: Path, file: str) -> None:
        digest = hashlib.sha256((copy / file).read_bytes()).hexdigest()
        kept = ROOT / ".cache/mutants" / f"{file.replace('/', '-')}.json"
        if kept.exists():
            known = json.loads(kept.read_text())
            if known["digest"] == digest:
                self._tests[file] = known
                return
        print(f"measuring {file}", flush=True)
        known = {"digest": digest, "tests": self._measured(copy, file)}
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(known))
        self._tests[file] = known

    def _measured(self, copy: Path, file: str) -> dict[str, Any]:
        into = copy / "touched.json"
        variables = {"COSMO_LIMIT_S": str(PLAIN_LIMIT_S), "COSMO_TOUCHED": str(into)}
        plugins = [
            option for name in ("interpreted", "limited", "touched") for option in ("-p", name)
        ]
        _, printed = self._warm.pytest(
            [*plugins, f"--maxfail={_SLOW}", file], variables, _FILE_LIMIT_S
        )
        found: dict[str, Any] = json.loads(into.read_text()) if into.exists() else {}
        into.unlink(missing_ok=True)
        if not found:
            raise SystemExit(f"{file} has no tests:\n{printed}")
        entered = sorted({name for about in found.values() for name in about.get("functions", ())})
        for about in found.values():
            if "functions" not in about:  # it did not come to its turn: the others speak for it
                about |= {"passed": False, "functions": entered}
        return found

    def tests_for(self, mutant: Mutant) -> Iterator[tuple[str, str, float]]:
        """(test, "plain" or "compiled", seconds) of all that enter the mutant's function.

        A constant outside of functions is looked for by all that enter any function of its file,
        or of a file that imports it, and by tests in files that name it. What daemons enter is not
        seen, so that every test that starts one is taken to enter all of `live`. The shortest come
        first, above all those of the room.
        """
        room = f"tests/{mutant.file.partition('/')[0]}/"
        files = {mutant.file} | (set() if mutant.function else self._importers[mutant.file])
        starts = _STARTS if mutant.file.startswith("live/") else None
        names = set() if mutant.function else _words(mutant.line.partition("=")[0])
        found = sorted(
            (about["seconds"] + _STRANGER_S * (not test.startswith(room)), test, about)
            for file, known in self._tests.items()
            for test, about in known["tests"].items()
            if _enters(about["functions"], files, mutant)
            or starts in about["functions"]
            or names & self._words[file]
        )
        for _, test, about in found:
            yield test, "plain" if about["passed"] else "compiled", about["seconds"]


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w{3,}", text))


def _enters(entered: Sequence[str], files: set[str], mutant: Mutant) -> bool:
    if mutant.function:
        return f"{mutant.file}:{mutant.function}" in entered
    return any(each.partition(":")[0] in files for each in entered)


def _importers(package: Path) -> Mapping[str, set[str]]:
    """{file: files that import it}, as far as they name it."""
    texts = {str(path.relative_to(package)): path.read_text() for path in package.rglob("*.py")}
    found: dict[str, set[str]] = {}
    for file in texts:
        room, _, name = f"cosmo/{file}".removesuffix(".py").replace("/", ".").rpartition(".")
        ways = (f"from {room}.{name} import", f"from {room} import {name}\n")
        found[file] = {each for each, text in texts.items() if any(way in text for way in ways)}
    return found
