"""The trained multi-node controller: its parameters and its parts.

Each part can be switched off for comparison: `cosmo-next:off=rivals`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosmo.errors import InputError, did_you_mean
from cosmo.node import Site
from cosmo.policy.next.multi_node.scaling import ScaledParameters, at_site, constant
from cosmo.policy.rules.multi_node_parameters import MOST, Parameters

# What each part that can be switched off sets its parameters to.
PARTS: Mapping[str, Mapping[str, float]] = {
    # ENs use all SNs and receive statuses from all.
    "subset": {"subset_size": MOST.subset_size_per_ratio * MOST.subset_size},
    # ENs count their own traffic only.
    "rivals": {"rival_traffic": 0.0, "wait_error_rivals": 0.0, "rivals_in_flight": 0.0},
    # ENs take their backlog estimate as exact.
    "uncertainty": {"wait_error_ms": 0.1, "wait_error_growth": 0.0, "wait_error_rivals": 0.0},
    # ENs forget at once that an SN was full.
    "full": {"full_memory_ms": 1e-4, "full_change_boost": 0.0},
    # SNs never close; ENs use no SN in reserve.
    "closing": {"closing_lasts_ms": 1e9, "reserve_size": 1.0},
    # ENs take declared demands as exact.
    "unknown": {"unknown_local": 0.0, "unknown_remote": 0.0, "overrun_wait": 0.0},
    "late_results": {"late_penalty": 0.0},  # late results do not count against an SN
    "silence": {"silent_memory_ms": 1e-4},  # ENs do not take a silent SN to be down
    "rotation": {"rotation": 0.0},  # ENs do not use SNs in turn
    "tie_noise": {"tie_noise": 0.0},  # near-equal SNs are not separated at random
    "price": {"sn_price": 0.0, "local_price": 0.0},  # capacity has no price
    "full_boost": {"full_boost": 0.0},  # an SN that is often full sends no more than others
    "unreported": {"unreported_weight": 0.0},  # change that was not reported does not build up
    "stagger": {"stagger": 0.0},  # all ENs get a status at once
    # SNs send nothing.
    "updates": {"status_value": 0.0, "confirmation_value": 0.0, "closing_value": 0.0},
}
SCALING = "scaling"  # parameters do not scale with the site


def known_part(part: str) -> str:
    """Return the part; InputError in one line if there is none such."""
    if part not in (*PARTS, SCALING):
        known = did_you_mean(part, [*PARTS, SCALING]) or f" (parts: {', '.join([*PARTS, SCALING])})"
        raise InputError(f"off = {part!r}: is no part of the multi-node controller{known}")
    return part


@dataclass(frozen=True)
class MultiNode:
    """The multi-node controller of one run."""

    scaled: ScaledParameters
    off: str | None = None  # the part that is switched off
    failure_cost: float | None = None  # replaces the trained one

    def parameters(self, site: Site) -> Parameters:
        """The parameters that nodes of a site act by."""
        scaled = constant(self.scaled.middle) if self.off == SCALING else self.scaled
        found = at_site(scaled, site)
        if self.failure_cost is not None:
            found = found._replace(failure_cost=self.failure_cost)
        return found._replace(**PARTS.get(self.off or "", {}))


def multi_node_from(layers: Mapping[str, NDArray[np.floating]]) -> MultiNode:
    """From the layers of a file; ValueError if a parameter is missing."""
    rows = len(ScaledParameters._fields)
    for name in Parameters._fields:
        if name not in layers:
            raise ValueError(f"multi_node/{name}: is missing; train it again, with this version")
        if layers[name].shape != (1, rows):
            raise ValueError(f"multi_node/{name}: must be {rows} numbers, of one run")
    columns = (
        Parameters(*(float(layers[n][0, k]) for n in Parameters._fields)) for k in range(rows)
    )
    return MultiNode(ScaledParameters(*columns))
