"""Odd values, and damage: what cases of every kind are made with."""

import tomllib
from collections.abc import Callable, Collection
from typing import Any

from hypothesis import strategies as st

Draw = Callable[[st.SearchStrategy[Any]], Any]

ODD_NUMBERS = (
    "0", "-0.0", "-1", "1e-300", "1e-15", "1e-9", "1e-3", "0.5", "1", "2", "3.0", "64", "1e3",
    "1e6", "1e9", "1e15", "1e16", "1e300", "1e308", "9" * 30, "9" * 5000, "0x10", "1_000", "-1e300",
)  # fmt: skip
NO_NUMBERS = ("nan", "inf", "-inf", "true", "'text'", "{}", "{a=1}", "''", "[[]]", "1979-05-27")
ODD_LISTS = (
    "[]",
    "[1]",
    "[1,2]",
    "[2,1]",
    "[1,2,3]",
    "[0,0]",
    "[nan,1]",
    "[[1,2],[3]]",
    "['a','b']",
)
ODD_TEXTS = (
    "", " ", "paper ", "poisson ", "\u202e", "\x00", "\x1b[31m", "a\nb", "../../x", "/", "@@DATA@@",
    "<!--<script>", "[/home/me]", "[" * 2000, "{" * 500, "'" * 3, "a=b=c", "=", ".", "..", "\udcff",
    "none", "é" * 300, "x" * 5000,
)  # fmt: skip


def some(*values: Any) -> st.SearchStrategy[Any]:
    """One of these."""
    return st.sampled_from(values)


texts = st.one_of(some(*ODD_TEXTS), st.text(max_size=12))
values = st.one_of(some(*ODD_NUMBERS), some(*NO_NUMBERS), some(*ODD_LISTS), texts)


def nearby(value: Any) -> st.SearchStrategy[str]:
    """Other values of a field that may well be allowed: a number scaled, a list of such."""
    factor = st.one_of(some(0.0, 0.01, 0.1, 0.5, 2.0, 3.0, 10.0, 1e3), st.floats(0.2, 5.0))
    if isinstance(value, bool) or not isinstance(value, int | float | list):
        words = "true", "false", "'deterministic'", "'bursty'", "'steps'", "'turn'", "'leave'"
        return some(*words, *([f"'{value}'"] * 3 if isinstance(value, str) else []))
    if isinstance(value, list):
        parts = [nearby(each) for each in value]
        return st.tuples(*parts).map(lambda told: f"[{','.join(told)}]")
    scaled = factor.map(lambda by: value * by)
    return scaled.map(lambda x: str(round(x)) if isinstance(value, int) else repr(float(x)))


def other(draw: Draw, value: Any) -> str:
    """Another value for one that is allowed: as often one like it as any odd one."""
    return str(draw(nearby(value) if draw(st.booleans()) else values))


def seldom(draw: Draw, one_in: int) -> bool:
    """True once in so many times, or about so often."""
    return bool(draw(st.integers(1, one_in)) == one_in)


def plain(arguments: tuple[str, ...]) -> tuple[str, ...]:
    """What can be on a command line: no NUL."""
    return tuple(part.replace("\x00", "") for part in arguments)


def damaged(draw: Draw, content: bytes) -> bytes:
    """Bytes flipped, cut, doubled or dropped; or as they are."""
    how, place = draw(st.integers(0, 6)), draw(st.integers(0, max(len(content) - 1, 0)))
    if not content or how == 0:
        return content
    if how == 1:
        return content[:place]
    if how == 2:
        return content[:place] + content[place + draw(st.integers(1, 20)) :]
    if how == 3:
        return content[:place] + bytes(draw(st.binary(min_size=1, max_size=6))) + content[place:]
    if how == 4:
        return content + content[place:]
    flipped = bytearray(content)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(content) - 1))
        flipped[at] ^= 1 << draw(st.integers(0, 7))
    return bytes(flipped)


def rewritten(draw: Draw, text: str, keep: Collection[str] = ()) -> str:
    """Lines of a TOML file changed, dropped, doubled or moved; values of `keep` stay."""
    lines = text.split("\n")
    for _ in range(draw(some(0, 1, 1, 2, 3))):
        at = draw(st.integers(0, len(lines) - 1))
        how = draw(st.integers(0, 6))
        if how == 0:
            del lines[at]
        elif how == 1:
            lines.insert(draw(st.integers(0, len(lines))), lines[at])
        elif how == 2:
            lines.insert(at, draw(texts))
        elif "=" in lines[at]:
            name, _, told = lines[at].partition("=")
            if name.strip() not in keep:
                lines[at] = f"{name}= {other(draw, _value(told))}"
        lines = lines or [""]
    return "\n".join(lines)


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return None


def celled(draw: Draw, text: str) -> bytes:
    """A CSV file with odd cells, short and long rows, and damage."""
    lines = text.split("\n")
    for _ in range(draw(some(0, 0, 1, 2))):
        at = draw(st.integers(0, len(lines) - 2))
        cells = lines[at].split(",")
        place = draw(st.integers(0, len(cells) - 1))
        cells[place] = other(draw, _value(cells[place]))
        whole = ",".join(cells)
        lines[at] = draw(some(whole, whole, whole, ",".join(cells[:-1]), whole + ",1"))
    content = "\n".join(lines).encode("utf-8", "surrogatepass")
    return damaged(draw, content) if seldom(draw, 4) else content


def columned(draw: Draw, columns: dict[str, Any]) -> dict[str, Any]:
    """Columns of a Parquet file of which some have odd values, or are missing."""
    found, rows = dict(columns), len(next(iter(columns.values())))
    for _ in range(draw(some(0, 0, 1, 2))):
        name = draw(some(*columns))
        odd = draw(
            some(None, "a", True, float("nan"), float("inf"), -1.0, 0, 3, 1.7e12, [1], 2**62, 1e300)
        )
        found[name] = draw(some([odd] * rows, [*found.get(name, [0] * rows)[:-1], odd]))
        if seldom(draw, 6):
            del found[name]
    return found


def spoil(draw: Draw, told: Any) -> None:
    """Change or drop something, somewhere inside."""
    while isinstance(told, dict | list) and told:
        key = draw(some(*told)) if isinstance(told, dict) else draw(st.integers(0, len(told) - 1))
        if not isinstance(told[key], dict | list) or seldom(draw, 4):
            odd = draw(
                some(None, "a", -1, 0, 10**400, float("nan"), float("inf"), [], {}, [1], True)
            )
            if isinstance(told, dict) and draw(st.booleans()):
                del told[key]
            else:
                told[key] = odd
            return
        told = told[key]
