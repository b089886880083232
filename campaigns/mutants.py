"""Mistakes made on purpose, one at a time, and whether a test notices.

    python campaigns/mutants.py --listed                  the mutants that once survived
    make mutants MUTANTS=200                              a random sample of the formulas

A mutant is made in a copy of the sources; the tests of its room run there. Compiled code is cached
by a fingerprint of its sources in a folder of the copy, so that no mutant meets machine code of
another. The score counts a mutant as caught if a test fails, or does not end. Survivors are printed
to be looked at: some are equivalent, the others lack a test.
"""

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMIT_S = 900.0

# Which tests know a piece of the source; the first entry whose path fits counts.
TESTS = {
    "world/": "world/test_worlds_by_hand.py world/test_ties.py world/test_against_reference.py"
    " world/test_observations.py world/test_feedback.py world/test_reach.py world/test_messages.py"
    " world/test_batches.py world/test_outside_network.py golden",
    "measure/": "measure study/test_bounds.py study/test_statistics.py",
    "control/fast/": "control/test_compiled_rules.py",
    "control/": "control node/test_guard.py workload/test_effort.py measure",
    "node/": "node policy/test_dispatchers.py world/test_observations.py world/test_feedback.py",
    "policy/dispatchers/": "policy/test_policies_by_hand.py policy/test_dispatchers.py"
    " policy/test_crowds.py",
    "policy/updaters/": "policy/test_policies_by_hand.py policy/test_updaters.py"
    " policy/test_crowds.py",
    "policy/next/": "policy/test_policies_by_hand.py policy/test_next_agents.py"
    " policy/test_what_is_told.py",
    "policy/": "policy/test_registry.py policy/test_crowds.py policy/test_controller_files.py"
    " policy/test_policies_by_hand.py policy/test_what_is_told.py learn/test_networks.py",
    "live/": "live",
    "learn/next/": "learn/test_training_by_hand.py learn/test_next_training.py",
    "learn/": "learn/test_training_by_hand.py learn/test_bootstrapping.py learn/test_updates.py"
    " learn/test_networks.py learn/test_trainer.py",
}
# What a random sample is drawn from.
SAMPLED = (
    "world", "measure", "control", "node", "policy", "live",
    "learn/en_agent.py", "learn/sn_agent.py", "learn/coordinator.py", "learn/encoder.py",
    "learn/turn.py", "learn/next/fit.py", "learn/next/returns.py", "learn/next/worth.py",
    "learn/next/experience.py",
)  # fmt: skip

# (file, what is there, what the mutant has): every one of these went unnoticed once.
LISTED = (
    ("world/layout.py", "if count > end - place:", "if count > end + place:"),
    ("world/nodes.py", "- reserved_ahead >= reservation(", "- reserved_ahead > reservation("),
    ("learn/next/returns.py", "succeeded - failure * failed", "succeeded + failure * failed"),
    ("learn/next/fit.py", '- batch["feasible"] * logits', '+ batch["feasible"] * logits'),
    ("learn/next/experience.py", '"elapsed": tasks.elapsed_ms', '"elapsed": 0 * tasks.elapsed_ms'),
    ("policy/next/values.py", '(before["local_room"] > 0)', '(before["local_room"] >= 0)'),
    ("policy/next/values.py", "/ m.backlog_ms]", "/ m.wait_ms]"),
    ("policy/next/values.py", "_clip(surprise * 4.0,", "_clip(surprise * 2.0,"),
    ("policy/next/values.py", "_clip(room * 2.0, 1.0, xp)", "_clip(room * 2.0, 2.0, xp)"),
    ("learn/turn.py", "return min((now - since", "return max((now - since"),
    ("learn/turn.py", "share = min(chance.steps", "share = max(chance.steps"),
    ("policy/dispatchers/priced.py", "np.where(np.isfinite(busy), busy, 0.0)", "busy"),
    ("policy/updaters/aoci_online.py", "return np.maximum(0.0, limit)", "return limit"),
    ("policy/next/load.py", "1.0 / (self._spans_ms[:3]", "1.0 / (self._spans_ms[1:]"),
    ("policy/next/load.py", "(born[:, None] + 1.0)", "(born[:, None] - 1.0)"),
)  # fmt: skip

_COMPARE = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "=="}
_ARITHMETIC = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*"}
_NAMES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "any": "all"}


@dataclass(frozen=True)
class Mutant:
    """A file of the package, and its text with one mistake."""

    file: str
    line: int
    before: str
    after: str
    text: str


def listed() -> Iterator[Mutant]:
    """The known ones."""
    for file, before, after in LISTED:
        text = (ROOT / "src/cosmo" / file).read_text()
        if text.count(before) != 1:
            raise SystemExit(
                f"{file}: {before!r} is there {text.count(before)} times, must be once"
            )
        line = text[: text.index(before)].count("\n") + 1
        yield Mutant(file, line, before, after, text.replace(before, after))


def mutants_of(file: str) -> Iterator[Mutant]:
    """Every mutant of a file."""
    text = (ROOT / "src/cosmo" / file).read_text()
    lines = text.splitlines(keepends=True)
    starts = [0]
    for each in lines:
        starts.append(starts[-1] + len(each.encode()))
    raw = text.encode()

    def place(line: int, column: int) -> int:
        return starts[line - 1] + column

    for node in ast.walk(ast.parse(text)):
        for start, end, new in _changes(node, raw, place):
            changed = (raw[:start] + new.encode() + raw[end:]).decode()
            yield Mutant(file, node.lineno, raw[start:end].decode(), new, changed)  # type: ignore[attr-defined]


def _changes(node, raw, place) -> Iterator[tuple[int, int, str]]:  # type: ignore[no-untyped-def]
    """(from, to, instead) in bytes of the file."""

    def between(left: ast.expr, right: ast.expr) -> tuple[int, int]:
        return (
            place(left.end_lineno, left.end_col_offset),
            place(right.lineno, right.col_offset),
        )

    if isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARE:
        start, end = between(node.left, node.comparators[0])
        if raw[start:end].strip().decode() in ("<", "<=", ">", ">=", "==", "!="):
            yield start, end, f" {_COMPARE[type(node.ops[0])]} "
    elif isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        start, end = between(node.left, node.right)
        if raw[start:end].strip().decode() in ("+", "-", "*", "/"):
            yield start, end, f" {_ARITHMETIC[type(node.op)]} "
    elif isinstance(node, ast.Name | ast.Attribute):
        name = node.id if isinstance(node, ast.Name) else node.attr
        end = place(node.end_lineno, node.end_col_offset)
        if name in _NAMES:
            yield end - len(name), end, _NAMES[name]
    elif isinstance(node, ast.Constant) and not isinstance(node.value, bool):
        if not isinstance(node.value, int | float):
            return
        start = place(node.lineno, node.col_offset)
        yield start, place(node.end_lineno, node.end_col_offset), repr(node.value + 1)


def sampled(count: int, seed: int, rooms: Sequence[str]) -> Iterator[Mutant]:
    """So many at random, a file at a time, so that long files do not crowd out short ones."""
    base, files = ROOT / "src/cosmo", []
    for each in rooms:
        paths = [base / each] if each.endswith(".py") else sorted((base / each).rglob("*.py"))
        files += [str(path.relative_to(base)) for path in paths if path.name != "__init__.py"]
    draw = random.Random(seed)
    for _ in range(count):
        choices: list[Mutant] = []
        while not choices:
            choices = list(mutants_of(draw.choice(files)))
        yield draw.choice(choices)


def caught(mutant: Mutant, copy: Path) -> bool:
    """Whether the tests of its room fail."""
    path = copy / "src/cosmo" / mutant.file
    whole = path.read_text()
    path.write_text(mutant.text)
    start = next(start for start in TESTS if mutant.file.startswith(start))
    tests = [f"tests/{name}" for name in TESTS[start].split()]
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider"]
    variables = {"PYTHONPATH": str(copy / "src"), "NUMBA_CACHE_DIR": str(copy / "cache")}
    try:
        done = subprocess.run(
            [*command, *tests], cwd=copy, env=os.environ | variables, capture_output=True,
            timeout=LIMIT_S,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return True
    finally:
        path.write_text(whole)
    return done.returncode != 0


def main() -> None:
    """Parse, run, tell."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--mutants", type=int, default=40)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--listed", action="store_true")
    options.add_argument("--rooms", nargs="*", help="folders and files of the package to sample")
    chosen = options.parse_args()
    found, survivors = Counter[str](), []
    with tempfile.TemporaryDirectory(prefix="cosmo-mutants-") as name:
        copy = Path(name)
        for part in ("src", "tests", "docs", "examples", "pyproject.toml", "README.md"):
            source = ROOT / part
            if source.is_dir():
                shutil.copytree(source, copy / part, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, copy / part)
        for mutant in (
            listed()
            if chosen.listed
            else sampled(chosen.mutants, chosen.seed, chosen.rooms or SAMPLED)
        ):
            start, right = time.monotonic(), caught(mutant, copy)
            what = f"{mutant.file}:{mutant.line}: {mutant.before.strip()} -> {mutant.after.strip()}"
            word = "caught" if right else "SURVIVED"
            print(f"{word} {what} ({time.monotonic() - start:.0f} s)", flush=True)
            found[word] += 1
            if not right:
                survivors.append(what)
    total = sum(found.values())
    print(f"{found['caught']} of {total} caught ({found['caught'] / max(total, 1):.0%})")
    print("\n".join(["survivors:", *survivors] if survivors else ["no survivors"]))
    sys.exit(1 if chosen.listed and survivors else 0)


if __name__ == "__main__":
    main()
