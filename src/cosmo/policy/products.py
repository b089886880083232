"""Matrix products whose bits do not depend on how many threads BLAS may use.

OpenBLAS cuts a product between threads once it is large enough. Rows and columns at the cut then
meet other kernels, which round differently. A product that is small enough stays with one thread,
so a larger one is computed in blocks that are small enough: this holds whoever imported NumPy
first, and whatever number of threads the user has set.
"""

import platform
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

# From these sizes on OpenBLAS uses a second thread (its interface/gemm.c and interface/gemv.c; ARM
# processors have limits of their own there, of which this is below the lowest).
_X86 = platform.machine().lower() in ("x86_64", "amd64", "i686")
_MATRIX_LIMIT = 2 * 4 * 65_536 if _X86 else 100_000  # rows · inputs · outputs
_VECTOR_LIMIT = 4 * 2_304  # the same, where a matrix meets a single row or column
# Kernels take 4, 8, 12 or 16 rows at a time: a block of a multiple of these leaves every row to the
# kernel that it would meet in the whole product.
_ROWS = (48, 24, 12, 4)
_COLUMNS = (192, 64, 16, 4, 1)


def product(x: NDArray[np.floating], w: NDArray[np.floating]) -> NDArray[np.floating]:
    """X W, for [..., row, input] and [..., input, output], as [..., row, output].

    The bits are the same for any number of threads. Up to 43 000 weights, which is more than our
    networks have in a layer, they are those of one thread on x86-64 processors.
    """
    rows, (inputs, outputs) = x.shape[-2], w.shape[-2:]
    if _one_thread(rows, inputs, outputs):
        return x @ w
    block, columns = _block(rows, inputs, outputs)
    shape = (*np.broadcast_shapes(x.shape[:-2], w.shape[:-2]), rows, outputs)
    found = np.empty(shape, np.result_type(x, w))
    for top, bottom in _pieces(rows, block):
        for left, right in _pieces(outputs, columns):
            out = found[..., top:bottom, left:right]
            np.matmul(x[..., top:bottom, :], w[..., left:right], out=out)
    return found


def _one_thread(rows: int, inputs: int, outputs: int) -> bool:
    limit = _VECTOR_LIMIT if rows == 1 or outputs == 1 else _MATRIX_LIMIT
    return rows * inputs * outputs < limit


@lru_cache(maxsize=1024)
def _block(rows: int, inputs: int, outputs: int) -> tuple[int, int]:
    """The largest block of rows and columns that one thread computes, whole rows if possible."""
    # One more than a block, as the last piece may be (`_pieces`).
    for columns in (outputs, *(each for each in _COLUMNS if each < outputs)):
        for block in (1,) if rows == 1 else _ROWS:
            most = min(rows, block + 1), inputs, min(outputs, columns + 1)
            if _one_thread(*most) and _one_thread(min(rows, block), inputs, columns):
                return block, columns
    return 1, 1


def _pieces(length: int, size: int) -> list[tuple[int, int]]:
    """Cuts after every `size`, but no last piece of one, for which BLAS has another kernel."""
    cuts = list(range(0, length, size))
    if size > 1 and len(cuts) > 1 and length - cuts[-1] == 1:
        cuts.pop()
    return list(zip(cuts, [*cuts[1:], length], strict=True))
