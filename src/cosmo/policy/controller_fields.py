"""What a trained controller says of itself, field by field: a number that is none is one line.

Files are sealed, but a seal only tells that nothing has changed since: whoever wrote one may have
written anything. Everything here raises ValueError with the field, the value and what is allowed.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Shapes = Mapping[str, Mapping[str, tuple[int, ...]]]  # by part, then by layer
_MOST = 1e12  # of any number: far beyond all that makes sense, and its square is still a number


class Fields:
    """A group of named fields, read with their types; `where` is its name in the document."""

    def __init__(self, data: Any, where: str = "") -> None:
        if not isinstance(data, Mapping):
            raise ValueError(f"{where or 'it'} = {_shown(data)}: must be a group of fields")
        self._data, self._where = data, where

    def name(self, field: str) -> str:
        """Of a field, with its group's."""
        return f"{self._where}.{field}" if self._where else field

    def has(self, field: str) -> bool:
        """Whether it is there: fields that came later need not be."""
        return self._data.get(field) is not None

    def value(self, field: str) -> Any:
        """Return the value of `field`, of any type; ValueError if it is missing."""
        if field not in self._data:
            raise ValueError(f"{self.name(field)}: is missing")
        return self._data[field]

    def group(self, field: str) -> "Fields":
        """Return the fields within `field`; ValueError if it is missing."""
        return Fields(self.value(field), self.name(field))

    def groups(self, field: str) -> list["Fields"]:
        """A list of such groups, at least one."""
        found = self.value(field)
        if not isinstance(found, list) or not found:
            raise ValueError(f"{self.name(field)} = {_shown(found)}: must be a list, not empty")
        return [Fields(each, f"{self.name(field)}.{place}") for place, each in enumerate(found)]

    def text(self, field: str) -> str:
        """Return the text of `field`; ValueError if it is not a text."""
        found = self.value(field)
        if not isinstance(found, str):
            raise ValueError(f"{self.name(field)} = {_shown(found)}: must be a text")
        return found

    def truth(self, field: str) -> bool:
        """Return the truth value of `field`; ValueError if it is not true or false."""
        found = self.value(field)
        if not isinstance(found, bool):
            raise ValueError(f"{self.name(field)} = {_shown(found)}: must be true or false")
        return found

    def whole(self, field: str, least: int, below: int) -> int:
        """A whole number within bounds."""
        found = self.value(field)
        if type(found) is not int or not least <= found < below:
            raise ValueError(
                f"{self.name(field)} = {_shown(found)}: must be a whole number from {least} to"
                f" {below - 1}"
            )
        return found

    def number(self, field: str, least: float = 0.0, most: float = _MOST) -> float:
        """A number within bounds."""
        return _number(self.name(field), self.value(field), least, most)

    def numbers(self, field: str, least: float, count: int = 0) -> tuple[float, ...]:
        """A list of numbers that are at least `least`: `count` of them, or at least one."""
        found = self.value(field)
        if not isinstance(found, list | tuple) or not found or (count and len(found) != count):
            what = f"a list of {count} numbers" if count else "a list of numbers, not empty"
            raise ValueError(f"{self.name(field)} = {_shown(found)}: must be {what}")
        return tuple(_number(self.name(field), each, least, _MOST) for each in found)


def _number(name: str, value: Any, least: float, most: float) -> float:
    good = isinstance(value, int | float) and not isinstance(value, bool)
    if not good or not least <= value <= most:  # NaN is refused as well
        raise ValueError(f"{name} = {_shown(value)}: must be a number from {least:g} to {most:g}")
    return float(value)


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except (ValueError, RecursionError):
        text = f"a very long {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."


def size(layers: Mapping[str, NDArray[Any]], name: str) -> int:
    """How many outputs a layer has, by its array's last axis."""
    if name not in layers or layers[name].ndim < 2 or not layers[name].shape[-1]:
        raise ValueError(f"there is no layer {name} with one axis of runs and one of outputs")
    return int(layers[name].shape[-1])


def check_layers(
    layers: Mapping[str, Mapping[str, NDArray[Any]]], shapes: Shapes, runs: int
) -> None:
    """Refuse arrays that are not finite numbers in these shapes, a row a run."""
    for part, expected in shapes.items():
        for name, shape in expected.items():
            found = layers.get(part, {}).get(name)
            whole: Sequence[int] = (runs, *shape)
            if found is None or found.shape != tuple(whole) or found.dtype.kind != "f":
                what = "is missing" if found is None else f"is {found.dtype} {list(found.shape)}"
                raise ValueError(f"{part}/{name} {what}: must be numbers in {list(whole)}")
            if not math.isfinite(np.abs(found).max(initial=0.0)):
                raise ValueError(f"{part}/{name}: has numbers that are not finite")
