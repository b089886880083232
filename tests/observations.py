"""Observations made by hand."""

import numpy as np

from cosmo import DispatchObservation
from cosmo.node import RAW
from cosmo.scenario import changed
from cosmo.world import site_of


def site(scenario, episodes=1, rate=None):
    """What nodes are told in a batch of `episodes` worlds of run 0."""
    if rate is not None:
        scenario = changed(scenario, {"workload.rate": rate})
    return site_of(scenario, [(0, episode) for episode in range(episodes)])


def tasks(scenario, count=1, carries=RAW, **fields):
    """`count` tasks just arrived at an idle EN 0 of worlds 0, 1, …; every field can be set.

    The last status was made 13 ms ago: of an idle SN if it is raw, else zeros.
    """
    sns = scenario.links.most_sns
    status = [scenario.sn.slots, 0.0, 0.0, scenario.sn.storage_bytes]
    status = status if carries == RAW else [0.0] * carries
    idle_en = [scenario.en.slots, 0.0, 0.0, scenario.en.storage_bytes, 0.0, 0.0]
    given = {
        "world": np.arange(count),
        "en": np.zeros(count, np.int64),
        "ue": np.zeros(count, np.int64),
        "task": np.zeros(count, np.int64),
        "time_ms": np.full(count, 1003.0),
        "generated_ms": np.full(count, 1000.0),
        "input_bytes": np.full(count, 36000.0),
        "cycles": np.full(count, 540000.0),
        "deadline_ms": np.full(count, 60.0),
        "throughput_mbps": np.full(count, 100.0),
        "throughput_trend_mbps": np.zeros(count),
        "residual_ms": np.full(count, 9000.0),
        "en_state": np.tile(idle_en, (count, 1)),
        "local_wait_ms": np.zeros(count),
        "local_room": np.ones(count, bool),
        "sn": np.tile(scenario.links.reach[0], (count, 1)),
        "status": np.tile(status, (count, sns, 1)),
        "status_ms": np.full((count, sns), 990.0),
        "up_link_mbps": np.tile([scenario.backhaul.up_mbps, 0.0, 0.0], (count, sns, 1)),
        "up_backlog_ms": np.zeros((count, sns)),
    }
    for name, value in fields.items():
        shape = given[name].shape
        given[name] = np.array(np.broadcast_to(np.asarray(value, given[name].dtype), shape))
    return DispatchObservation(**given)
