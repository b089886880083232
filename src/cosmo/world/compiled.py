"""How kernel code is compiled, said once."""

import dis
import hashlib
import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import BuiltinFunctionType, FunctionType
from typing import Any, TypeGuard

from numba import njit

# Kernels allocate nothing and keep no array beyond a call, so they need no reference counts.
# Counting references to the arrays of a batch would take eight times as long as the events do.
_NO_REFERENCE_COUNTS: dict[str, Any] = {"_nrt": False}
_NO_WRAPPERS: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
# A batch is some forty arrays; handing them from function to function costs more than the events.
_INLINED: dict[str, Any] = {"forceinline": True}
# Functions of `math` that have the same bits on every processor.
_EXACT = {
    "sqrt",
    "floor",
    "ceil",
    "trunc",
    "fabs",
    "isnan",
    "isinf",
    "isfinite",
    "inf",
    "nan",
    "pi",
}


def compiled(function: Callable[..., Any]) -> Any:
    """A function of the kernel, for other kernel code only: Python cannot call it.

    Leaving out the wrappers that would let it saves more than half of the compile time.
    """
    return njit(**_INLINED, **_NO_WRAPPERS, **_NO_REFERENCE_COUNTS)(function)


def _is_plain(value: Any) -> TypeGuard[FunctionType]:
    """Whether it is a function that is not compiled, nor stands for one that is."""
    return isinstance(value, FunctionType) and not hasattr(value, "py_func")


@cache
def compiled_rule(function: Callable[..., Any]) -> Any:
    """A plain function, with all plain functions that it calls by name, compiled."""
    return compiled(with_names(function))


def with_names(function: Callable[..., Any], **given: Any) -> FunctionType:
    """A copy of a plain function in which some global names mean something else.

    Plain functions that it calls are compiled: compiled code can call compiled code alone, which it
    finds under the same names.
    """
    assert isinstance(function, FunctionType)
    names = {**function.__globals__, **given}
    for each in dis.get_instructions(function):
        name = each.argval
        if each.opname == "LOAD_GLOBAL" and _is_plain(names.get(name)):
            names[name] = compiled_rule(names[name])
    return FunctionType(function.__code__, names, function.__name__, None, function.__closure__)


def _called_by(*functions: Callable[..., Any]) -> list[FunctionType]:
    """These plain functions and all that they call."""
    found: list[FunctionType] = []
    open_ = list(functions)
    while open_:
        function = open_.pop()
        assert isinstance(function, FunctionType)
        if function not in found:
            found.append(function)
            open_ += filter(_is_plain, (value for _, value in _globals_of(function)))
    return found


def _globals_of(function: FunctionType) -> list[tuple[str, Any]]:
    """What a function knows by global names, with these."""
    names = [e.argval for e in dis.get_instructions(function) if e.opname == "LOAD_GLOBAL"]
    return [(name, function.__globals__.get(name)) for name in names]


def sources_of(*functions: Callable[..., Any]) -> str:
    """A digest of these plain functions and all that they call: their files, and the numbers that
    they know by name.
    """
    files, numbers = set[str](), set[str]()
    for function in _called_by(*functions):
        files.add(function.__code__.co_filename)
        for name, value in _globals_of(function):
            if isinstance(value, int | float | tuple):
                numbers.add(f"{name} = {value!r}")
    digest = hashlib.sha256("\n".join(sorted(numbers)).encode())
    for name in sorted(files):
        digest.update(Path(name).read_bytes())
    return digest.hexdigest()


def inexact_in(*functions: Callable[..., Any]) -> set[str]:
    """What these plain functions compute, or those that they call, whose last bits depend on the
    processor: all but sums, products, quotients, roots and roundings.
    """
    found = set[str]()
    for function in _called_by(*functions):
        used = {value.__name__ for _, value in _globals_of(function) if _is_of_math(value)}
        for each in dis.get_instructions(function):
            if each.opname in ("LOAD_ATTR", "LOAD_METHOD") and hasattr(math, str(each.argval)):
                used.add(str(each.argval))
            if each.opname == "BINARY_OP" and each.argrepr.startswith("**"):
                found.add("**")
        found |= used - _EXACT
    return found


def _is_of_math(value: Any) -> bool:
    return isinstance(value, BuiltinFunctionType) and value.__module__ == "math"


def entry_point(function: Callable[..., Any]) -> Any:
    """A function of the kernel that Python calls; its machine code is kept on disk."""
    return njit(cache=True, **_NO_REFERENCE_COUNTS)(function)


def fingerprint_of(*folders: Path) -> str:
    """A digest of all Python files in these folders, for the key of a compiled function's cache.

    Numba looks at the entry point's own file only. Whole folders, so that no constant that is
    compiled in can be forgotten.
    """
    digest = hashlib.sha256()
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()
