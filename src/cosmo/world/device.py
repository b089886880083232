"""Kernel code on a GPU, and the memory of a batch laid out for it.

The functions are those of the CPU, compiled again by numba-cuda (the extra `gpu`; `device_code`).
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any, get_type_hints

import numpy as np

from cosmo.world.device_code import NoGpuError, simulated


@cache
def cuda() -> Any:
    """numba.cuda, with a GPU that it can use.

    Raises:
        NoGpuError: If the extra or a GPU is missing.

    """
    if not hasattr(np, "row_stack"):  # numba-cuda 0.30 asks NumPy 2.5 for it
        vars(np)["row_stack"] = np.vstack
    try:
        found: Any = import_module("numba.cuda")
        import_module("numba.cuda.simulator")  # numba alone has a `cuda` that is empty
    except ImportError:
        raise NoGpuError("needs the extra 'gpu' (pip install 'cosmo-edge[gpu]')") from None
    try:
        available = bool(found.is_available())
    except Exception:  # a driver that is there and does not work says so in many ways
        available = False
    if not available:
        raise NoGpuError("no CUDA GPU can be used on this machine")
    return found


@contextmanager
def enough_memory() -> Iterator[None]:
    """Within the block a GPU whose memory is full, because others use it too, is none."""
    if simulated():
        yield
        return
    from numba.cuda.cudadrv.driver import CudaAPIError

    try:
        yield
    except CudaAPIError as error:
        if "OUT_OF_MEMORY" not in f"{error.code!r} {error}":
            raise
        raise NoGpuError("its memory is full") from None


def device_kernel(function: Callable[..., Any]) -> Any:
    """A kernel that Python launches; its machine code is kept on disk."""
    return cuda().jit(function) if simulated() else cuda().jit(function, cache=True, lto=False)


def stacked(arrays: Any, count: int) -> Any:
    """A (nested) named tuple of arrays, `count` times, along a new first axis."""
    if isinstance(arrays, np.ndarray):
        return np.repeat(arrays[None], count, axis=0)
    return type(arrays)(*(stacked(each, count) for each in arrays))


def to_device(arrays: Any) -> Any:
    """A (nested) named tuple of arrays in the GPU's memory; numbers stay as they are.

    The first index, the world, is the fastest: threads of neighbouring worlds that are at the same
    place read neighbouring memory.
    """
    if isinstance(arrays, np.ndarray):
        if simulated():  # its threads are Python's, for which fields are attributes of recarrays
            return arrays.copy(order="F").view(np.recarray if arrays.dtype.names else np.ndarray)
        sent = cuda().to_device(np.asfortranarray(arrays))
        return sent if arrays.ndim < 2 else _fortran_array(sent)
    if isinstance(arrays, tuple):
        return _like(arrays, map(to_device, arrays))
    return arrays


def _fortran_array(sent: Any) -> Any:
    """The same memory with a type that does not depend on the sizes of its axes: one that has a
    single element would make it another type, and have the kernel compiled once more.
    """
    return _fortran_kind()(sent.shape, sent.strides, sent.dtype, gpu_data=sent.gpu_data)


@cache
def _fortran_kind() -> Any:
    from numba import types
    from numba.cuda.cudadrv.devicearray import DeviceNDArray
    from numba.np import numpy_support

    class FortranArray(DeviceNDArray):
        @property
        def _numba_type_(self) -> Any:
            return types.Array(numpy_support.from_dtype(self.dtype), self.ndim, "F")

    return FortranArray


def _like(arrays: tuple[Any, ...], made: Iterable[Any]) -> Any:
    return type(arrays)(*made) if hasattr(arrays, "_fields") else tuple(made)


def bytes_of(arrays: Any) -> int:
    """How much memory a (nested) named tuple of arrays takes."""
    if isinstance(arrays, np.ndarray):
        return int(arrays.nbytes)
    return sum(map(bytes_of, arrays)) if isinstance(arrays, tuple) else 0


def longest_of(arrays: Any) -> int:
    """How many elements the longest array of a (nested) named tuple has."""
    if isinstance(arrays, np.ndarray):
        return arrays.size
    return max(map(longest_of, arrays), default=0) if isinstance(arrays, tuple) else 0


def host(array: Any) -> Any:
    """What is in an array of the GPU."""
    return array if simulated() else array.copy_to_host()


def back(on_device: Any, arrays: Any) -> None:
    """Copy what the GPU has into the arrays that it came from."""
    if isinstance(arrays, np.ndarray):
        if arrays.flags.writeable and arrays.size:
            arrays[...] = host(on_device)
    elif isinstance(arrays, tuple):
        for there, here in zip(on_device, arrays, strict=True):
            back(there, here)


def row_getter(kind: type[Any]) -> Callable[..., Any]:
    """A function (stack, row) that makes of a stacked named tuple of this kind that of one row.

    Written out for each kind: compiled code cannot loop over the fields of a tuple.
    """
    names: dict[str, Any] = {}

    def written(kind: type[Any], path: str) -> str:
        names[kind.__name__] = kind
        fields = [
            written(field, f"{path}.{name}") if hasattr(field, "_fields") else f"{path}.{name}[row]"
            for name, field in get_type_hints(kind).items()
        ]
        return f"{kind.__name__}({', '.join(fields)})"

    source = f"def row_of_{kind.__name__}(stack, row):\n    return {written(kind, 'stack')}\n"
    exec(compile(source, __file__, "exec"), names)
    found: Callable[..., Any] = names[f"row_of_{kind.__name__}"]
    return found
