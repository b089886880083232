"""What a method is: who decides at the EN, who decides at the SN, and what an update carries.

Every method, learned or not, goes through these calls, in batches of rows:

    dispatcher.decide(observations) -> actions           0 local, 1..S offload, S+1 reject
    dispatcher.observe(feedback)                         what became of its own tasks (R29)
    updater.decide(observations)    -> (send, interval)  whether to send, when to decide next
    updater.encode(states)          -> numbers           what a status carries, made at the SN (R28)
"""

from typing import Any

from numpy.typing import ArrayLike, NDArray

from cosmo.node.feedback import Feedback
from cosmo.node.observation import DispatchObservation, SnStates, UpdateObservation
from cosmo.node.site import Site
from cosmo.node.state import RAW_FIELDS

# How many numbers an update carries.
NOTHING, RAW = 0, RAW_FIELDS


class Dispatcher:
    """Decides at the ENs. Only `decide` must be there; the other calls do nothing by default."""

    def decide(self, observations: DispatchObservation, /) -> ArrayLike:
        """An action for each row: 0 local, 1..S offload to that SN, S+1 reject."""
        raise NotImplementedError(f"{type(self).__name__} does not decide")

    def observe(self, feedback: Feedback, /) -> None:
        """Tasks of these ENs that have ended, told before the next decisions."""

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


class Updater:
    """Decides at the SNs."""

    def decide(self, observations: UpdateObservation, /) -> tuple[ArrayLike, ArrayLike]:
        """For each row, whether to send a status now, and after how many ms to decide again.

        Intervals are greater than 0; infinity means never again.
        """
        raise NotImplementedError(f"{type(self).__name__} does not decide")

    def encode(self, states: SnStates, /) -> NDArray[Any]:
        """[row, d] the numbers that a status of these states carries; raw N, W, B, M by default.

        A function of the SN's own state, without any effect on later calls.
        """
        return states.state[:, :RAW_FIELDS]


class Method:
    """Base of all methods. Parameters of the constructor can be set on the command line.

    The first line of a subclass's docstring is what `cosmo methods` says about it.
    """

    carries: int = NOTHING  # d: numbers in a status; NOTHING: SNs are never asked
    privileged: bool = False  # is handed the truth (R15) by name: a yardstick, not deployable

    def dispatcher(self, site: Site) -> Dispatcher:
        """A fresh dispatcher for the ENs of a site."""
        raise NotImplementedError(f"{type(self).__name__} has no dispatcher")

    def updater(self, site: Site) -> Updater:
        """A fresh updater for the SNs of a site; asked for only if updates carry something."""
        raise NotImplementedError(f"{type(self).__name__} has no updater")

    @classmethod
    def summary(cls) -> str:
        """One line about it."""
        return (cls.__doc__ or "").strip().partition("\n")[0]
