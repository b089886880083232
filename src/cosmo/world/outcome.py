"""What became of an episode."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cosmo.node import DONE, EXPIRED, GIVEN_UP, REFUSED
from cosmo.workload import Episode, Tasks
from cosmo.world.records import FN, PENDING, TN, UNDECIDED, UNJUDGED, Records


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an episode's tasks, in the order of the workload.

    Actions are 0 local, k offload to the k-th SN that the EN reaches, K+1 reject, -1 none, where K
    is the most SNs that an EN reaches; outcomes are the codes of `cosmo.world.records`.
    """

    episode: Episode
    action: NDArray[np.int16]
    outcome: NDArray[np.int8]
    decided_ms: NDArray[np.float64]  # NaN where there was no decision
    finished_ms: NDArray[np.float64]
    any_feasible: NDArray[np.bool_]  # some route was feasible at the decision (R15)
    took_feasible: NDArray[np.bool_]  # and so was the one that was taken
    refused: NDArray[np.bool_]  # the node had no room when the task reached it
    updates: int  # statuses sent, each EN's counted, on their own or on results (R31)
    update_decisions: int
    lost: NDArray[np.bool_] | None = None  # lost in an outage of its SN (R38)
    expired: NDArray[np.bool_] | None = None  # its EN waited in vain until its deadline (R38)
    noticed_ms: NDArray[np.float64] | None = None  # when the notice of a refusal arrived (R27)
    rides: int = 0  # how many of them rode on results
    status_bytes: float = 0.0  # that all of them took
    status: "StatusRecord | None" = None  # None if updates carry nothing, or nobody could look
    judged: bool = True  # whether feasibility is known: of which routes, of rejected tasks
    # What happened inside of nodes (JOURNAL), in order of time, if somebody asked for it; a subject
    # is a task (the tenants' follow those of the ENs) or, of a status taken, a link.
    journal: Records | None = None
    machine: Mapping[str, float] = field(default_factory=dict)  # how well it played (`MACHINE`)

    @property
    def tasks(self) -> Tasks:
        """The tasks of the episode, as they were generated."""
        return self.episode.tasks

    def heard(self) -> tuple[NDArray[np.int64], NDArray[np.float64]] | None:
        """[task] what its EN has heard of it (`cosmo.node.observation`; 0: nothing), and when (R29;
        NaN: nothing); None if the engine does not record it.
        """
        if self.expired is None or self.noticed_ms is None:
            return None
        given_up = np.isin(self.outcome, (TN, FN, UNJUDGED))
        due = np.maximum(self.tasks.time_ms + self.tasks.deadline_ms, self.decided_ms)
        noticed = self.refused & (self.action > 0)
        which = [given_up, self.expired, noticed, self.refused]
        fate = np.select(which, [GIVEN_UP, EXPIRED, REFUSED, REFUSED], DONE)
        when = np.select([self.expired, noticed], [due, self.noticed_ms], self.finished_ms)
        ended = ~np.isin(self.outcome, (PENDING, UNDECIDED)) | self.expired
        ended &= ~np.isnan(when)  # a notice may still be on its way
        return np.where(ended, fate, 0), np.where(ended, when, np.nan)


@dataclass(frozen=True, slots=True)
class StatusRecord:
    """How fresh and how right the status at the ENs was, in the measured part of an episode."""

    aoi_ms: float  # time average of the age at an EN
    peak_aoi_ms: float  # mean of the age just before it falls; NaN if it never did
    decision_age_ms: float  # mean age at EN decisions
    decision_error: float  # mean of the largest normalised |true - cached| component at decisions
    decision_regret: float = math.nan  # share of decisions that a fresh status would have changed
