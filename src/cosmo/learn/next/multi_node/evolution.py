"""Evolution strategies: candidates about a centre, mirrored; ranks instead of returns.

Parameters are positive, so the centre is in their logarithms: 0 is where they start. It has three
rows, those of `ScaledParameters`.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from cosmo.policy.next.multi_node.scaling import ScaledParameters
from cosmo.policy.rules.multi_node_parameters import LEAST, MOST, START, Parameters

Floats = NDArray[np.float64]

_DECAYS = 0.9, 0.99  # of the mean and the square of the gradient
_TINY = 1e-8


SIZE = len(ScaledParameters._fields) * len(Parameters._fields)


def scaled_at(centre: Floats) -> ScaledParameters:
    """The parameters at a point in the space of logarithms, within their bounds."""
    middle, by_balance, by_size = centre.reshape(len(ScaledParameters._fields), -1)
    found = np.clip(np.array(START) * np.exp(middle), LEAST, MOST)
    return ScaledParameters(*(Parameters(*row.tolist()) for row in (found, by_balance, by_size)))


def centre_at(start: Mapping[str, tuple[float, float, float]]) -> Floats:
    """The point where parameters have these values in the middle and these slopes; 0 if none."""
    if not start:
        return np.zeros(SIZE)
    rows = np.array([start[name] for name in Parameters._fields]).T
    return np.concatenate([np.log(rows[0] / np.array(START)), rows[1], rows[2]])


def candidates(centre: Floats, steps: Floats, deviation: float) -> list[ScaledParameters]:
    """For each of these steps [pair, number] the candidates on both sides of the centre."""
    sides = (centre + sign * deviation * step for step in steps for sign in (1.0, -1.0))
    return [scaled_at(each) for each in sides]


def shaped(returns: Floats) -> Floats:
    """Ranks from -1/2 to 1/2 in place of returns, so that outliers have no more weight."""
    order = np.unique(returns, return_inverse=True)[1].astype(np.float64)
    highest = max(order.max(), 1.0)
    found: Floats = order / highest - 0.5
    return found


def gradient(steps: Floats, returns: Floats, deviation: float) -> Floats:
    """The gradient, [parameter], from the returns of `candidates` of the same steps."""
    up, down = shaped(returns).reshape(-1, 2).T
    # One after the other, so that sums have the same bits on any machine.
    summed = ((up - down)[:, None] * steps).cumsum(axis=0)[-1]
    found: Floats = summed / (2.0 * len(steps) * deviation)
    return found


class Climb:
    """The centre and its optimizer: momentum, with one step size from the mean squared gradient.

    Parameters with little effect hardly move; with one step size per parameter, as in Adam, they
    would walk at random.
    """

    def __init__(self, centre: Floats) -> None:
        size = len(centre)
        self.centre, self.mean, self.square = centre, np.zeros(size), np.zeros(1)
        self.summed, self.averaged = np.zeros(size), 0
        self.taken = 0

    def step(self, uphill: Floats, rate: float) -> None:
        """Move one step up the gradient, on average about `rate` in each parameter."""
        self.taken += 1
        first, second = _DECAYS
        self.mean = first * self.mean + (1.0 - first) * uphill
        self.square = (
            second * self.square + (1.0 - second) * (uphill**2).cumsum()[-1:] / uphill.size
        )
        mean = self.mean / (1.0 - first**self.taken)
        square = self.square / (1.0 - second**self.taken)
        self.centre = self.centre + rate * mean / (np.sqrt(square) + _TINY)

    def count(self) -> None:
        """Add the centre to those whose mean is delivered."""
        self.summed, self.averaged = self.summed + self.centre, self.averaged + 1

    @property
    def delivered(self) -> Floats:
        """The mean of the counted centres, or the present centre if there is none."""
        return self.summed / self.averaged if self.averaged else self.centre
