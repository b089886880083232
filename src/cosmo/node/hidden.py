"""What a site does that its nodes are not told: for warnings to people, never for a decision."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Hidden:
    """As far as people know it: a scenario says all of it, an operator perhaps nothing."""

    spread: float = 0.0  # of demands around those that nodes see (R35), sigma of a lognormal
    load_ratio: float = 1.0  # the largest mean load of an EN over the mean of all (R36)
    wave: float = 0.0  # amplitude with which loads rise and fall (R36)
    tenants_ms: float = 0.0  # how long tenants of an SN stay as they are, on average (R39)
    slowest: float = 1.0  # least speed factor of a node (R37)
    between_failures_ms: float = float("inf")  # of an SN, on average (R38)
    down_ms: float = 0.0  # how long an SN that failed stays down, on average
    lost: float = 0.0  # share of the statuses that are lost


NOTHING_HIDDEN = Hidden()
