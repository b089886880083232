"""Gymnasium's spaces of what agents see."""

import numpy as np
from gymnasium.spaces import Box

from cosmo.policy.views import View


def space_of(view: View) -> Box:
    """The bounds of a view."""
    return Box(view.low, view.high, dtype=np.float32)
