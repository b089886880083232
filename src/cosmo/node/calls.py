"""What a method is: who decides at the EN, who decides at the SN, and what an update carries.

Every method, learned or not, goes through these calls, in batches of rows:

    dispatcher.decide(observations) -> actions           0 local, 1..K offload, K+1 reject
    dispatcher.observe(feedback)                         what became of its own tasks (R29)
    updater.decide(observations)    -> (send, interval)  whom to tell, when to decide next
    updater.ride(results)           -> ride              whether a status rides on a result (R31)
    updater.encode(states)          -> numbers           what a status carries, made at the SN (R28)
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cosmo.node.observation import (
    RAW_FIELDS,
    DispatchObservation,
    Feedback,
    ResultObservation,
    SnStates,
    UpdateObservation,
)
from cosmo.node.site import Site

# How many numbers an update carries.
NOTHING, RAW = 0, RAW_FIELDS


class Dispatcher:
    """The part of a method that decides at the ENs.

    Only `decide` must be there; the other calls do nothing by default.
    """

    def decide(self, observations: DispatchObservation, /) -> ArrayLike:
        """An action for each row: 0 local, k offload to the k-th SN that the EN reaches (R30),
        K+1 reject, where K is `observations.sns`.
        """
        raise NotImplementedError(f"{type(self).__name__} does not decide")

    def observe(self, feedback: Feedback, /) -> None:
        """Tasks of these ENs that have ended; called before the next decisions."""

    def would_decide(self, observations: DispatchObservation, /) -> ArrayLike | None:
        """What it would decide, without any effect on later decisions; None if it cannot tell.

        With it, `decision_regret` can be measured. A rule without memory returns what it decides.
        """
        return None

    def explain(self, observations: DispatchObservation, /) -> NDArray[Any] | None:
        """[row, action] what it thinks each action is worth, for people who look; None if nothing.

        Has no effect on later decisions.
        """
        return None

    def remark(self) -> str:
        """One line for people on what it has met so far and is not made for; empty if nothing.

        Has no effect on later decisions.
        """
        return ""

    def take_over(self, before: "Dispatcher", /) -> bool:
        """Know what `before` knows, which was made by the same method for a site that has fewer SNs
        at the end of each EN's; False if it cannot, and begins without memory.
        """
        return False


class Updater:
    """The part of a method that decides at the SNs, for methods whose status carries something.

    Only `decide` must be there; by default a status is the raw state, and none rides on a result.
    """

    def decide(self, observations: UpdateObservation, /) -> tuple[ArrayLike, ArrayLike]:
        """For each row, whom to send a status now, and after how many ms to decide again.

        `send` is [row], to all ENs that reach the SN or to none, or [row, k], to these of them
        (R31); each message is charged for. Intervals are greater than 0; infinity means never.
        """
        raise NotImplementedError(f"{type(self).__name__} does not decide")

    def ride(self, results: ResultObservation, /) -> ArrayLike:
        """[row] whether a status rides on this result, charged like any other (R31).

        Asked whenever a result is about to leave, if a subclass has it; by default none rides, and
        the SN is not asked, which costs nothing.
        """
        return np.zeros(len(results), np.bool_)

    @property
    def rides(self) -> bool:
        """Whether it is to be asked before each result."""
        return type(self).ride is not Updater.ride

    def encode(self, states: SnStates, /) -> NDArray[Any]:
        """[row, d] the numbers that a status of these states carries; raw N, W, B, M by default.

        A function of the SN's own state, without any effect on later calls.
        """
        return states.state[:, :RAW_FIELDS]

    def remark(self) -> str:
        """Return a remark for the node's log, or "", as `Dispatcher.remark` does."""
        return ""

    @property
    def sends_raw(self) -> bool:
        """Whether a status is the raw state, and not numbers of another kind."""
        return type(self).encode is Updater.encode


@dataclass(frozen=True)
class Hidden:
    """What a site does that its nodes do not know, as far as people know it: for warnings to them,
    never for a decision. A scenario says all of it, an operator perhaps nothing.
    """

    spread: float = 0.0  # of demands around those that nodes see (R35), sigma of a lognormal
    load_ratio: float = 1.0  # the largest mean load of an EN over the mean of all (R36)
    wave: float = 0.0  # amplitude with which loads rise and fall (R36)
    tenants_ms: float = 0.0  # how long tenants of an SN stay as they are, on average (R39)
    slowest: float = 1.0  # least speed factor of a node (R37)
    between_failures_ms: float = float("inf")  # of an SN, on average (R38)
    down_ms: float = 0.0  # how long an SN that failed stays down, on average
    lost: float = 0.0  # share of the statuses that are lost


NOTHING_HIDDEN = Hidden()


class Method:
    """Base of all methods. Parameters of the constructor can be set on the command line.

    The first line of a subclass's docstring is what `cosmo methods` says about it.
    """

    # For readers of a report, each said by the class itself: where the method comes from, and what
    # it does where the summary takes terms of this package for granted.
    reference: str = ""
    plain: str = ""
    carries: int = NOTHING  # d: numbers in a status; NOTHING: SNs are never asked
    privileged: bool = False  # is handed the truth (R15) by name: a yardstick, not deployable

    def dispatcher(self, site: Site) -> Dispatcher:
        """A fresh dispatcher for the ENs of a site."""
        raise NotImplementedError(f"{type(self).__name__} has no dispatcher")

    def updater(self, site: Site) -> Updater:
        """A fresh updater for the SNs of a site; asked for only if updates carry something."""
        raise NotImplementedError(f"{type(self).__name__} has no updater")

    def notice(self, site: Site, hidden: Hidden = NOTHING_HIDDEN) -> str:
        """One line for people who play it at a site that it is not made for; empty if it is.

        `hidden` is what they know of the site beyond what nodes know.
        """
        return ""

    @classmethod
    def summary(cls) -> str:
        """One line about it."""
        return (cls.__doc__ or "").strip().partition("\n")[0]
