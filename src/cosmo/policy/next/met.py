"""Warnings of nodes with the multi-node controller about conditions outside its training.

Nodes do not know how unequal loads are, how wrong declared demands are and how long tenants stay,
so they measure it: the same quantities that a scenario has as settings.
"""

import math
from typing import Any

import numpy as np

from cosmo.node import Site
from cosmo.policy.next.multi_node.scaling import DEADLINE_MS
from cosmo.policy.next.trained_range import TrainedRange

ENOUGH_LOCAL = 200  # local tasks of an EN before their errors are judged
ENOUGH_TIMES = 5.0  # busy times of an SN, likewise
MEASURED = 1.2  # factor on each bound, as measurements are not exact


def met_by_ens(trained: TrainedRange, state: Any) -> str:
    """One line about the ENs of a dispatcher's state; empty if nothing is outside."""
    known = trained.hidden
    load = float((state.long_load / state.planned).max())
    found = []
    if load > MEASURED * known.load_ratio:
        most = f"(trained: up to {known.load_ratio:g})"
        found.append(f"an EN has {load:.1f} times the planned load {most}")
    heard = (state.next_local >= ENOUGH_LOCAL) & (state.long_mean > 0.0)
    errors = np.where(heard, state.long_error / np.maximum(state.long_mean, 1e-9), 0.0)
    # The mean of |x - 1| of the lognormal factor of R35.
    usual = 2.0 * math.erf(known.spread / math.sqrt(8.0))
    if errors.max() > MEASURED * usual:
        most = f"(trained: up to {100.0 * usual:.0f} %)"
        found.append(f"local tasks end {100.0 * errors.max():.0f} % off their estimates {most}")
    return _line(found)


def met_by_sns(trained: TrainedRange, site: Site, state: Any) -> str:
    """One line about the SNs of an updater's state; empty if nothing is outside."""
    most_ms = trained.hidden.tenants_ms * site.tasks.deadline_ms[1] / DEADLINE_MS
    closing = state.closing
    busy_ms = np.where(closing.times[..., 1] >= ENOUGH_TIMES, closing.lasts_ms[..., 1], 0.0).max()
    if busy_ms <= MEASURED * most_ms:
        return ""
    return _line([f"busy times of an SN last {busy_ms:.0f} ms (trained: up to {most_ms:.0f})"])


def _line(found: list[str]) -> str:
    return f"cosmo-next was not trained for what it meets: {', '.join(found)}" if found else ""
