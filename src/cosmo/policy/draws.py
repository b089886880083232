"""Random draws that belong to tasks: the same however often, and in which order, one asks.

Every EN has a stream of its own, a stretch of its world's that no other gets to: ENs count their
own tasks alone (R41).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosmo.node import Site
from cosmo.seeds import Purpose

BLOCK = 256  # tasks, a power of two: the draws of so many are made at a time
_STRETCH = 2**64  # draws of an EN


def no_draws(site: Site, each: int) -> NDArray[np.float64]:
    """[world, EN, task, k] room for `each` draws of every task, as rules begin: none are made."""
    return np.empty((site.worlds, len(site.en), 0, each))


class DrawPerTask:
    """Uniform draws from [0, 1), `each` of them for each task of an EN.

    The number of tasks for which there are draws is always a power of two, so that the low bits of
    a task's number are its place among the first tasks, and in its block as well.
    """

    def __init__(self, site: Site, each: int = 1) -> None:
        self._start: list[Any] = [
            random.bit_generator.state for random in site.random(Purpose.DISPATCHER)
        ]
        self._shape, self._each = (site.worlds, len(site.en)), each
        self._drawn = no_draws(site, each)

    def block(self, world: int, en: int, number: int) -> NDArray[np.float64]:
        """[world, EN, task of the block, k] the draws of a block of tasks of an EN.

        It takes the same time and memory for every block: the stream is moved to its start.
        Only those of `world` and `en` are meant.
        """
        made = self._stream(world, en, number * BLOCK).random((BLOCK, self._each))
        return np.broadcast_to(made, (*self._shape, *made.shape))

    def at_least(self, count: int) -> NDArray[np.float64]:
        """[world, EN, task, k] the draws of the first `count` tasks of each EN, or of more."""
        if count > self._drawn.shape[2]:
            many = max(BLOCK, 1 << (count - 1).bit_length())
            self._drawn = np.empty((*self._shape, many, self._each))
            for world, en in np.ndindex(*self._shape):
                self._drawn[world, en] = self._stream(world, en, 0).random((many, self._each))
        return self._drawn

    def _stream(self, world: int, en: int, task: int) -> np.random.Generator:
        bits = np.random.PCG64(0)
        bits.state = self._start[world]
        bits.advance(en * _STRETCH + task * self._each)
        return np.random.Generator(bits)
