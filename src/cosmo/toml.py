"""Plain data as TOML: what `tomllib`, which only reads, gives back as it was."""

import re
from collections.abc import Mapping
from typing import Any

_WIDTH = 80  # of a line, where its items can be broken up


def text(data: Mapping[str, Any]) -> str:
    """A document of numbers, texts, lists and groups; what is None is left out.

    Names must be those of fields: letters, digits and underscores.
    """
    return "\n".join(_lines(data, prefix=""))


def _lines(table: Mapping[str, Any], prefix: str) -> list[str]:
    known = {key: value for key, value in table.items() if value is not None}
    groups = {key: value for key, value in known.items() if isinstance(value, Mapping)}
    lists = {
        key: value
        for key, value in known.items()
        if isinstance(value, tuple | list) and value and isinstance(value[0], Mapping)
    }
    plain = {key: value for key, value in known.items() if key not in groups | lists}
    lines = [line for key, value in plain.items() for line in _assigned(key, value)]
    for key, value in groups.items():
        name = f"{prefix}{key}"
        lines += ["", f"[{name}]", *_lines(value, prefix=f"{name}.")]
    for key, items in lists.items():
        for item in items:
            name = f"{prefix}{key}"
            lines += ["", f"[[{name}]]", *_lines(item, prefix=f"{name}.")]
    return lines


def _assigned(key: str, value: object) -> list[str]:
    """`key = value`; a list that is too long for a line goes over several."""
    line = f"{key} = {_value(value)}"
    if len(line) <= _WIDTH or not isinstance(value, tuple | list):
        return [line]
    lines = [f"{key} = [", " "]
    for item in value:
        text = f" {_value(item)},"
        if len(lines[-1]) + len(text) > _WIDTH and lines[-1] != " ":
            lines.append(" ")
        lines[-1] += text
    return [*lines, "]"]


_CONTROL = re.compile(r'[\x00-\x1f\x7f"\\]')  # what a string of TOML may not hold as it is


def _escaped(found: re.Match[str]) -> str:
    sign = found[0]
    return f"\\{sign}" if sign in '"\\' else f"\\u{ord(sign):04x}"


def _value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{_CONTROL.sub(_escaped, value)}"'
    if isinstance(value, tuple | list):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    return repr(value)
