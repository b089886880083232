"""R26: every random stream derives from (run seed, purpose, episode), so that none depends on
another's length and the same seed gives every method the same workload.
"""

import hashlib
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

import numpy as np

from cosmo.errors import InputError

SEED_LIMIT = 2**63  # columns of tables have 64 bits


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
    MULTI_NODE = 13
    THINNING = 14
    DEMAND = 15
    TENANTS = 16
    SPEEDS = 17
    OUTAGES = 18


def stream(seed: int, purpose: Purpose, episode: int, *more: int) -> np.random.Generator:
    """The generator of one purpose in one episode (and for one node, where there are several)."""
    for name, value in (("seed", seed), ("episode", episode)):
        if not isinstance(value, int | np.integer) or value < 0:
            raise InputError(f"{name} = {value!r}: must be a whole number, 0 or greater")
    key = (int(purpose), episode, *more)
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=key)))


OF_METHODS = (Purpose.DISPATCHER, Purpose.UPDATER)  # all other streams make the world


@dataclass(frozen=True)
class Draws:
    """The random numbers of a method in one world, without what they were made from (R41).

    Neither the run's seed nor the episode's number can be read from it: there are the states of
    the generators of `OF_METHODS`, and a digest that says which run it is.
    """

    run: str  # `run_digest` of its seed
    states: tuple[tuple[int, int], ...]  # of PCG64, one for each of OF_METHODS

    @staticmethod
    @lru_cache(maxsize=4096)
    def of(seed: int, episode: int) -> "Draws":
        """Those of an episode of a run."""
        made = [
            stream(seed, purpose, episode).bit_generator.state["state"] for purpose in OF_METHODS
        ]
        return Draws(run_digest(seed), tuple((each["state"], each["inc"]) for each in made))

    def generator(self, purpose: Purpose) -> np.random.Generator:
        """The generator of a purpose of methods, at its start; InputError for any other."""
        if purpose not in OF_METHODS:
            raise InputError(
                f"site.random({purpose!r}): must be Purpose.DISPATCHER or Purpose.UPDATER"
            )
        state, inc = self.states[OF_METHODS.index(purpose)]
        # What it was seeded with shows, and is what its children are made from: a digest, too.
        bits = np.random.PCG64(np.random.SeedSequence(int(_digest(f"{state} {inc}"), 16)))
        bits.state = {
            "bit_generator": "PCG64",
            "state": {"state": state, "inc": inc},
            "has_uint32": 0,
            "uinteger": 0,
        }
        return np.random.Generator(bits)


def run_digest(seed: int) -> str:
    """By what a trained controller recognises the run of this seed, and nobody computes with."""
    return _digest(f"run {seed}")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]
