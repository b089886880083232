"""How kernel code is compiled, said once."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any

from numba import njit

# Kernels allocate nothing and keep no array beyond a call, so they need no reference counts.
# Counting references to the arrays of a batch would take eight times as long as the events do.
_NO_REFERENCE_COUNTS: dict[str, Any] = {"_nrt": False}
_NO_WRAPPERS: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
# A batch is some forty arrays; handing them from function to function costs more than the events.
_INLINED: dict[str, Any] = {"forceinline": True}


def compiled(function: Callable[..., Any]) -> Any:
    """A function of the kernel, for other kernel code only: Python cannot call it.

    Leaving out the wrappers that would let it saves more than half of the compile time.
    """
    return njit(**_INLINED, **_NO_WRAPPERS, **_NO_REFERENCE_COUNTS)(function)


def compiled_module(module: ModuleType) -> SimpleNamespace:
    """The functions of a module of plain formulas, which may call those above them, compiled."""
    made: dict[str, Any] = {}
    for name, function in vars(module).items():
        if isinstance(function, FunctionType) and function.__module__ == module.__name__:
            # Compiled code can call compiled code alone: it finds that under the same names.
            names = {**function.__globals__, **made}
            made[name] = compiled(FunctionType(function.__code__, names, name))
    return SimpleNamespace(**made)


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
