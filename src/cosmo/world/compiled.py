"""How kernel code is compiled, said once."""

from collections.abc import Callable
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


def entry_point(function: Callable[..., Any]) -> Any:
    """A function of the kernel that Python calls; its machine code is kept on disk."""
    return njit(cache=True, **_NO_REFERENCE_COUNTS)(function)
