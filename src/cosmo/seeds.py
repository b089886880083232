"""R26: every random stream derives from (run seed, purpose, episode), so that none depends on
another's length and the same seed gives every method the same workload.
"""

from enum import IntEnum

import numpy as np

from cosmo.errors import InputError


class Purpose(IntEnum):
    """What a stream is for. The numbers are part of every result: never renumber them."""

    ARRIVALS = 0
    INPUT_BYTES = 1
    CYCLES = 2
    SLACK = 3
    BACKGROUND = 4
    FADING = 5
    DISPATCHER = 6
    UPDATER = 7
    MESSAGES = 8
    NETWORKS = 9
    COLLECTION = 10
    EXPLORATION = 11
    NETWORK = 12
    CROWD = 13


def stream(seed: int, purpose: Purpose, episode: int, *more: int) -> np.random.Generator:
    """The generator of one purpose in one episode (and for one node, where there are several)."""
    if seed < 0:
        raise InputError(f"seed = {seed}: must be 0 or greater")
    key = (int(purpose), episode, *more)
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=key)))
