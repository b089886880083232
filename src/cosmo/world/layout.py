"""Scenario and episodes turned into the kernel's arrays."""

from collections.abc import Sequence

import numpy as np

from cosmo.scenario import Scenario, en_state_scale, per_link, per_node, sn_state_scale
from cosmo.workload import Episode
from cosmo.world.events import KIND, KIND_SHIFT, SN_DECISION
from cosmo.world.records import (
    CACHE,
    DISPATCH_ROW,
    EVENT,
    IDLE,
    LINK,
    MESSAGE,
    NO_ACTION,
    NO_TASK,
    NODE,
    POST,
    RUNNING,
    SERVICE,
    SETTINGS,
    SETTLED_ROW,
    SLOT,
    STATE_FIELDS,
    STORAGE,
    TASK,
    UE,
    UPDATE_ROW,
    WORLD,
    Constants,
    Records,
    State,
    Turn,
)
from cosmo.world.walks import walks

_BYTES_PER_MS = 125.0  # in one Mbps
_FIRST_EVENTS, _FIRST_MESSAGES = 48, 8  # both grow when a world needs more


_HEADERS = 28.0  # IP and UDP, which a packet on a link holds
_FRAME = 2.0  # PPP, which a link adds to it


def constants(
    scenario: Scenario, window_ms: float, status_dimensions: int, outside: bool = False
) -> Constants:
    """What the kernel needs to know of a scenario; `outside` if the network is not ours."""
    en, sn, backhaul = scenario.en, scenario.sn, scenario.backhaul
    fixed = np.zeros(1, SETTINGS)
    fixed["window"] = window_ms
    fixed["warmup"] = scenario.episode.warmup_ms
    fixed["undecided_after"] = scenario.episode.undecided_after_ms
    fixed["access_bytes_per_ms"] = scenario.access.rate_mbps * _BYTES_PER_MS
    fixed["access_overhead"] = scenario.access.overhead_ms
    fixed["contention"] = scenario.access.contention_ms
    fixed["throughput_weight"] = scenario.access.throughput_weight
    fixed["residual_cap"] = scenario.mobility.residual_cap_ms
    fixed["hop_delay"] = backhaul.hop_delay_ms
    fixed["packet_bytes"] = backhaul.packet_bytes - (_HEADERS if outside else 0.0)
    fixed["framing"] = _HEADERS + _FRAME if outside else 0.0
    fixed["outside"] = outside
    fixed["result_bytes"] = backhaul.result_bytes
    fixed["status_bytes"] = (
        scenario.status.header_bytes + scenario.status.bytes_per_dimension * status_dimensions
    )
    fixed["ack_bytes"] = scenario.status.ack_bytes
    fixed["reservation_floor"] = scenario.storage.reservation_floor_bytes
    fixed["loss"] = scenario.status.loss_probability
    fixed["jitter"] = scenario.status.jitter_ms
    fixed["latency_weight"] = scenario.observation.latency_weight
    fixed["history"] = scenario.observation.history_ms
    constant = scenario.fading.factors == (1.0, 1.0)
    fixed["rate_period"] = 0.0 if constant else scenario.fading.period_ms
    fixed["hops"] = backhaul.hops
    fixed["ens"] = en.count
    fixed["sns"] = sn.count
    fixed["ues"] = len(scenario.mobility.distances_m)
    slots = np.array([*per_node(en.slots, en.count), *per_node(sn.slots, sn.count)], np.int64)
    of_ue = walks(scenario.mobility)
    return Constants(
        settings=fixed,
        node_slots=slots,
        node_rate=_both(en.cycles_per_ms, sn.cycles_per_ms, scenario),
        node_storage=_both(en.storage_bytes, sn.storage_bytes, scenario),
        node_queue=_both(en.queue_capacity, sn.queue_capacity, scenario).astype(np.int64),
        first_slot=np.concatenate([[0], np.cumsum(slots)]).astype(np.int64),
        slot_node=np.repeat(np.arange(len(slots)), slots),
        up_rate=np.array(per_link(backhaul.up_mbps, en.count, sn.count)) * _BYTES_PER_MS,
        down_rate=np.array(per_link(backhaul.down_mbps, en.count, sn.count)) * _BYTES_PER_MS,
        state_scale=np.concatenate([en_state_scale(scenario), sn_state_scale(scenario)]),
        ue_enter=of_ue.enter,
        ue_leave=of_ue.leave,
        ue_edge=of_ue.edge,
        ue_crossing=of_ue.crossing,
    )


def _both(
    of_en: float | tuple[float, ...], of_sn: float | tuple[float, ...], scenario: Scenario
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    values = (*per_node(of_en, scenario.en.count), *per_node(of_sn, scenario.sn.count))
    return np.array(values, np.float64)


def initial_state(fixed: Constants, episodes: Sequence[Episode], updates: bool) -> State:
    """Every world at time 0, before its first event."""
    ens, sns = int(fixed.settings["ens"][0]), int(fixed.settings["sns"][0])
    ues, count = int(fixed.settings["ues"][0]), len(episodes)
    own = np.array([len(episode.tasks) for episode in episodes])
    other = np.array([len(episode.background) for episode in episodes])
    room = own + other + (own + other) // 8 + 64  # the next episode there may be a little longer
    start = np.cumsum(room) - room

    worlds = np.zeros(count, WORLD)
    worlds["first_task"] = worlds["next_task"] = start
    worlds["end_task"] = worlds["next_background"] = start + own
    worlds["end_background"] = start + own + other
    worlds["end_room"] = start + room
    worlds["waits_for"] = RUNNING
    worlds["random"] = [episode.message_seed for episode in episodes]
    tasks = _aligned(int(room.sum()), TASK)
    for world, episode in zip(worlds, episodes, strict=True):
        _fill_tasks(tasks[world["first_task"] : world["end_background"]], episode, ens)

    nodes = np.zeros((count, ens + sns), NODE)
    nodes["free_storage"], nodes["idle"] = fixed.node_storage, fixed.node_slots
    nodes["head"] = nodes["tail"] = NO_TASK
    slots = np.zeros((count, len(fixed.slot_node)), SLOT)
    slots["task"], slots["finish"] = NO_TASK, np.inf
    services = np.zeros((count, sns), SERVICE)
    for name in ("flight_head", "flight_tail", "recent_head", "recent_tail"):
        services[name] = NO_TASK
    caches = np.zeros((count, ens * sns), CACHE)
    caches["source"] = caches["acknowledged"] = -1.0
    idle = np.zeros((sns, STATE_FIELDS))  # R14: an empty cache reads as an idle SN
    idle[:, IDLE], idle[:, STORAGE] = fixed.node_slots[ens:], fixed.node_storage[ens:]
    caches["state"] = caches["acknowledged_state"] = np.tile(idle, (ens, 1))

    events = np.zeros((count, _FIRST_EVENTS + 4 * (ens + sns)), EVENT)
    if updates:  # R21: each SN decides first at time 0
        events["what"][:, :sns] = SN_DECISION
        events["subject"][:, :sns] = np.arange(sns)
        events["order"][:, :sns] = (KIND[SN_DECISION] << KIND_SHIFT) + np.arange(sns)
        worlds["events"] = worlds["sequence"] = sns
    messages = np.zeros((count, 0), MESSAGE)
    messages = with_more_messages(worlds, messages, max(_FIRST_MESSAGES, 2 * ens))
    posts = ens + 2 if fixed.settings["outside"][0] else 0
    factors = np.stack([episode.rate_factor for episode in episodes])
    return State(
        worlds=worlds,
        tasks=tasks,
        events=events,
        nodes=nodes,
        slots=slots,
        channel_free=np.zeros((count, ens)),
        ues=np.zeros((count, ens * ues), UE),
        links=np.zeros((count, ens * sns), LINK),
        services=services,
        caches=caches,
        messages=messages,
        posts=np.zeros((count, posts), POST),
        rate_factor=factors.reshape(count, 2 * ens * sns, factors.shape[-1]),
        scratch=np.zeros(int(fixed.node_slots.max())),
    )


def restarted(fixed: Constants, state: State, world: int, episode: Episode, updates: bool) -> State:
    """The batch with one world at the start of another episode.

    Its tasks take the place of the old ones if they fit, else a place at the end of the table,
    which costs a copy of all and is rare.
    """
    fresh = initial_state(fixed, [episode], updates)
    old, new = state.worlds[world], fresh.worlds[0].copy()
    count, tasks = int(new["end_background"]), state.tasks
    place, end = int(old["first_task"]), int(old["end_room"])
    if count > end - place:
        place, end = len(tasks), len(tasks) + len(fresh.tasks)
        more = _aligned(end, TASK)
        more[:place] = tasks
        tasks = more
    for name in ("first_task", "next_task", "end_task", "next_background", "end_background"):
        new[name] += place
    new["end_room"] = end
    tasks[place : place + count] = fresh.tasks[:count]
    state.worlds[world] = new
    for name in ("nodes", "slots", "channel_free", "ues", "links", "services", "caches"):
        getattr(state, name)[world] = getattr(fresh, name)[0]
    state.events[world, : fresh.events.shape[1]] = fresh.events[0]
    # All messages of the world are free again.
    messages = state.messages[world]
    messages["next"] = [*range(1, len(messages)), NO_TASK]
    state.worlds[world]["free_message"] = 0
    state.worlds[world]["free_messages"] = len(messages)
    state.rate_factor[world] = fresh.rate_factor[0]
    return state._replace(tasks=tasks)


def _aligned(count: int, kind: np.dtype[np.void]) -> Records:
    """Zeros whose rows do not straddle cache lines."""
    raw = np.zeros((count + 1) * kind.itemsize, np.uint8)
    skip = -raw.ctypes.data % kind.itemsize
    return raw[skip : skip + count * kind.itemsize].view(kind)


def _fill_tasks(rows: Records, episode: Episode, ens: int) -> None:
    own, other = episode.tasks, episode.background
    mine, theirs = rows[: len(own)], rows[len(own) :]
    mine["generated"], theirs["generated"] = own.time_ms, other.time_ms
    mine["input_bytes"], theirs["input_bytes"] = own.input_bytes, other.input_bytes
    mine["cycles"], theirs["cycles"] = own.cycles, other.cycles
    mine["deadline"], theirs["deadline"] = own.deadline_ms, np.inf
    mine["node"], theirs["node"] = own.en, ens + other.sn
    mine["ue"] = own.ue
    rows["action"] = NO_ACTION
    rows["next"] = NO_TASK
    rows["decided"] = rows["clock"] = np.nan


def with_more_messages(worlds: Records, messages: Records, more: int) -> Records:
    """The messages of every world with `more` free ones added."""
    count, before = messages.shape
    added = np.zeros((count, more), MESSAGE)
    added["next"] = np.arange(before + 1, before + more + 1)
    added["next"][:, -1] = worlds["free_message"] if before else NO_TASK
    worlds["free_message"] = before
    worlds["free_messages"] += more
    return np.concatenate([messages, added], axis=1)


def blank_turn(fixed: Constants, count: int) -> Turn:
    """Room for one decision of every world."""
    ens, sns = int(fixed.settings["ens"][0]), int(fixed.settings["sns"][0])
    return Turn(
        counts=np.zeros(7, np.int64),
        dispatch=np.zeros(count, DISPATCH_ROW),
        cached_state=np.zeros((count, sns, STATE_FIELDS)),
        cached_source=np.zeros((count, sns)),
        up_link=np.zeros((count, sns, 3)),
        up_backlog=np.zeros((count, sns)),
        estimate=np.zeros((count, 1 + sns)),
        feasible=np.zeros((count, 1 + sns), np.bool_),
        true_state=np.zeros((count, sns, STATE_FIELDS)),
        update=np.zeros(count, UPDATE_ROW),
        acknowledged_state=np.zeros((count, ens, STATE_FIELDS)),
        acknowledged_source=np.zeros((count, ens)),
        down_link=np.zeros((count, ens, 3)),
        action=np.zeros(count, np.int64),
        send=np.zeros(count, np.bool_),
        interval=np.ones(count),
        settled=np.zeros(4 * count + 64, SETTLED_ROW),
    )
