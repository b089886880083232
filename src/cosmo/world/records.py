"""The memory of a batch of worlds: one NumPy record per thing, one array per kind of thing.

The kernels see these arrays as named tuples. Records keep what is used together close together in
memory, and give kernel code names instead of column numbers.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosmo.node.observation import RAW_FIELDS, STATE_FIELDS

# What a world waits for. RUNNING never shows outside a kernel call.
RUNNING, EN_TURN, SN_TURN, OVER, NEEDS_ROOM, NETWORK, RIDE_TURN = 0, 1, 2, 3, 4, 5, 6

# Outcomes of a task. PENDING means that the episode has not settled it yet.
PENDING, TP, FP, TN, FN, UNDECIDED = 0, 1, 2, 3, 4, 5
UNJUDGED = 6  # rejected on a real node, where nobody knows whether rightly

NO_TASK = -1  # end of a list, idle slot
NO_ACTION = -1

WORLD = np.dtype(
    [
        ("now", "f8"),
        ("sequence", "i8"),  # events scheduled so far: breaks ties (R5)
        ("first_task", "i8"),  # its rows of the task table: the tasks of the ENs …
        ("next_task", "i8"),
        ("end_task", "i8"),
        ("next_background", "i8"),  # … and then the background tasks, both in order of time
        ("end_background", "i8"),
        ("end_room", "i8"),  # further rows are its own as well: another episode may need them
        ("events", "i4"),  # size of the event heap
        ("waits_for", "i4"),
        ("subject", "i4"),  # the task or SN that the pending decision is about
        ("row", "i4"),  # the pending decision's row in the turn
        ("free_message", "i4"),
        ("free_messages", "i4"),
        # With a network outside: messages to hand over, tasks on the air, messages on the links,
        # how far the network has come, until when the world can wait for it, and when the last
        # task on the air counts as lost (R4).
        ("posts", "i4"),
        ("on_air", "i4"),
        ("on_links", "i4"),
        ("network", "f8"),
        ("horizon", "f8"),
        ("last_chance", "f8"),
        ("next_change", "i4"),  # of `State.changes`
        ("end_change", "i4"),
        ("noted", "i8"),  # rows of its journal
        ("unsure", "?"),  # nodes may see other cycles than the true ones (R35)
        ("updates", "i8"),  # statuses sent, each EN's counted
        ("rides", "i8"),  # those of them that rode on a result
        ("status_bytes", "f8"),  # that statuses took, all together
        ("update_decisions", "i8"),
        ("random", "u8"),  # state of the generator of losses and jitter
        ("decisions", "i8"),  # measured EN decisions, and summed over them:
        ("decision_age", "f8"),  # the age of the cached state
        ("decision_error", "f8"),  # how far the cached state is from the true one
    ],
    align=True,
)

# One cache line: in a large batch, fetching these rows is most of what a task costs.
TASK = np.dtype(
    [
        ("generated", "f8"),
        ("input_bytes", "f8"),
        ("cycles", "f8"),  # true ones (R35); what nodes see is in `State.seen_cycles`
        ("deadline", "f8"),  # relative to `generated`
        ("decided", "f8"),
        ("clock", "f8"),  # when it reaches the node that runs it; once final, when that was
        # Link of the one list that the task is in; of a result on its way, the status that rides on
        # it, if one does.
        ("next", "i4"),
        ("node", "i4"),  # its EN; of a background task, its SN, counted after the ENs
        ("ue", "i4"),
        ("action", "i2"),
        ("outcome", "i1"),
        ("marks", "u1"),  # bits: see below
    ],
    align=True,
)
assert TASK.itemsize == 64

# TASK.marks: the node had no room; at the decision some route was feasible (R15), and the one that
# was taken; a status rides on its result (R31); its EN has heard what became of it (R29); it was
# lost in an outage, its EN has waited in vain (R38).
REFUSED_THERE, ANY_FEASIBLE, TOOK_FEASIBLE, RIDDEN, HEARD = 1, 2, 4, 8, 16
LOST_THERE, EXPIRED_THERE = 32, 64
MOST_ACTIONS = 32767

EVENT = np.dtype(
    [("time", "f8"), ("order", "i8"), ("what", "i4"), ("subject", "i4")],
    align=True,
)

NODE = np.dtype(
    [
        ("free_storage", "f8"),
        ("waiting_cycles", "f8"),
        ("latency", "f8"),  # smoothed time from arrival to finish
        ("speed", "f8"),  # factor of its nominal rate (R37)
        ("up_since", "f8"),  # when it last came back (R38); 0: it has been up from the start
        ("idle", "i4"),
        ("waiting", "i4"),
        ("head", "i4"),  # waiting tasks, a list through TASK.next
        ("tail", "i4"),
        ("up", "?"),
    ],
    align=True,
)

# A node's speed changes (R37), or it goes down or comes back (R38); in order of time. What happens
# is a code of `cosmo.workload.table`.
CHANGE = np.dtype([("time", "f8"), ("factor", "f8"), ("node", "i4"), ("what", "i4")], align=True)

SLOT = np.dtype([("finish", "f8"), ("task", "i4")], align=True)

UE = np.dtype([("throughput", "f8"), ("samples", "i8")], align=True)

LINK = np.dtype([("up_free", "f8"), ("down_free", "f8")], align=True)

SERVICE = np.dtype(
    [
        ("flight_head", "i4"),  # tasks on their way to this SN, by arrival time
        ("flight_tail", "i4"),
        ("recent_head", "i4"),  # offloaded tasks that ended here recently (R19), by that time
        ("recent_tail", "i4"),
        ("recent_count", "i4"),
        ("recent_success", "i4"),
        ("recent_refused", "i4"),
        ("recent_delay", "f8"),
    ],
    align=True,
)

# What an SN makes of an offloaded task that has ended there (R29), parallel to the task table.
JUDGED = np.dtype([("time", "f8"), ("delay", "f8"), ("next", "i4"), ("fate", "i4")], align=True)

# The numbers themselves are in `State.cached` and `State.acknowledged`, [world, link, d].
CACHE = np.dtype(
    [
        ("source", "f8"),  # source timestamp of what the EN holds; NaN if nothing yet
        ("acknowledged", "f8"),  # source timestamp that the SN knows to be held; NaN if none
        ("snapshot", "f8", (RAW_FIELDS,)),  # the SN's state at that time: to measure errors only
        ("counted_until", "f8"),  # the age at the EN is summed up to this time:
        ("age_area", "f8"),  # its integral over the measured window
        ("age_peaks", "f8"),  # its sum over the moments before a fall
        ("falls", "i8"),
    ],
    align=True,
)

MESSAGE = np.dtype(
    [
        ("source", "f8"),
        ("snapshot", "f8", (STATE_FIELDS,)),  # to measure errors only
        ("jitter", "f8"),  # delay on top of the link's
        ("link", "i4"),
        ("next", "i4"),
    ],
    align=True,
)

# A message for the network outside: what event it makes on delivery, and where it travels.
POST = np.dtype(
    [
        ("bytes", "f8"),
        ("what", "i4"),
        ("subject", "i4"),
        ("place", "i4"),  # EN * UEs + UE on the air; the number of the link
        ("uplink", "i4"),  # 1 on the air
        ("down", "i4"),  # 1 from the SN to the EN
    ],
    align=True,
)

DELIVERY = np.dtype([("time", "f8"), ("what", "i4"), ("subject", "i4")], align=True)

# What happened inside of a world, where somebody wants to see it: a task is in a node, runs in it,
# has run; an EN takes a status over a link (the value is when that was made).
JOURNAL = np.dtype([("time", "f8"), ("value", "f8"), ("what", "i4"), ("subject", "i4")], align=True)
REACHED, BEGAN, LEFT, TAKEN = 0, 1, 2, 3
JOURNAL_ROOM = 8  # more than an event and an answer write

SETTINGS = np.dtype(
    [
        ("window", "f8"),
        ("warmup", "f8"),
        ("undecided_after", "f8"),
        ("access_bytes_per_ms", "f8"),
        ("access_overhead", "f8"),
        ("contention", "f8"),
        ("throughput_weight", "f8"),
        ("residual_cap", "f8"),
        ("packet_bytes", "f8"),
        ("framing", "f8"),  # bytes that a packet adds to what it carries; 0: none are counted
        ("result_bytes", "f8"),
        ("status_bytes", "f8"),
        ("ride_bytes", "f8"),  # that a status adds to a result (R31)
        ("ack_bytes", "f8"),
        ("notice_bytes", "f8"),
        ("reservation_floor", "f8"),
        ("loss", "f8"),
        ("jitter", "f8"),
        ("latency_weight", "f8"),
        ("history", "f8"),
        ("rate_period", "f8"),  # 0: link rates are constant
        ("undeclared_cycles", "f8"),  # that nodes see of every task (R35); 0: as declared
        ("ens", "i4"),
        ("sns", "i4"),
        ("most_sns", "i4"),  # that an EN reaches: K; actions are 0 to K + 1
        ("most_ens", "i4"),  # that reach an SN
        ("dimensions", "i4"),  # numbers in a status
        ("ues", "i4"),
        ("rides", "?"),  # SNs are asked whether a status rides on a result
        ("changes", "?"),  # nodes change their speed, or fail
        ("expires", "?"),  # offloaded tasks without an answer are heard of at their deadline (R38)
        ("outside", "?"),  # the network is not ours: messages are handed over and delivered
    ],
    align=True,
)

Records = NDArray[np.void]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Constants(NamedTuple):
    """What never changes in an episode, the same for every world of a batch."""

    settings: Records  # one SETTINGS record
    node_slots: Ints  # nodes are the ENs, then the SNs
    node_rate: Floats  # cycles per ms of one slot
    node_storage: Floats
    node_queue: Ints
    first_slot: Ints  # nodes + 1
    slot_node: Ints
    first_link: Ints  # [EN + 1] links of an EN are side by side, in order of the SNs
    link_en: Ints  # [link]
    link_sn: Ints
    first_told: Ints  # [SN + 1] where in the next the links of an SN begin
    told_link: Ints  # [place] links by SN, in order of the ENs
    up_rate: Floats  # [link] bytes per ms
    down_rate: Floats
    hops: Ints
    hop_delay: Floats
    sn_idle: Floats  # [SN, N W B M] of an SN with nothing to do
    state_scale: Floats  # [node, N W B M] what makes a state's components comparable (R18)
    ue_enter: Floats  # ms, when a UE of a cell comes into range
    ue_leave: Floats  # ms, when it is out of range for good
    ue_edge: Floats  # ms, when it is first at the far edge of the radius
    ue_crossing: Floats  # ms from edge to edge if it turns there, else 0


class State(NamedTuple):
    """What changes, with the world as first index (the task table is one long array)."""

    worlds: Records
    tasks: Records
    judged: Records  # parallel to `tasks`
    seen_cycles: Floats  # [task] that nodes see; read where `unsure` alone
    own_number: NDArray[np.int32]  # [task] among those of its EN; read where there are several ENs
    noticed_ms: Floats  # [task] when the notice that an SN has refused it arrived (R27), or NaN
    events: Records
    changes: Records  # [world, place]
    nodes: Records
    slots: Records
    channel_free: Floats  # [world, EN]
    ues: Records
    links: Records  # [world, link]
    services: Records
    caches: Records
    cached: Floats  # [world, link, d] numbers of the status that the EN holds
    acknowledged: Floats  # [world, link, d] of the one that the SN knows to be held
    messages: Records
    carried: Floats  # [world, message, d]
    posts: Records  # [world, place]; size 0 unless the network is outside
    foreseen: NDArray[np.bool_]  # [world, route] whether it was feasible at the pending decision
    rate_factor: Floats  # [world, direction * links + link, period]; size 0 if constant
    scratch: Floats  # [world, slot] room for a node's slots
    journal: Records  # [world, place]; size 0 unless somebody asked for it
