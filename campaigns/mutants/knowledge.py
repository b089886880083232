"""Which tests enter which functions, and how long they take: measured when a mutant asks for it.

Which test files may notice a mutant is first read off their text: those that import its module,
then those of its room or that import a module that imports it; first those that are named after it,
or name its function. What helpers of the tests import counts for the files that import these. Such
a file is played once, with the kernel as plain Python (`interpreted`), in which every function can
be seen; only its tests that enter the mutated function then meet the mutant.
Tests that take too long as plain Python need the compiled kernel.

Measurements are kept in `.cache/mutants` of the repository; a test file that has changed, or that
there was no time to play to its end, is measured again by the next campaign.
"""

import functools
import hashlib
import json
import re
import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from changes import PACKAGE, Mutant
from warm import Warm

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# Tests that start processes, browsers or whole pages say little of a formula and take long.
LEFT_OUT = (
    "tests/e2e/", "tests/ns3/", "tests/learn/test_session.py", "tests/learn/test_cpus.py",
    "tests/learn/test_trainer.py", "tests/control/test_paper_points.py",
    "tests/study/test_execution.py", "tests/study/test_ray.py", "tests/report/test_screens.py",
    "tests/cli/test_streams.py", "tests/cli/test_interrupts.py", "tests/live/test_daemons.py",
    "tests/live/test_faults.py",
)  # fmt: skip
PLAIN_LIMIT_S = 3.0  # of one test, as plain Python
COMPILED_LIMIT_S = 10.0  # and with the kernel compiled, which the first of them may have to do
_COMPILED = "#compiled"
_WALL = 4.0  # times the limit on computing: other work on the machine
_MOST_FILES = 8  # that meet a mutant, the most likely first: a test elsewhere is no test of it
_SLOW = 5  # tests of a file that take longer; then the rest of it is left, too
_FILE_LIMIT_S = 25.0
_LEAST_S = 5.0  # with less time, no file is measured


class Knowledge:
    """What has been measured, for all threads of a campaign."""

    def __init__(self) -> None:
        self._files = {
            name: path.read_text()
            for path in sorted((ROOT / "tests").rglob("test_*.py"))
            if not (name := str(path.relative_to(ROOT))).startswith(LEFT_OUT)
        }
        helpers = _helpers()
        self._imported = {
            name: "\n".join([text, *(helpers[each] for each in _imported_by(text, helpers))])
            for name, text in self._files.items()
        }
        self._importers = _importers()
        self._known: dict[str, dict[str, Any]] = {}
        self._locks: dict[str, threading.Lock] = defaultdict(threading.Lock)

    def files_for(self, mutant: Mutant) -> list[str]:
        """Test files that are most likely to notice a mutant, in that order; none of which is known
        that no test of it enters the mutant's function.
        """
        module = _module(mutant.file)
        near = [_module(file) for file in self._importers[mutant.file]]
        room = f"tests/{mutant.file.partition('/')[0]}/"
        names = _words(mutant.function or mutant.line)
        placed = []
        for file, text in self._files.items():
            known = self._before(_key(file, mutant))
            enters = bool(known and self._entering(known, mutant))
            if known and known["complete"] and not enters:
                continue
            whole = self._imported[file]
            may = _imports(whole, module), file.startswith(room), _imports_any(whole, near)
            if any(may) or enters:
                named = module.rpartition(".")[2] in Path(file).stem
                merits = (named, _imports(text, module), bool(names & _words(text)), *may)
                placed.append((tuple(not merit for merit in merits), len(text), file))
        return [file for *_, file in sorted(placed)][:_MOST_FILES]

    def tests_of(
        self, file: str, mutant: Mutant, copy: Path, warm: Warm, left_s: float
    ) -> list[tuple[str, bool, float]] | None:
        """(test, whether plain Python will do, its seconds) of a file's tests that enter the
        mutant's function, the shortest first; a file is measured first. None if there was no time
        for that.

        A constant outside of functions may be seen by every test that enters any function of its
        file or of a file that imports it.
        """
        key = _key(file, mutant)
        with self._locks[key]:
            if self._before(key) is None:
                if left_s < _LEAST_S:
                    return None
                self._known[key] = self._measured(key, copy, warm)
        if not self._known[key]["complete"] and not self._known[key]["tests"]:
            return None
        found = self._entering(self._known[key], mutant)
        return [(test, passed, seconds) for seconds, test, passed in sorted(found)]

    def _before(self, key: str) -> Mapping[str, Any] | None:
        """What has been measured by now."""
        if key not in self._known and (kept := _kept(key)):
            self._known[key] = kept
        return self._known.get(key)

    def _entering(self, known: Mapping[str, Any], mutant: Mutant) -> list[tuple[float, str, bool]]:
        """(seconds, test, whether plain Python will do) of tests that enter a mutant's function."""
        inside = {mutant.file} | (set() if mutant.function else self._importers[mutant.file])
        whole = f"{mutant.file}:{mutant.function}"
        return [
            (about["seconds"], test, about["passed"])
            for test, about in known["tests"].items()
            if (
                whole in about["functions"]
                if mutant.function
                else any(each.partition(":")[0] in inside for each in about["functions"])
            )
        ]

    def _measured(self, key: str, copy: Path, warm: Warm) -> dict[str, Any]:
        """Not a matter of one mutant's time: the measurement is for all that come after it."""
        file, into = key.removesuffix(_COMPILED), copy / "touched.json"
        into.unlink(missing_ok=True)
        plain = file == key
        variables = {
            "COSMO_LIMIT_S": str(PLAIN_LIMIT_S if plain else COMPILED_LIMIT_S),
            "COSMO_SESSION_S": str(_FILE_LIMIT_S),
            "COSMO_TOUCHED": str(into),
        }
        named = ("interpreted", "limited", "touched") if plain else ("limited", "touched")
        plugins = [option for name in named for option in ("-p", name)]
        warm.pytest([*plugins, f"--maxfail={_SLOW}", file], variables, _WALL * _FILE_LIMIT_S)
        found: dict[str, Any] = json.loads(into.read_text()) if into.exists() else {}
        complete = all("functions" in about for about in found.values()) and bool(found)
        entered = sorted({name for about in found.values() for name in about.get("functions", ())})
        for about in found.values():
            if "functions" not in about:  # it did not come to its turn: the others speak for it
                about |= {"passed": False, "functions": entered}
        known = {"digest": _digest(file), "complete": complete, "tests": found}
        _place(key).parent.mkdir(parents=True, exist_ok=True)
        _place(key).write_text(json.dumps(known))
        return known


def _key(file: str, mutant: Mutant) -> str:
    return file if mutant.plain else f"{file}{_COMPILED}"


def _place(file: str) -> Path:
    return ROOT / ".cache/mutants" / f"{file.replace('/', '-')}.json"


def _digest(file: str) -> str:
    return hashlib.sha256((ROOT / file).read_bytes()).hexdigest()


def _kept(key: str) -> dict[str, Any] | None:
    """What an earlier campaign has measured, if that still holds."""
    if not _place(key).exists():
        return None
    known: dict[str, Any] = json.loads(_place(key).read_text())
    same = known.get("digest") == _digest(key.removesuffix(_COMPILED))
    return known if known.get("complete") and same else None


@functools.cache
def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[a-z]\w{3,}", text.lower()))


def _module(file: str) -> str:
    return f"cosmo/{file}".removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _imports(text: str, module: str) -> bool:
    package, _, name = module.rpartition(".")
    return module in text or bool(
        re.search(rf"from {re.escape(package)} import [^\n]*\b{name}\b", text)
    )


def _imports_any(text: str, modules: Sequence[str]) -> bool:
    return any(_imports(text, each) for each in modules)


def _helpers() -> Mapping[str, str]:
    """{module: text} of what tests share, by both names that a test may import it by."""
    found = {}
    for path in sorted((ROOT / "tests").rglob("*.py")):
        if not path.name.startswith("test_"):
            whole = ".".join(path.relative_to(ROOT / "tests").with_suffix("").parts)
            found[whole] = found[path.stem] = path.read_text()
    return found


def _imported_by(text: str, modules: Mapping[str, str]) -> list[str]:
    """Those of the modules that a text imports."""
    named = re.findall(r"^(?:from|import) ([\w.]+)", text, re.MULTILINE)
    return [each for each in dict.fromkeys(named) if each in modules]


def _importers() -> Mapping[str, set[str]]:
    """{file: files of the package that import it}."""
    texts = {str(path.relative_to(PACKAGE)): path.read_text() for path in PACKAGE.rglob("*.py")}
    return {
        file: {each for each, text in texts.items() if _imports(text, _module(file))}
        for file in texts
    }
