"""Random draws that belong to tasks: the same however often, and in which order, one asks."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosmo.node import Site
from cosmo.seeds import Purpose

MOST_KEPT = 65_536  # tasks whose draws a node keeps at most
_BLOCK = 1024  # tasks, a power of two: beyond, the draws of so many are made at a time


class DrawPerTask:
    """Uniform draws from [0, 1), `each` of them for each task of a world.

    The number of tasks for which there are draws is always a power of two, so that the low bits of
    a task's number are its place among the first tasks, and in its block as well.
    """

    def __init__(self, site: Site, each: int = 1) -> None:
        self._random, self._each = site.random(Purpose.DISPATCHER), each
        self._start: list[Any] = [random.bit_generator.state for random in self._random]
        self._drawn = np.empty((len(self._random), 0, each))
        self._block: dict[int, tuple[int, NDArray[np.float64]]] = {}  # by world: which, the draws

    def block(self, world: int, task: int) -> NDArray[np.float64]:
        """[world, task of the block, each] the draws of the block that a task is in.

        It takes the same time and memory for every task: the stream is moved to the block's start.
        Only those of `world` are meant.
        """
        number = task // _BLOCK
        which, drawn = self._block.get(world, (-1, self._drawn))
        if which != number:
            bits = np.random.PCG64()
            bits.state = self._start[world]
            bits.advance(number * _BLOCK * self._each)
            made = np.random.Generator(bits).random((_BLOCK, self._each))
            drawn = np.broadcast_to(made, (len(self._random), *made.shape))
            self._block[world] = number, drawn
        return drawn

    def at_least(self, count: int) -> NDArray[np.float64]:
        """[world, task, each] the draws of the first `count` tasks, or of more."""
        while count > self._drawn.shape[1]:
            more = max(1024, self._drawn.shape[1])
            drawn = [random.random((more, self._each)) for random in self._random]
            self._drawn = np.concatenate([self._drawn, np.stack(drawn)], axis=1)
        return self._drawn
