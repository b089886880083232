"""Many runs' parameters in one array: a row a run, one column a number.

One array goes to the device and back in one piece; NumPy and JAX both see layers as views of it.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Shapes = dict[str, tuple[int, ...]]


class Layout:
    """Where each layer lies in a row."""

    def __init__(self, shapes: Shapes) -> None:
        self.shapes = shapes
        sizes = [math.prod(shape) for shape in shapes.values()]
        ends = np.cumsum(sizes).tolist()
        self._places = {
            name: (end - size, end, shape)
            for (name, shape), size, end in zip(shapes.items(), sizes, ends, strict=True)
        }
        self.size = ends[-1]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and list(self._places.items()) == list(
            other._places.items()
        )

    def __hash__(self) -> int:
        return hash(tuple(self._places.items()))

    def views(self, flat: Any) -> dict[str, Any]:
        """The layers of one row, or of all rows of a stack."""
        return {
            name: flat[..., start:end].reshape(*flat.shape[:-1], *shape)
            for name, (start, end, shape) in self._places.items()
        }

    def joined(self, layers: dict[str, Any], xp: Any) -> Any:
        """The inverse of `views`, for one row."""
        return xp.concatenate([layers[name].reshape(-1) for name in self._places])

    def initial(self, random: np.random.Generator) -> NDArray[np.float32]:
        """A row with the usual uniform start, ±1/sqrt(inputs), weights and biases alike."""
        row = np.empty(self.size, np.float32)
        for name, (start, end, _) in self._places.items():
            inputs = self.shapes[name.removesuffix(".b").removesuffix(".w") + ".w"][0]
            bound = 1.0 / math.sqrt(inputs)
            row[start:end] = random.uniform(-bound, bound, end - start)
        return row
