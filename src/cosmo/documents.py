"""Validated documents in TOML: presets, files that extend one another, single fields by name."""

import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from itertools import islice
from pathlib import Path
from typing import Any, Generic, TypeVar

import tomli_w
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from cosmo.errors import InputError, did_you_mean
from cosmo.files import MOST_DOCUMENT, read_bytes

Model = TypeVar("Model", bound=BaseModel)
# What reading a file takes grows with its entries, and with the square of how deep each key is.
_MOST_ENTRIES = 100_000  # keys, tables and lists in lists of a file; numbers in a list are none
_MOST_DEPTH = 2e7  # sum of squares of the dots in a row of keys
_MOST_SETTINGS = 10_000
_MOST_NAMED = 1000  # mistakes of which the first is named, in lists and tables of that length

# Single fields: `{"workload.rate": 220}`, or as on the command line, `["workload.rate=220"]`.
Settings = Mapping[str, Any] | Iterable[str]

_UNITS = {  # by how a field's name ends
    "cycles_per_ms": "cycles/ms",
    "_m_per_s": "m/s",
    "_ms": "ms",
    "_bytes": "bytes",
    "_mbps": "Mbps",
    "_m": "m",
    "_deg": "degrees",
    "cycles": "cycles",
    "rate": "tasks/s",
    "rates": "tasks/s",
    "rates_of_interest": "tasks/s",
}


@dataclass(frozen=True)
class Documents(Generic[Model]):
    """One kind of document: its model, and the folder of its presets in a package."""

    kind: str  # what a user calls it: scenario, training, plan
    model: type[Model]
    package: str
    first: str  # the preset that comes first
    example: str  # of a setting
    files: tuple[str, ...] = ()  # fields that name files, as seen from the document

    def preset_names(self) -> list[str]:
        """The presets that come with the package."""
        folder = resources.files(self.package).joinpath("presets")
        names = [
            item.name.removesuffix(".toml")
            for item in folder.iterdir()
            if item.name.endswith(".toml")
        ]
        return sorted(names, key=lambda name: (name != self.first, name))

    def schema(self) -> dict[str, Any]:
        """A JSON schema of such files, by which editors complete and check TOML.

        A file may extend a preset, so that no field is required.
        """
        found: dict[str, Any] = _without_required(self.model.model_json_schema())
        extends = {
            "type": "string",
            "description": f"A preset ({', '.join(self.preset_names())}), or the path of a file.",
        }
        found["properties"] = {"extends": extends, **found["properties"]}
        return {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            **found,
            "title": f"CoSMO {self.kind}",
        }

    def load(self, source: str | Path, settings: Settings = ()) -> Model:
        """A preset by name or a TOML file by path, with single fields set."""
        if not isinstance(source, str | Path):
            raise InputError(
                f"{self.kind} = {short(source)}: must be a preset's name or the path of a file"
            )
        try:
            data = self._read(source, seen=())
        except RecursionError:  # tables in tables, or files that extend files, without end
            raise InputError(f"{self.kind} = {short(str(source))}: nested too deeply") from None
        return self.validated(data, settings)

    def validated(self, data: dict[str, Any], settings: Settings = ()) -> Model:
        """A document from plain data, with single fields set.

        What people type is text, `["workload.rate=220"]`, read as TOML. Code has values:
        `{"name": "2024"}` stays a text, and nothing in it is read.
        """
        given = checked_settings(settings)
        pairs = given.items() if isinstance(given, dict) else map(self._parsed, given)
        for field, value in pairs:
            _set(data, field, value)
        try:
            return self.model.model_validate(data)
        except ValidationError as error:
            raise InputError(self._one_line(self._fewer(error, data))) from None
        except (OverflowError, RecursionError):
            raise InputError(f"{self.kind}: a number too long, or nested too deeply") from None

    def _read(self, source: str | Path, seen: tuple[str, ...]) -> dict[str, Any]:
        name, presets = str(source), self.preset_names()
        if name in presets:
            preset = resources.files(self.package).joinpath("presets", f"{name}.toml")
            text, where = preset.read_text(encoding="utf-8"), name
        else:
            path = Path(source)
            if not path.suffix and not os.path.exists(path):
                known = ", ".join(presets)
                raise InputError(
                    f"{self.kind} = {short(name)}: no such preset or file (presets: {known})"
                    f"{did_you_mean(name, presets)}"
                )
            try:
                content = read_bytes(path, MOST_DOCUMENT)  # which may begin with a BOM
                text, where = content.decode("utf-8-sig"), str(path.resolve())
            except (OSError, ValueError) as error:
                reason = getattr(error, "strerror", None) or "not a text file in UTF-8"
                raise InputError(
                    f"{self.kind} = {short(name)}: cannot be read ({reason})"
                ) from None
        if where in seen:
            raise InputError(
                f"{name}: extends = {short(str(source))}: a file may not extend itself"
            )
        _check_size(name, text)
        try:
            data = tomllib.loads(text)
        except ValueError as error:  # also for integers that are too long for Python
            raise InputError(f"{name}: not valid TOML: {error}") from None
        except RecursionError:
            raise InputError(f"{name}: not valid TOML: nested too deeply") from None
        if name not in presets:
            for field in self.files:
                _find_beside(data, field, Path(source).parent)
        if "extends" not in data:
            return data
        parent = data.pop("extends")
        if not isinstance(parent, str):
            raise InputError(
                f"{name}: extends = {short(parent)}: must be a preset's name or a path"
            )
        if parent not in presets and name not in presets:
            parent = str(Path(source).parent / parent)
        return _merge(self._read(parent, (*seen, where)), data)

    def _fewer(self, error: ValidationError, data: dict[str, Any]) -> ValidationError:
        """The same, or one with fewer mistakes if they are more than can be listed."""
        if error.error_count() <= _MOST_NAMED:
            return error
        try:
            self.model.model_validate(_beginning(data))
        except ValidationError as first:
            return first
        raise InputError(f"{self.kind}: has {error.error_count()} values that are not allowed")

    def _parsed(self, setting: str) -> tuple[str, Any]:
        field, equals, text = setting.partition("=")
        if not equals or not all(field.strip().split(".")):
            raise InputError(f"setting {setting!r}: must look like {self.example}")
        try:
            value: Any = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            value = text.strip()  # a bare word, as in workload.arrivals=poisson
        except (ValueError, RecursionError):
            raise InputError(
                f"setting {field.strip()} = {short(text)}: a number too long, or nested too deeply"
            ) from None
        return field.strip(), value

    def _one_line(self, error: ValidationError) -> str:
        """The first thing that is wrong: field, value, what is allowed."""
        problems = error.errors(include_url=False)
        first = problems[0]
        if isinstance(first["input"], list):  # of a number or a list, a list was meant
            same = [problem for problem in problems if problem["loc"][:2] == first["loc"][:2]]
            first = max(same, key=lambda problem: len(problem["loc"]))
        unknown = first["type"] == "extra_forbidden"
        *groups, last = map(str, first["loc"]) if first["loc"] else ("",)
        keys = [key for key in groups if _is_name(key)]
        keys += [last] if unknown or _is_name(last) else []
        field = ".".join(key if len(key) <= 60 else f"{key[:57]}..." for key in keys)
        if unknown:
            line = f"{field}: unknown field{_suggestion(self.model, keys)}"
        elif first["type"] == "missing":
            line = f'{field}: missing (start from a preset with extends = "{self.first}")'
        elif first["type"] == "value_error":
            line = f"{field}{'.' if field else ''}{first['ctx']['error']}"
        else:
            line = f"{field} = {short(first['input'])}: {_plain(first, keys)}"
        # A list of which an item is wrong is not another mistake.
        own = {first["loc"][:count] for count in range(len(first["loc"]) + 1)}
        others = len({problem["loc"][:2] for problem in problems} - own)
        return line + (f" (and {others} more)" if others > 0 else "")


def checked_settings(settings: Settings) -> dict[str, Any] | list[str]:
    """Settings as they were given: values by field, or texts. InputError in one line for others."""
    wrong = f"settings = {short(settings)}: must be a dictionary by field, or a list of texts"
    if isinstance(settings, str | bytes) or not isinstance(settings, Iterable):
        raise InputError(wrong)
    given = list(islice(settings, _MOST_SETTINGS + 1))
    if len(given) > _MOST_SETTINGS:
        raise InputError(f"settings: must be at most {_MOST_SETTINGS}; write a file")
    if not all(isinstance(each, str) for each in given):
        raise InputError(wrong)
    if isinstance(settings, Mapping):
        return {name: plain_value(value) for name, value in settings.items()}
    return given


def plain_value(value: Any) -> Any:
    """A value as TOML would have it: numbers of NumPy and paths are numbers and texts."""
    if isinstance(value, Path):
        return str(value)
    return value.tolist() if type(value).__module__ == "numpy" else value


def _check_size(name: str, text: str) -> None:
    """Refuse a text that would take minutes, or gigabytes, to read."""
    entries = sum(map(text.count, "=[{"))
    if entries > _MOST_ENTRIES:
        raise InputError(f"{name}: has {entries} keys and tables, must be at most {_MOST_ENTRIES}")
    if sum(part[0].count(".") ** 2 for part in _KEYS.finditer(text)) > _MOST_DEPTH:
        raise InputError(f"{name}: not valid TOML: nested too deeply")


_KEYS = re.compile(r"[^=,{\n]+")  # a key with its dots, and much that is none


def _beginning(value: Any) -> Any:
    """Lists and tables without what follows their first items."""
    if isinstance(value, Mapping):
        return {key: _beginning(each) for key, each in islice(value.items(), _MOST_NAMED)}
    if isinstance(value, list | tuple):
        return [_beginning(each) for each in value[:_MOST_NAMED]]
    return value


def _without_required(schema: Any) -> Any:
    """A schema whose objects need none of their fields; a field may be called `required`."""
    if isinstance(schema, list):
        return [_without_required(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: _without_required(each)
        for name, each in schema.items()
        if not (name == "required" and isinstance(each, list))
    }


def dump(document: BaseModel) -> str:
    """The document as the text of a complete TOML file; fields that are None are left out."""
    return _NUMBERS.sub(_in_a_line, tomli_w.dumps(document.model_dump(exclude_none=True)))


_NUMBERS = re.compile(r"\[\n((?: +[-+.\w]+,\n)+) *\]")  # a list of numbers, each on its own line


def _in_a_line(found: re.Match[str]) -> str:
    line = f"[{', '.join(item.strip(' ,') for item in found[1].splitlines())}]"
    return line if len(line) <= 80 else found[0]


def _set(data: dict[str, Any], field: str, value: Any) -> None:
    *groups, last = field.split(".")
    for key in groups:
        inner = data.setdefault(key, {})
        if not isinstance(inner, dict):
            raise InputError(f"{field}: {key} is a value, not a group of fields")
        data[key] = data = dict(inner)
    data[last] = value


def _find_beside(data: dict[str, Any], field: str, folder: Path) -> None:
    """Let a relative path in a document start from the document's folder."""
    *groups, last = field.split(".")
    for key in groups:
        inner = data.get(key)
        if not isinstance(inner, dict):
            return
        data = inner
    if isinstance(data.get(last), str) and data[last]:
        data[last] = str(folder / data[last])


def _merge(base: dict[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in over.items():
        if isinstance(value, Mapping) and isinstance(merged.get(key), Mapping):
            merged[key] = _merge(merged[key], value)
        else:
            merged[key] = value
    return merged


def _is_name(key: str) -> bool:
    """Whether part of a place is a field or a number, and not what pydantic calls a type."""
    return (key.isidentifier() or key.isdigit()) and key not in ("float", "int")


def _plain(problem: ErrorDetails, keys: list[str]) -> str:
    if problem["type"] in ("model_type", "model_attributes_type"):
        return "must be a group of fields"
    text = (
        problem["msg"]
        .replace("Input should be", "must be")
        .replace("Tuple should", "must")
        .replace("a valid tuple", "a list")
    )
    name = next((key for key in reversed(keys) if not key.isdigit()), "")
    unit = next((unit for end, unit in _UNITS.items() if name.endswith(end)), "")
    return text + (f", in {unit}" if unit else "")


def short(value: object) -> str:
    """A value in at most 60 characters, whatever it is."""
    try:
        text = repr(value)
    except Exception:  # Python does not write integers of thousands of digits
        text = f"a very long {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."


def _suggestion(top: type[BaseModel], keys: list[str]) -> str:
    model: type[BaseModel] | None = top
    for key in keys[:-1]:
        field = model.model_fields.get(key) if model else None
        inner = field.annotation if field else None
        model = inner if isinstance(inner, type) and issubclass(inner, BaseModel) else None
    if model is None:
        return ""
    close = did_you_mean(keys[-1], model.model_fields)
    return close or f", allowed: {', '.join(model.model_fields)}"
