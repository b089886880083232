"""The value of an update, measured by an experiment in every world of training.

SNs send at random, with a known probability e. So rewards after a decision differ between SNs that
sent and SNs that did not only by the update. With Y the rewards of the ENs in the horizon after a
decision, n the change that a status would report and s whether it was sent, the weights w minimise

    Σ (Y − Ŷ(n) − (s − e)·w·n)² + ridge·|w|²

Ŷ is a linear regression on n. Rewards are relative to those of the training-only oracle (R15),
which removes most of the noise of the workload. The same experiment gives the standard error of
w·n: an SN sends only if w·n exceeds the price by `confidence` standard errors.
"""

import numpy as np
from numpy.typing import NDArray

from cosmo.learn.next.returns import over_rows
from cosmo.policy.next.sn import CHANGE_SIZE

Floats = NDArray[np.float64]


class Worth:
    """Sums of the experiments of all rounds, for every run."""

    def __init__(self, runs: int, ridge: float, confidence: float) -> None:
        self._ridge, self._confidence = ridge, confidence
        self.square, self.cross = (
            np.zeros((runs, CHANGE_SIZE, CHANGE_SIZE)),
            np.zeros((runs, CHANGE_SIZE)),
        )
        self.noise = np.zeros((runs, 2))  # sum of squares, and of how many

    def add(
        self,
        run: int,
        change: Floats,
        send: NDArray[np.bool_],
        share: Floats,
        earned: Floats,
    ) -> None:
        """Add SN decisions of one run, and the rewards of the ENs after each."""
        if len(change) <= CHANGE_SIZE:
            return
        # By the normal equations, as BLAS would sum up a least-squares fit of all rows.
        square, cross = over_rows(change, change), over_rows(change, earned)
        weights, *_ = np.linalg.lstsq(square, cross, rcond=None)
        rest = earned - (change * weights).sum(axis=1)
        treated = (send - share)[:, None] * change
        self.square[run] += over_rows(treated, treated)
        self.cross[run] += over_rows(treated, rest)
        self.noise[run] += (rest**2).sum(), len(rest)

    def _inverse(self) -> Floats:
        return np.asarray(
            np.linalg.inv(self.square + self._ridge * np.eye(CHANGE_SIZE)), np.float64
        )

    def weights(self) -> NDArray[np.float32]:
        """Return the fitted weights of the benefit of an update, [run, CHANGE_SIZE]."""
        return (self._inverse() @ self.cross[..., None])[..., 0].astype(np.float32)

    def doubt(self) -> NDArray[np.float32]:
        """[run, CHANGE_SIZE, CHANGE_SIZE]: L, so that |n·L| is the margin of error of w·n."""
        squares, count = self.noise[:, 0], np.maximum(self.noise[:, 1], 1.0)
        deviation = np.where(self.noise[:, 1] > 0, np.sqrt(squares / count), 1.0)
        root = np.linalg.cholesky(self._inverse())
        return (self._confidence * deviation[:, None, None] * root).astype(np.float32)


def earned_after(
    look_world: NDArray[np.int64],
    look_ms: Floats,
    world: NDArray[np.int64],
    time_ms: Floats,
    earned: Floats,
    horizon_ms: float,
) -> Floats:
    """The sum of rewards in the world of each SN decision, in the horizon after it."""
    order = np.lexsort((time_ms, world))
    known, start = np.unique(world[order], return_index=True)
    # Sums restart in each world, so that its bits do not depend on the other worlds of its batch.
    parts = np.split(earned[order], start[1:])
    total = np.concatenate([np.r_[0.0, np.cumsum(part)] for part in parts])
    # One axis for all worlds: times are less than a span.
    span = 10.0 * max(float(time_ms.max(initial=0.0)), float(look_ms.max(initial=0.0)), 1.0)
    at = world[order] * span + time_ms[order]
    first = np.searchsorted(at, look_world * span + look_ms)
    last = np.searchsorted(at, look_world * span + look_ms + horizon_ms)
    # Every world before has one entry more than it has rows.
    before = np.minimum(np.searchsorted(known, look_world), len(known) - 1)
    found: Floats = total[last + before] - total[first + before]
    return found
