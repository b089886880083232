"""How kernel code is compiled for a GPU: with the bits of the CPU, and in few instructions.

numba-cuda has no options for what follows, so that while `for_kernels` lasts, some of its functions
are replaced:

- No product and sum are contracted into one operation with one rounding.
- Indices are not negative, and arrays have fewer than 2^31 elements (`MOST_ELEMENTS`), so that an
  index costs one multiplication of 32 bits an axis. Otherwise most instructions would be about
  places in arrays. (Views of a part of an array keep their strides of 64 bits.)
- No two arrays of a launch share memory, so that what has been read need not be read again after
  something else was written.
- A record that is aligned to words of 64 bits is copied in such words, not in bytes.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from threading import Lock
from typing import Any

MOST_ELEMENTS = 2**31 - 1  # of an array
_WORD = 8  # bytes

# What is replaced belongs to all threads: one that left earlier would take it from the others, or
# keep the other's replacement as the usual function.
_one_at_a_time = Lock()


class NoGpuError(Exception):
    """Why no GPU can be used, in a few words."""


@contextmanager
def for_kernels() -> Iterator[None]:
    """While this lasts, numba-cuda compiles kernels as the module says; one thread at a time.

    Raises:
        NoGpuError: If this version of numba-cuda cannot be told so.

    """
    if simulated():
        yield
        return
    changes = (
        ("dispatcher", None, "compile_cuda", _exactly_rounded),
        ("dispatcher", None, "kernel_fixup", _without_aliases),
        ("cgutils", None, "get_item_pointer2", _narrow_pointer),
        ("np.arrayobj", None, "fix_integer_index", _no_negative_index),
        ("core.base", "BaseContext", "pack_value", _copied_in_words),
    )
    with _one_at_a_time:
        usual: list[tuple[Any, str, Any, Any]] = []
        for place, owner, name, made in changes:
            try:
                module = import_module(f"numba.cuda.{place}")
                holder = getattr(module, owner) if owner else module
                usual.append((holder, name, getattr(holder, name), made))
            except (ImportError, AttributeError):
                lacks = f"this version of numba-cuda has no {place}.{name}, which must be replaced"
                raise NoGpuError(lacks) from None
        try:
            for holder, name, function, made in usual:
                setattr(holder, name, made(function))
            yield
        finally:
            for holder, name, function, _ in usual:
                setattr(holder, name, function)


def simulated() -> bool:
    """Whether there is no GPU, but Numba's simulator of one (NUMBA_ENABLE_CUDASIM)."""
    return bool(vars(import_module("numba.core.config"))["ENABLE_CUDASIM"])


def _exactly_rounded(usual: Callable[..., Any]) -> Callable[..., Any]:
    def compile_cuda(*given: Any, **named: Any) -> Any:
        options = {**(named.get("nvvm_options") or {}), "fma": 0}
        return usual(*given, **{**named, "nvvm_options": options})

    return compile_cuda


def _without_aliases(usual: Callable[..., Any]) -> Callable[..., Any]:
    from llvmlite import ir

    def kernel_fixup(kernel: Any, debug: Any) -> None:
        usual(kernel, debug)
        for argument in kernel.args:
            if isinstance(argument.type, ir.PointerType):
                argument.add_attribute("noalias")

    return kernel_fixup


def _no_negative_index(usual: Callable[..., Any]) -> Callable[..., Any]:
    from numba import types

    def fix_integer_index(context: Any, builder: Any, kind: Any, index: Any, size: Any) -> Any:
        return context.cast(builder, index, kind, types.intp)

    return fix_integer_index


def _copied_in_words(usual: Callable[..., Any]) -> Callable[..., Any]:
    from llvmlite import ir
    from numba import types

    def pack_value(
        context: Any, builder: Any, kind: Any, value: Any, place: Any, align: int | None = None
    ) -> Any:
        if not isinstance(kind, types.Record) or kind.dtype.alignment % _WORD:
            return usual(context, builder, kind, value, place, align)
        words = ir.ArrayType(ir.IntType(64), kind.size // _WORD).as_pointer()
        copied = builder.load(builder.bitcast(value, words))
        return builder.store(copied, builder.bitcast(place, words))

    return pack_value


def _narrow_pointer(usual: Callable[..., Any]) -> Callable[..., Any]:
    from llvmlite import ir

    narrow, wide = ir.IntType(32), ir.IntType(64)

    def narrowed(builder: Any, value: Any) -> Any:
        return builder.trunc(value, narrow) if value.type.width > 32 else value

    def get_item_pointer2(
        context: Any,
        builder: Any,
        data: Any,
        shape: Any,
        strides: Any,
        layout: str,
        inds: Any,
        wraparound: bool = False,
        boundscheck: bool = False,
    ) -> Any:
        if not inds or boundscheck:
            return usual(
                context, builder, data, shape, strides, layout, inds, wraparound, boundscheck
            )
        if layout not in "CF":
            place = builder.bitcast(data, ir.IntType(8).as_pointer())
            for index, stride in zip(inds, strides, strict=False):
                place = builder.gep(place, [builder.mul(index, stride)])
            return builder.bitcast(place, data.type)
        axes = range(len(shape)) if layout == "F" else range(len(shape) - 1, -1, -1)
        step, offset = narrow(1), narrow(0)
        for axis in axes:
            if axis < len(inds):
                here = builder.mul(narrowed(builder, inds[axis]), step, flags=("nsw",))
                offset = builder.add(offset, here, flags=("nsw",))
            step = builder.mul(step, narrowed(builder, shape[axis]), flags=("nsw",))
        return builder.gep(data, [builder.sext(offset, wide)])

    return get_item_pointer2
