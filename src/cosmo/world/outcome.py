"""What became of an episode."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosmo.workload import Episode, Tasks


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an episode's tasks, in the order of the workload.

    Actions are 0 local, 1..S offload, S+1 reject, -1 none; outcomes are the codes of
    `cosmo.world.records`; `feasible` has bit r set if route r was feasible at the decision.
    """

    episode: Episode
    action: NDArray[np.int8]
    outcome: NDArray[np.int8]
    decided_ms: NDArray[np.float64]  # NaN where there was no decision
    finished_ms: NDArray[np.float64]
    feasible: NDArray[np.uint32]
    refused: NDArray[np.bool_]  # the node had no room when the task reached it
    updates: int  # status messages sent
    update_decisions: int
    status: "StatusRecord | None" = None  # None if updates carry nothing

    @property
    def tasks(self) -> Tasks:
        """The tasks themselves."""
        return self.episode.tasks


@dataclass(frozen=True, slots=True)
class StatusRecord:
    """How fresh and how right the status at the ENs was, in the measured part of an episode."""

    aoi_ms: float  # time average of the age at an EN
    peak_aoi_ms: float  # mean of the age just before it falls; NaN if it never did
    decision_age_ms: float  # mean age at EN decisions
    decision_error: float  # mean of the largest normalised |true - cached| component at decisions
    decision_regret: float = math.nan  # share of decisions that a fresh status would have changed
