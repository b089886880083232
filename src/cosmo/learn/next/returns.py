"""Targets of the values: discounted returns over elapsed time, with little noise.

    G_t = γ^(Δt) · (E_{t+1} + λ_{t+1}·(G_{t+1} − V_{t+1}))

V_t is the value of the state after decision t. E_{t+1} is the value of the state that the EN found
at its next decision: that of the best route or a rejection, averaged over *several tasks* that
could have arrived instead (sizes and demands do not depend on the state, so any task that arrived
can be used). Where the EN explored, λ is 0, as what followed was not its own policy. Rewards are
relative to a baseline that depends on the load alone; no decision changes the load, so prices stay
the same.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


def earned_by(
    succeeded: NDArray[np.bool_], failed: NDArray[np.bool_], failure: float
) -> NDArray[np.float64]:
    """Rewards of decisions, in successful tasks: 1, −κ if the task failed, 0 for a rejection."""
    earned: NDArray[np.float64] = succeeded - failure * failed
    return earned


def load_terms(load: Any, xp: Any) -> Any:
    """The terms in which the baseline is linear, […, term]."""
    parts = [xp.ones_like(load[..., :1]), load, load**2, load[..., :1] * load[..., 1:2]]
    return xp.concatenate([*parts, xp.maximum(load[..., :3] - 1.0, 0.0)], -1)


def over_rows(left: Any, right: Any) -> Any:
    """Leftᵀ·right, summed row by row. BLAS would split so long a sum into one piece per CPU, so
    that bits would depend on the number of CPUs.
    """
    return np.einsum("ri,r...->i...", left, right)


def baseline(load: Floats, earned: NDArray[np.floating]) -> Floats:
    """Weights of the mean reward of a decision, given the load."""
    terms = load_terms(load.astype(np.float64), np)
    size = terms.shape[1]
    square = over_rows(terms, terms) + 1e-6 * len(terms) * np.eye(size)
    return np.asarray(np.linalg.solve(square, over_rows(terms, earned)), np.float32)


def returns(
    sequence: NDArray[np.int64],
    time_ms: NDArray[np.float64],
    explores: NDArray[np.bool_],
    found: Floats,
    left: Floats,
    horizon_ms: float,
    trace: float,
) -> tuple[Floats, NDArray[np.bool_]]:
    """(G, which rows have one); rows of a sequence are contiguous and in order of time."""
    count = len(sequence)
    goes_on = np.flatnonzero(sequence[1:] == sequence[:-1])
    discount = np.zeros(count, np.float32)
    discount[goes_on] = np.exp(-(time_ms[goes_on + 1] - time_ms[goes_on]) / horizon_ms)
    known = np.zeros(count, np.bool_)
    known[goes_on] = True
    start = np.flatnonzero(np.r_[True, sequence[1:] != sequence[:-1]])
    end = np.r_[start[1:], count] - 1
    target = left.copy()
    weight = np.where(explores, 0.0, trace).astype(np.float32)
    now = end.copy()
    for _ in range(int((end - start).max(initial=0))):
        going = now > start
        here = now[going]
        target[here - 1] = discount[here - 1] * (
            found[here] + weight[here] * (target[here] - left[here])
        )
        now = np.where(going, now - 1, now)
    return target, known
