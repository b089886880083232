"""What a node knows and does: the room that everything else stands on, with NumPy alone.

`site` is what a node knows from the start, `observation` what it sees, `calls` what it is asked.
Nothing here knows of a simulator: the same objects serve the embedded world, ns-3 and real nodes.
The truth about other nodes is not in this room.
"""

from cosmo.node.calls import NOTHING, RAW, Dispatcher, Hidden, Method, Updater
from cosmo.node.observation import (
    DONE,
    EXPIRED,
    GIVEN_UP,
    IDLE,
    LATENCY,
    NO_NODE,
    REFUSED,
    REQUESTS,
    STATE_FIELDS,
    STORAGE,
    WAIT,
    WORK,
    DispatchObservation,
    Feedback,
    ResultObservation,
    SnStates,
    UpdateObservation,
)
from cosmo.node.site import Links, Nodes, Prices, Scales, Site, Tasks

__all__ = [
    "DONE",
    "EXPIRED",
    "GIVEN_UP",
    "IDLE",
    "LATENCY",
    "NOTHING",
    "NO_NODE",
    "RAW",
    "REFUSED",
    "REQUESTS",
    "STATE_FIELDS",
    "STORAGE",
    "WAIT",
    "WORK",
    "DispatchObservation",
    "Dispatcher",
    "Feedback",
    "Hidden",
    "Links",
    "Method",
    "Nodes",
    "Prices",
    "ResultObservation",
    "Scales",
    "Site",
    "SnStates",
    "Tasks",
    "UpdateObservation",
    "Updater",
]
