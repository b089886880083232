"""What a method is: who decides at the EN, who decides at the SN, and what an update carries.

Every method, learned or not, goes through the same two calls, in batches:

    dispatcher.decide(observations) -> actions           0 local, 1..S offload, S+1 reject
    updater.decide(observations)    -> (send, interval)  whether to send, when to decide next
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike

from cosmo.scenario import Scenario
from cosmo.seeds import Purpose, stream
from cosmo.world import DispatchObservation, UpdateObservation

# How many numbers an update carries.
NOTHING, PROBE, SEMANTIC, RAW = 0, 2, 2, 4


class Dispatcher(Protocol):
    """Decides at the ENs. Two further methods are optional:

    `observe(settled)` is told of tasks whose outcome became final, before the next decisions.

    `would_decide(observations)` says what it would decide, without any effect on later decisions;
    with it, `decision_regret` can be measured. A rule without memory has `would_decide = decide`.
    """

    def decide(self, observations: DispatchObservation, /) -> ArrayLike:
        """An action for each row."""
        ...


class Updater(Protocol):
    """Decides at the SNs."""

    def decide(self, observations: UpdateObservation, /) -> tuple[ArrayLike, ArrayLike]:
        """For each row, whether to send the state now and after how many ms to decide again."""
        ...


@dataclass(frozen=True, slots=True)
class Setting:
    """Where a method is put to work: a scenario and a batch of worlds, one an episode."""

    scenario: Scenario
    seeds: Sequence[int]  # of the runs, one a world
    episodes: Sequence[int]  # numbers in the run, one a world
    rate: float  # mean tasks a second at an EN
    window_ms: float

    def random(self, purpose: Purpose) -> list[np.random.Generator]:
        """A stream of random numbers for each world, its own (R26)."""
        return [
            stream(seed, purpose, episode)
            for seed, episode in zip(self.seeds, self.episodes, strict=True)
        ]


class Method:
    """Base of all methods. Parameters of the constructor can be set on the command line.

    The first line of a subclass's docstring is what `cosmo methods` says about it.
    """

    carries: ClassVar[int] = NOTHING
    trained: ClassVar[bool] = False  # needs a checkpoint of `cosmo train`
    privileged: ClassVar[bool] = False  # sees the truth (R15): a yardstick, not deployable

    def dispatcher(self, setting: Setting) -> Dispatcher:
        """A fresh dispatcher for a batch of worlds."""
        raise NotImplementedError(f"{type(self).__name__} has no dispatcher")

    def updater(self, setting: Setting) -> Updater:
        """A fresh updater for a batch of worlds; asked for only if updates carry something."""
        raise NotImplementedError(f"{type(self).__name__} has no updater")

    @classmethod
    def summary(cls) -> str:
        """One line about it."""
        return (cls.__doc__ or "").strip().partition("\n")[0]
