"""Parameters of methods as text: what the command line, plans and configuration files give.

Types come from the constructor's annotations; bounds are said with `Annotated`, as in `Positive`.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a number must keep to; `above` and `most` in words of the error that it makes."""

    above: float = -math.inf  # greater than
    most: float = math.inf  # at most

    def refusal(self, value: float) -> str:
        """What is wrong with a value; empty if nothing."""
        # Comparisons, not isfinite: whole numbers may be too large for a float.
        if self.above < value <= self.most and value != math.inf:
            return ""
        if not math.isfinite(self.most):
            return f"must be greater than {self.above:g}"
        return f"must be greater than {self.above:g} and at most {self.most:g}"


_MOST_WHOLE = 2**63 - 1  # what a rule's numbers have room for

Positive = Annotated[float, Bounds(above=0.0)]
PositiveInt = Annotated[int, Bounds(above=0.0)]
Share = Annotated[float, Bounds(above=0.0, most=1.0)]

_BOOLEANS = {"true": True, "false": False, "1": True, "0": False}
_TYPES: dict[type, str] = {float: "a number", int: "a whole number"}


def type_and_bounds(hint: Any) -> tuple[Any, list[Bounds]]:
    """The type of an annotation without bounds and without None, and the bounds that it says."""
    if get_origin(hint) is Annotated:
        kind, *notes = get_args(hint)
        inner, bounds = type_and_bounds(kind)
        return inner, [*bounds, *(note for note in notes if isinstance(note, Bounds))]
    if get_origin(hint) in (Union, UnionType):
        [kind] = [each for each in get_args(hint) if each is not NoneType]
        return type_and_bounds(kind)
    return hint, []


def parsed(text: str, hint: Any) -> Any:
    """A value of the annotated type; ValueError says what it must be."""
    kind, bounds = type_and_bounds(hint)
    value = _of_type(text, kind)
    for each in bounds:
        if wrong := each.refusal(value):
            raise ValueError(wrong)
    if kind is int and abs(value) > _MOST_WHOLE:
        raise ValueError("must be a whole number of at most 63 bits")
    return value


def _of_type(text: str, hint: Any) -> Any:
    if hint is bool:
        if text.lower() not in _BOOLEANS:
            raise ValueError("must be true or false")
        return _BOOLEANS[text.lower()]
    if hint in _TYPES:
        try:
            return hint(text)
        except (ValueError, OverflowError):
            raise ValueError(f"must be {_TYPES[hint]}") from None
    return Path(text) if hint is Path else text
