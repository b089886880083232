"""The files that a method's name names: `mine.py:X`, `onnx:en.onnx,updater=sn.onnx`, …; and traces.

A name is read as the registry reads it (`name:key=value,key=value`, where a value may be a method's
name again), but nothing is imported: to know what a method is made of must not run it.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from cosmo.control import METHODS
from cosmo.files import digest_of
from cosmo.policy.controller import AGENTS, DESCRIPTION
from cosmo.policy.learned_methods import LEARNED
from cosmo.policy.trained import shipped
from cosmo.scenario import Scenario


def digests(spec: str) -> list[str]:
    """SHA-256 of the contents of every file that is named, in hexadecimal, in the name's order.

    Of a checkpoint's folder, what a controller is read from (of the package's own, if none is
    named); of another folder, all its files.
    What a policy in Python opens or imports by itself is not known.
    """
    return [
        digest_of(path) for value in (*named(spec), *_shipped(spec)) for path in files(Path(value))
    ]


def trace_digests(scenarios: Iterable[Scenario]) -> list[str]:
    """The same of the files that scenarios take tasks and events from, each file once."""
    loads = [scenario.workload for scenario in scenarios]
    traces = dict.fromkeys(file for load in loads for file in (load.trace, load.events))
    return [digest_of(path) for trace in traces if trace and _is_file(path := Path(trace))]


def beside(spec: str, folder: Path) -> str:
    """The same method, with the files that are in `folder` named from there."""

    def found(value: str) -> str:
        near = folder / value
        return str(near) if _is_file(near) or _is_file(near / DESCRIPTION) else value

    return renamed(spec, found)


def runs_code(spec: str) -> bool:
    """Whether the method runs code from a file: a policy in Python, or a model of SB3, a pickle.

    It rather says yes: wherever the name of such a file or of `sb3` stands in the method's name.
    """
    words = [word.strip() for word in re.split("[:,=]", spec)]
    return any(word == "sb3" or word.endswith(".py") for word in words)


def named(spec: str) -> list[str]:
    """All parts of a method's name that may be the path of a file or a folder."""
    found: list[str] = []

    def note(value: str) -> str:
        found.append(value)
        return value

    renamed(spec, note)
    return found


def renamed(spec: str, change: Callable[[str], str]) -> str:
    """The same name, with `change` applied to every part that may be the path of a file."""
    name, colon, rest = spec.partition(":")
    if name.endswith(".py"):
        name = change(name)
    items = []
    for item in rest.split(",") if colon else ():
        key, equals, value = item.partition("=") if "=" in item else ("", "", item)
        core = value.strip()
        first = core.partition(":")[0]
        made = core
        if first.endswith(".py") or (":" in core and not os.path.exists(core)):
            made = renamed(core, change)
        elif core and core not in METHODS:
            made = change(core)
        items.append(f"{key}{equals}{value.replace(core, made, 1)}")
    return name + colon + ",".join(items)


def _shipped(spec: str) -> list[str]:
    """The controller of the package, if that is what the name stands for."""
    name, _, rest = spec.partition(":")
    own = name in LEARNED and LEARNED[name].shipped and "checkpoint=" not in rest
    return [str(shipped(name))] if own else []


def files(path: Path) -> Iterator[Path]:
    """The files that a path of a method's name stands for; none if there is nothing."""
    if _is_file(path):
        yield path
        # Large ONNX models keep their weights in a file beside them.
        weights = (path.with_name(path.name + end) for end in (".data", "_data"))
        yield from filter(_is_file, weights)
    elif _is_file(path / DESCRIPTION):
        yield from filter(_is_file, (path / DESCRIPTION, path / AGENTS))
    elif os.path.isdir(path):
        yield from sorted(filter(_is_file, path.rglob("*")))


def _is_file(path: Path) -> bool:
    return os.path.isfile(path)  # says no, and does not raise, for names that no file can have
