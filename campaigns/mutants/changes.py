"""What can be changed in a file so that it is still Python, and a sample of all such changes."""

import ast
import functools
import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent.parent / "src/cosmo"
# What a sample is drawn from, in equal shares: folders and files of the package.
ROOMS: dict[str, tuple[str, ...]] = {
    "world": ("world",),
    "measure": ("measure",),
    "control": ("control",),
    "node": ("node",),
    "policy": ("policy",),
    "live": ("live",),
    "study": ("study",),
    "report": ("report",),
    "learn": (
        "learn/en_agent.py", "learn/sn_agent.py", "learn/coordinator.py", "learn/encoder.py",
        "learn/turn.py", "learn/next/fit.py", "learn/next/returns.py", "learn/next/worth.py",
        "learn/next/experience.py",
    ),
}  # fmt: skip

# Rooms whose tests play whole studies, and none of whose code is ever compiled: the kernel may be.
WITH_KERNEL = ("study", "report")
# What the kernel is compiled of, again for every mutant.
_COMPILED = ("world/", "node/", "policy/rules/", "control/compiled", "control/yardsticks")

_COMPARE = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "=="}
_ARITHMETIC = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*"}
_LOGIC = {ast.And: "or", ast.Or: "and"}
_NAMES = {
    "min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "any": "all",
    "all": "any", "argmin": "argmax", "argmax": "argmin",
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """A file of the package, and its text with one mistake."""

    file: str
    number: int  # of the line
    line: str  # as it is, and as it would be; without the spaces around it
    becomes: str
    function: str  # that it stands in, `Class.method`; empty outside of functions
    text: str  # of the whole file

    @property
    def plain(self) -> bool:
        """Whether its tests need the kernel as plain Python."""
        return not self.file.startswith(tuple(f"{room}/" for room in WITH_KERNEL))

    @property
    def compiled(self) -> bool:
        """Whether it may be in the compiled kernel."""
        return self.file.startswith(_COMPILED)

    def __str__(self) -> str:
        return f"{self.file}:{self.number}: {self.line}  ->  {self.becomes}"


def mutant(file: str, before: str, start: int, end: int, new: str) -> Mutant:
    """`before`, a file's text, with `new` in place of what is at [start, end)."""
    after = before[:start] + new + before[end:]
    first = before.rfind("\n", 0, start) + 1
    last = before.find("\n", end)
    return Mutant(
        file,
        before[:start].count("\n") + 1,
        " ".join(before[first:last].split()),
        " ".join(after[first : last + len(after) - len(before)].split()),
        _function_at(_parsed(before), before[:start].count("\n") + 1),
        after,
    )


@functools.lru_cache(maxsize=1)
def _parsed(text: str) -> ast.Module:
    return ast.parse(text)


def mutants_of(file: str) -> list[Mutant]:
    """Every mutant of a file."""
    text = (PACKAGE / file).read_text()
    lines = text.splitlines(keepends=True)
    starts = list(itertools.accumulate(map(len, lines), initial=0))

    def place(line: int, column: int) -> int:
        # Columns of `ast` count bytes.
        return starts[line - 1] + len(lines[line - 1].encode()[:column].decode())

    return [
        mutant(file, text, *change)
        for node in ast.walk(_parsed(text))
        for change in _changes(node, text, place)
    ]


def _changes(node, text, place) -> Iterator[tuple[int, int, str]]:  # type: ignore[no-untyped-def]
    """(from, to, instead)."""

    def between(left: ast.expr, right: ast.expr, known: Sequence[str]) -> Iterator[tuple[int, int]]:
        start = place(left.end_lineno, left.end_col_offset)
        end = place(right.lineno, right.col_offset)
        if text[start:end].strip() in known:  # no brackets or comments in between
            yield start, end

    if isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARE:
        for start, end in between(
            node.left, node.comparators[0], ("<", "<=", ">", ">=", "==", "!=")
        ):
            yield start, end, f" {_COMPARE[type(node.ops[0])]} "
    elif isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        for start, end in between(node.left, node.right, ("+", "-", "*", "/")):
            yield start, end, f" {_ARITHMETIC[type(node.op)]} "
    elif isinstance(node, ast.BoolOp):
        for start, end in between(node.values[0], node.values[1], ("and", "or")):
            yield start, end, f" {_LOGIC[type(node.op)]} "
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        if isinstance(node.op, ast.Not) or not isinstance(node.operand, ast.Constant):
            start = place(node.lineno, node.col_offset)
            yield start, start + len("not " if isinstance(node.op, ast.Not) else "-"), ""
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


def _function_at(tree: ast.Module, line: int) -> str:
    """The innermost function around a line, named as `code.co_qualname` names it."""
    found, inside = "", ""
    nodes: list[tuple[ast.AST, str]] = [(tree, "")]
    while nodes:
        node, inside = nodes.pop()
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                nodes.append((child, inside))
                continue
            # Defaults of arguments are worked out where the function is made.
            if child.body[0].lineno <= line <= (child.end_lineno or child.lineno):
                name = f"{inside}{child.name}"
                if isinstance(child, ast.ClassDef):
                    nodes.append((child, f"{name}."))
                else:
                    found = name
                    nodes.append((child, f"{name}.<locals>."))
    return found


def sampled(count: int, seed: int, rooms: Sequence[str], without: Sequence[int]) -> list[Mutant]:
    """So many different ones at random, rooms in turn; none that the seeds `without` draw.

    A file is drawn first, so that long ones do not crowd out short ones.
    """
    draw = random.Random(seed)
    left = {room: [mutants_of(file) for file in _files(ROOMS.get(room, (room,)))] for room in rooms}
    drawn = {each for other in without for each in sampled(count, other, rooms, ())}
    found: list[Mutant] = []
    while any(left.values()) and len(found) < count:
        files = left[rooms[len(found) % len(rooms)]]
        chosen = draw.choice(draw.choice(files))
        for each in files:
            if chosen in each:
                each.remove(chosen)
        left[rooms[len(found) % len(rooms)]] = [each for each in files if each]
        if chosen not in drawn:
            found.append(chosen)
    return found


def _files(parts: Sequence[str]) -> list[str]:
    """All files of these folders and files of the package that have anything to change."""
    paths = [
        path for part in parts for path in sorted({PACKAGE / part, *(PACKAGE / part).rglob("*.py")})
    ]
    names = [str(path.relative_to(PACKAGE)) for path in paths if path.is_file()]
    return [name for name in names if mutants_of(name)]
