"""The parameters of the multi-node controller: meaning, unit, start value and bounds of each.

They are the same at every node of a site and scale with its node counts
(`cosmo.policy.next.multi_node.scaling`). All other differences between sites follow from the public
description of the site (`multi_node_site`).
"""

from typing import NamedTuple


class Parameters(NamedTuple):
    """All parameters. Names that end in `_ms` are times in ms; values and costs are in tasks."""

    # Which SNs an EN uses.
    subset_size: float  # SNs that an EN uses, …
    subset_size_per_ratio: float  # … and how many more per unit of the ratio SNs / ENs
    reserve_size: float  # SNs at least, with those that replace closed ones
    # Backlog that an EN expects at an SN.
    drain_rate: float  # ms of work that an SN does per ms
    rival_traffic: float  # traffic of each rival, as a share of the EN's own
    saturation_ms: float  # elapsed time counts for at most about this
    own_traffic_window_ms: float  # over which the EN's own traffic is smoothed
    rivals_in_flight: float  # work of each rival at an SN, as a share of the EN's unanswered work
    in_service_share: float  # share of a mean service time that is in service, not in the queue
    full_memory_ms: float  # for how long an SN that was full is likely to be full
    # Uncertainty of the expected waiting time.
    wait_error_ms: float  # just after a status, …
    wait_error_growth: float  # … more per ms since then, …
    wait_error_rivals: float  # … and per ms of work that rivals may have sent
    late_penalty: float  # weight of late results against an SN, …
    late_memory_ms: float  # … and for how long they count
    silent_memory_ms: float  # for how long an SN that let a task expire in silence may be down
    closed_doubt: float  # probability that an SN that closed when it was full has no room
    unknown_local: float  # weight of the error of local estimates in the uncertainty at the EN, …
    unknown_remote: float  # … and at SNs
    overrun_wait: float  # least wait behind running tasks of unknown demand, in mean service times
    # Value of a decision.
    failure_cost: float  # of a failed task
    delay_cost: float  # of a delay as long as the longest deadline
    tie_noise: float  # random term that separates near-equal SNs, so that ENs do not herd
    rotation: float  # largest bonus of an SN over other SNs for having had no task for long
    local_preference: float  # added to the score of the EN itself
    sn_price: float  # of capacity beyond a mean task's at an SN, per unit of load above
    # `price_load` …
    local_price: float  # … or at the EN itself
    price_load: float  # share of the capacity from which on capacity has a price
    load_window_ms: float  # over which arrivals are smoothed
    load_margin: float  # times the planned load: higher loads of an EN count as this
    # Value of a status to be sent by an SN.
    status_value: float  # for a task that the status concerns
    full_boost: float  # by how much more at an SN that is always full, …
    full_window_ms: float  # … as measured over this time
    deterioration_weight: float  # of a change for the worse, relative to one for the better
    full_change_boost: float  # by how much more if the SN became full, or has room again
    unreported_weight: float  # of change that has built up without a status
    confirmation_value: float  # of a status that confirms an old one
    useful_work_ms: float  # backlog at which an SN is half as useful as an idle one, …
    useful_work_width_ms: float  # … and how gradually usefulness falls
    status_lifetime_ms: float  # for how long a status makes a difference
    closing_work_ms: float  # backlog above which an SN closes …
    opening_work_ms: float  # … and below which it opens again, …
    closing_lasts_ms: float  # … if such times last longer than this
    closing_value: float  # for a task that it concerns, of knowing that an SN closes or opens
    stagger: float  # by how much the value differs between ENs, so that not all are sent at once
    ack_timeout_ms: float  # after which a status without acknowledgement counts as lost
    recheck_soon_ms: float  # next decision if a status was nearly worth its price, …
    recheck_later_ms: float  # … else


START = Parameters(
    subset_size=2.6,
    subset_size_per_ratio=0.96,
    reserve_size=6.0,
    drain_rate=0.44,
    rival_traffic=0.49,
    saturation_ms=48.0,
    own_traffic_window_ms=180.0,
    rivals_in_flight=0.35,
    in_service_share=0.44,
    full_memory_ms=57.0,
    wait_error_ms=6.7,
    wait_error_growth=0.11,
    wait_error_rivals=0.14,
    late_penalty=0.76,
    late_memory_ms=84.0,
    silent_memory_ms=400.0,
    closed_doubt=0.9,
    unknown_local=2.0,
    unknown_remote=0.3,
    overrun_wait=0.8,
    failure_cost=0.22,
    delay_cost=0.25,
    tie_noise=0.018,
    rotation=0.5,
    local_preference=0.049,
    sn_price=1.5,
    local_price=0.6,
    price_load=0.54,
    load_window_ms=340.0,
    load_margin=1.4,
    status_value=0.04,
    full_boost=1.0,
    full_window_ms=300.0,
    deterioration_weight=1.5,
    full_change_boost=1.3,
    unreported_weight=0.67,
    confirmation_value=0.00088,
    useful_work_ms=28.0,
    useful_work_width_ms=16.0,
    status_lifetime_ms=36.0,
    closing_work_ms=30.0,
    opening_work_ms=10.0,
    closing_lasts_ms=300.0,
    closing_value=0.3,
    stagger=0.15,
    ack_timeout_ms=25.0,
    recheck_soon_ms=6.4,
    recheck_later_ms=10.0,
)

# Bounds of training. For example, simulations of SNs that decide more often than once per ms would
# not end.
LEAST = Parameters(*(1e-4,) * len(START))._replace(
    recheck_soon_ms=1.0,
    recheck_later_ms=1.0,
    subset_size=1.0,
    wait_error_ms=0.1,
    useful_work_width_ms=1.0,
)
MOST = Parameters(*(1e4,) * len(START))._replace(
    stagger=1.0,
    recheck_soon_ms=50.0,
    recheck_later_ms=100.0,
    subset_size=12.0,
    subset_size_per_ratio=20.0,
    reserve_size=12.0,
    closed_doubt=1.0,
)
