"""What a method is tuned over: ranges and lists of values for its parameters.

As text, `threshold_ms=0:30`, `interval_ms=1:1000:log` or `keep=2,3,5`; from Python, a pair for a
range and a list for values. Settings are texts, as methods have them in their names, with four
digits that count: what is played is what can be pasted.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from cosmo.errors import InputError, did_you_mean
from cosmo.node import Method
from cosmo.policy.parameters import Bounds, parsed
from cosmo.policy.registry import types_of

Setting = dict[str, str]  # values of all parameters that are tuned, as a method's name has them
Over = Mapping[str, Any] | Iterable[str]
_SHAPE = "must be LOW:HIGH, LOW:HIGH:log or values with commas"
_INWARDS = 1e-3  # of a range: where an end is that the parameter itself does not allow


@dataclass(frozen=True)
class Range:
    """All numbers from `low` to `high`, or all whole ones; `log` spreads them by their ratios."""

    low: float
    high: float
    whole: bool
    log: bool = False

    def values(self) -> tuple[str, ...] | None:
        """All of them, or None where they cannot be counted."""
        whole = range(int(self.low), int(self.high) + 1) if self.whole else None
        return None if whole is None else tuple(map(str, whole))

    def suggested(self, trial: Any, name: str) -> str:
        """What Optuna wants to try next."""
        if self.whole:
            return str(trial.suggest_int(name, int(self.low), int(self.high), log=self.log))
        return f"{trial.suggest_float(name, self.low, self.high, log=self.log):.4g}"

    @property
    def ends(self) -> tuple[str, ...]:
        """The least and the greatest."""
        return tuple(f"{end:.0f}" if self.whole else f"{end:.4g}" for end in (self.low, self.high))

    def __str__(self) -> str:
        return ":".join([*self.ends, *(["log"] if self.log else [])])


@dataclass(frozen=True)
class Values:
    """These and no others."""

    choices: tuple[str, ...]

    def values(self) -> tuple[str, ...]:
        """All of them."""
        return self.choices

    def suggested(self, trial: Any, name: str) -> str:
        """What Optuna wants to try next."""
        return str(trial.suggest_categorical(name, list(self.choices)))

    @property
    def ends(self) -> tuple[str, ...]:
        """All: none is between two others."""
        return self.choices

    def __str__(self) -> str:
        return ",".join(self.choices)


Space = dict[str, Range | Values]


def space_of(kind: type[Method], over: Over, fixed: Iterable[str] = ()) -> Space:
    """What `over` says about parameters of a method; `fixed` ones cannot be tuned.

    Raises InputError in one line for what is unknown, not allowed, or there twice.
    """
    types = types_of(kind)
    found: Space = {}
    for name, given in _items(over):
        where = f"--over {name}"
        if name not in types:
            close = did_you_mean(name, types) or f" (allowed: {', '.join(types) or 'none'})"
            raise InputError(f"{where}: unknown parameter{close}")
        if name in fixed:
            raise InputError(f"{where}: the method's name sets it already")
        if name in found:
            raise InputError(f"{where}: is there twice")
        found[name] = _axis(where, given, types[name])
    if not found:
        raise InputError("--over: names no parameter, as in --over threshold_ms=0:30")
    return found


def grid(space: Space, most: int) -> list[Setting] | None:
    """Every setting of a space that has `most` at most; None if it has more."""
    axes = [axis.values() for axis in space.values()]
    known = [axis for axis in axes if axis is not None]
    if len(known) < len(axes) or math.prod(map(len, known)) > most:
        return None
    return [dict(zip(space, values, strict=True)) for values in product(*known)]


def corners(space: Space) -> list[Setting]:
    """Each end of each axis with the first ends of the others: what the method must allow."""
    first = {name: axis.ends[0] for name, axis in space.items()}
    return [first | {name: end} for name, axis in space.items() for end in axis.ends]


def _items(over: Over) -> list[tuple[str, Any]]:
    if isinstance(over, Mapping):
        return list(over.items())
    if isinstance(over, str):
        raise InputError(f"over = {over!r}: must be a list or a dictionary")
    split = [(item, *item.partition("=")) for item in over]
    for item, _, equals, _ in split:
        if not equals:
            raise InputError(f"--over {item!r}: must look like name=LOW:HIGH")
    return [(name.strip(), text.strip()) for _, name, _, text in split]


def _axis(where: str, given: Any, hint: Any) -> Range | Values:
    if isinstance(given, str):
        parts = [part.strip() for part in given.split(":")]
        if len(parts) in (2, 3) and _base(hint) in (int, float):
            if parts[2:] not in ([], ["log"]):
                raise InputError(f"{where}={given}: {_SHAPE}")
            return _range(where, parts[0], parts[1], hint, bool(parts[2:]))
        return _values(where, [part.strip() for part in given.split(",")], hint)
    if isinstance(given, tuple) and len(given) == 2 and _base(hint) in (int, float):
        return _range(where, str(given[0]), str(given[1]), hint, False)
    if isinstance(given, list | tuple | range) and len(given):
        return _values(where, [str(value) for value in given], hint)
    raise InputError(f"{where} = {given!r}: must be a pair (low, high) or a list of values")


def _values(where: str, texts: list[str], hint: Any) -> Values:
    for text in texts:
        if ":" in text:
            raise InputError(f"{where}={text}: {_SHAPE}")
        _allowed(where, text, hint)
    if len(set(texts)) < len(texts):
        raise InputError(f"{where}={','.join(texts)}: values must be different")
    return Values(tuple(texts))


def _range(where: str, low_text: str, high_text: str, hint: Any, log: bool) -> Range:
    whole = _base(hint) is int
    try:
        low, high = (int(text) if whole else float(text) for text in (low_text, high_text))
    except ValueError:
        kind = "whole numbers" if whole else "numbers"
        raise InputError(f"{where}={low_text}:{high_text}: must be {kind}") from None
    if not -math.inf < low < high < math.inf:
        raise InputError(f"{where}={low_text}:{high_text}: the first must be less than the second")
    for bounds in _notes(hint):
        if low == bounds.above:  # the parameter must be greater than this
            low = low + 1 if whole else low + _INWARDS * (high - low)
    if log and low <= 0:
        raise InputError(f"{where}={low_text}:{high_text}:log: must be greater than 0")
    found = Range(low, high, whole, log)
    for end in found.ends:
        _allowed(where, end, hint)
    return found


def _allowed(where: str, text: str, hint: Any) -> None:
    try:
        parsed(text, hint)
    except ValueError as error:
        raise InputError(f"{where}={text}: {error}") from None


def _base(hint: Any) -> Any:
    """The type without bounds and without None."""
    if get_origin(hint) is Annotated:
        return _base(get_args(hint)[0])
    if get_origin(hint) in (Union, UnionType):
        [kind, *_] = [each for each in get_args(hint) if each is not NoneType]
        return _base(kind)
    return hint


def _notes(hint: Any) -> list[Bounds]:
    """The bounds that an annotation says."""
    if get_origin(hint) in (Union, UnionType):
        return [note for each in get_args(hint) for note in _notes(each)]
    return [note for note in getattr(hint, "__metadata__", ()) if isinstance(note, Bounds)]
