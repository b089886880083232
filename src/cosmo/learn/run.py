"""What every training has in common: runs, curves, and the trainer's interface."""

from dataclasses import dataclass
from typing import Any, Protocol

from numpy.typing import NDArray

from cosmo.scenario import Scenario

Arrays = dict[str, NDArray[Any]]
Curve = dict[str, float]

# Episodes that no other purpose uses: evaluation counts from 0 (R25, R26).
TRAINING_EPISODES, VALIDATION_EPISODES, COLLECTION_EPISODES = 1_000_000, 2_000_000, 3_000_000


@dataclass(frozen=True, slots=True)
class Run:
    """One training run: a load and a seed."""

    scenario: Scenario
    seed: int


class Config(Protocol):
    """Every number of a training, validated; a pydantic model."""

    @property
    def episodes(self) -> int:
        """How long it is: episodes, or rounds of many worlds."""
        ...

    def model_dump(self, *, mode: str = "python", exclude_defaults: bool = False) -> dict[str, Any]:
        """Return all settings as plain data, by field."""
        ...


class TrainsRuns(Protocol):
    """A stack of runs under training; made from (runs, configuration)."""

    @property
    def episode(self) -> int:
        """How many are done."""
        ...

    def pretrain(self) -> None:
        """What comes before the first episode."""
        ...

    def train_episode(self) -> list[Curve]:
        """The next episode of every run; their curves."""
        ...

    def delivered(self) -> Arrays:
        """What a node needs: named layers, a leading axis of runs."""
        ...

    def saved(self) -> Arrays:
        """All that a resumed training needs."""
        ...

    def restore(self, kept: Arrays) -> None:
        """The inverse of `saved`."""
        ...
