"""Scenario and episodes turned into the kernel's arrays."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cosmo.node import NO_NODE
from cosmo.node.observation import STATE_FIELDS
from cosmo.node.units import BYTES_PER_MS
from cosmo.scenario import Scenario
from cosmo.workload import Episode
from cosmo.world.events import KIND, KIND_SHIFT, SN_DECISION
from cosmo.world.records import (
    CACHE,
    CHANGE,
    EVENT,
    JOURNAL,
    JUDGED,
    LINK,
    MESSAGE,
    NO_ACTION,
    NO_TASK,
    NODE,
    POST,
    RUNNING,
    SERVICE,
    SETTINGS,
    SLOT,
    TASK,
    UE,
    WORLD,
    Constants,
    Floats,
    Records,
    State,
)
from cosmo.world.site import site_of
from cosmo.world.truth import Truth
from cosmo.world.turns import (
    COUNTS,
    DISPATCH_ROW,
    FEEDBACK_ROW,
    RESULT_ROW,
    SETTLED_ROW,
    UPDATE_ROW,
    Answers,
    Seen,
    Turn,
)
from cosmo.world.walks import walks

_FIRST_EVENTS, _FIRST_MESSAGES = 48, 8  # both grow when a world needs more


_BESIDE_TASKS = ("judged", "seen_cycles", "own_number", "noticed_ms")  # of `State`
_HEADERS = 28.0  # IP and UDP, which a packet on a link holds
_FRAME = 2.0  # PPP, which a link adds to it


def constants(
    scenario: Scenario,
    window_ms: float,
    status_dimensions: int,
    outside: bool = False,
    rides: bool = False,
) -> Constants:
    """What the kernel needs to know of a scenario; `outside` if the network is not ours, `rides` if
    SNs are asked whether a status rides on a result.
    """
    backhaul, links, site = scenario.backhaul, scenario.links, site_of(scenario)
    en, sn = site.en, site.sn
    fixed = np.zeros(1, SETTINGS)
    fixed["window"] = window_ms
    fixed["warmup"] = scenario.episode.warmup_ms
    fixed["undecided_after"] = scenario.episode.undecided_after_ms
    fixed["access_bytes_per_ms"] = scenario.access.rate_mbps * BYTES_PER_MS
    fixed["access_overhead"] = scenario.access.overhead_ms
    fixed["contention"] = scenario.access.contention_ms
    fixed["throughput_weight"] = scenario.access.throughput_weight
    fixed["residual_cap"] = scenario.mobility.residual_cap_ms
    fixed["packet_bytes"] = backhaul.packet_bytes - (_HEADERS if outside else 0.0)
    fixed["framing"] = _HEADERS + _FRAME if outside else 0.0
    fixed["outside"] = outside
    fixed["result_bytes"] = backhaul.result_bytes
    fixed["status_bytes"] = (
        scenario.status.header_bytes + scenario.status.bytes_per_dimension * status_dimensions
    )
    fixed["ride_bytes"] = scenario.status.bytes_per_dimension * status_dimensions
    fixed["rides"] = rides
    fixed["ack_bytes"] = scenario.status.ack_bytes
    fixed["notice_bytes"] = scenario.status.notice_bytes
    fixed["dimensions"] = status_dimensions
    fixed["reservation_floor"] = scenario.storage.reservation_floor_bytes
    fixed["loss"] = scenario.status.loss_probability
    fixed["jitter"] = scenario.status.jitter_ms
    fixed["latency_weight"] = scenario.observation.latency_weight
    fixed["history"] = scenario.observation.history_ms
    constant = scenario.fading.factors == (1.0, 1.0)
    fixed["rate_period"] = 0.0 if constant else scenario.fading.period_ms
    if not scenario.workload.demand.declared:
        fixed["undeclared_cycles"] = site.tasks.mean_cycles
    fixed["ens"] = len(en)
    fixed["sns"] = len(sn)
    fixed["most_sns"] = links.most_sns
    fixed["most_ens"] = links.most_ens
    fixed["ues"] = len(scenario.mobility.distances_m)
    slots = np.concatenate([en.slots, sn.slots])
    of_ue = walks(scenario.mobility, scenario.ues_stay)
    return Constants(
        settings=fixed,
        node_slots=slots,
        node_rate=np.concatenate([en.cycles_per_ms, sn.cycles_per_ms]),
        node_storage=np.concatenate([en.storage_bytes, sn.storage_bytes]),
        node_queue=np.concatenate([en.queue_capacity, sn.queue_capacity]),
        first_slot=np.concatenate([[0], np.cumsum(slots)]).astype(np.int64),
        slot_node=np.repeat(np.arange(len(slots)), slots),
        first_link=links.first,
        link_en=links.en,
        link_sn=links.sn,
        first_told=links.by_sn[0],
        told_link=links.by_sn[1],
        up_rate=links.up_mbps * BYTES_PER_MS,
        down_rate=links.down_mbps * BYTES_PER_MS,
        hops=links.hops,
        hop_delay=links.hop_delay_ms,
        sn_idle=sn.idle_state,
        state_scale=np.concatenate([site.state_scale(en), site.state_scale(sn)]),
        ue_enter=of_ue.enter,
        ue_leave=of_ue.leave,
        ue_edge=of_ue.edge,
        ue_crossing=of_ue.crossing,
    )


def initial_state(fixed: Constants, episodes: Sequence[Episode], updates: bool) -> State:
    """Every world at time 0, before its first event."""
    ens, sns = int(fixed.settings["ens"][0]), int(fixed.settings["sns"][0])
    ues, count, links = int(fixed.settings["ues"][0]), len(episodes), len(fixed.link_sn)
    most_told = int(fixed.settings["most_ens"][0])
    dimensions = int(fixed.settings["dimensions"][0])
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
    seen, own_number = np.zeros(len(tasks)), np.zeros(len(tasks), np.int32)
    for world, episode in zip(worlds, episodes, strict=True):
        rows = slice(world["first_task"], world["end_background"])
        _fill_tasks(tasks[rows], episode, ens)
        seen[rows], world["unsure"] = _seen_cycles(fixed, episode)
        if ens > 1:
            first = world["first_task"]
            own_number[first : world["end_task"]] = own_numbers(episode.tasks.en, ens)

    nodes = np.zeros((count, ens + sns), NODE)
    nodes["free_storage"], nodes["idle"] = fixed.node_storage, fixed.node_slots
    nodes["head"] = nodes["tail"] = NO_TASK
    nodes["speed"], nodes["up"] = 1.0, True
    slots = np.zeros((count, len(fixed.slot_node)), SLOT)
    slots["task"], slots["finish"] = NO_TASK, np.inf
    services = np.zeros((count, sns), SERVICE)
    for name in ("flight_head", "flight_tail", "recent_head", "recent_tail"):
        services[name] = NO_TASK
    caches = np.zeros((count, links), CACHE)
    caches["source"] = caches["acknowledged"] = np.nan
    caches["snapshot"] = fixed.sn_idle[fixed.link_sn]  # errors count from an idle SN (R14)

    events = np.zeros((count, _FIRST_EVENTS + 4 * (ens + sns)), EVENT)
    if updates:  # R21: each SN decides first at time 0, if there is anybody to tell
        asked = np.flatnonzero(np.diff(fixed.first_told))
        events["what"][:, : len(asked)] = SN_DECISION
        events["subject"][:, : len(asked)] = asked
        order = (KIND[SN_DECISION] << KIND_SHIFT) + np.arange(len(asked))
        events["order"][:, : len(asked)] = order
        worlds["events"] = worlds["sequence"] = len(asked)
    messages, carried = with_more_messages(
        worlds,
        np.zeros((count, 0), MESSAGE),
        np.zeros((count, 0, dimensions)),
        max(_FIRST_MESSAGES, 2 * most_told),
    )
    changes = np.zeros((count, max(len(episode.events) for episode in episodes)), CHANGE)
    for place, episode in enumerate(episodes):
        many, happens = len(episode.events), episode.events
        worlds["end_change"][place] = many
        fixed.settings["changes"] |= many > 0
        fixed.settings["expires"] |= episode.expires
        changes["time"][place, :many] = happens.time_ms
        changes["node"][place, :many] = happens.node
        changes["what"][place, :many] = happens.what
        changes["factor"][place, :many] = happens.factor
    posts = most_told + 2 if fixed.settings["outside"][0] else 0
    factors = np.stack([episode.rate_factor for episode in episodes])
    return State(
        worlds=worlds,
        tasks=tasks,
        judged=np.zeros(len(tasks), JUDGED),
        seen_cycles=seen,
        own_number=own_number,
        noticed_ms=np.full(len(tasks), np.nan),
        events=events,
        changes=changes,
        nodes=nodes,
        slots=slots,
        channel_free=np.zeros((count, ens)),
        ues=np.zeros((count, ens * ues), UE),
        links=np.zeros((count, links), LINK),
        services=services,
        caches=caches,
        cached=np.zeros((count, links, dimensions)),
        acknowledged=np.zeros((count, links, dimensions)),
        messages=messages,
        carried=carried,
        posts=np.zeros((count, posts), POST),
        foreseen=np.zeros((count, 1 + int(fixed.settings["most_sns"][0])), np.bool_),
        rate_factor=factors.reshape(count, 2 * links, factors.shape[-1]),
        scratch=np.zeros((count, int(fixed.node_slots.max()))),
        journal=np.zeros((count, 0), JOURNAL),
    )


def restarted(fixed: Constants, state: State, world: int, episode: Episode, updates: bool) -> State:
    """The batch with one world at the start of another episode.

    Its tasks take the place of the old ones if they fit, else a place at the end of the table,
    which costs a copy of all and is rare.
    """
    fresh = initial_state(fixed, [episode], updates)
    old, new = state.worlds[world], fresh.worlds[0].copy()
    count, tasks = int(new["end_background"]), state.tasks
    beside = {name: getattr(state, name) for name in _BESIDE_TASKS}
    place, end = int(old["first_task"]), int(old["end_room"])
    if count > end - place:
        place, end = len(tasks), len(tasks) + len(fresh.tasks)
        more = _aligned(end, TASK)
        more[:place] = tasks
        tasks = more
        beside = {k: np.concatenate([v, getattr(fresh, k)]) for k, v in beside.items()}
    for name in ("first_task", "next_task", "end_task", "next_background", "end_background"):
        new[name] += place
    new["end_room"] = end
    tasks[place : place + count] = fresh.tasks[:count]
    for name, column in beside.items():
        column[place : place + count] = getattr(fresh, name)[:count]
    state.worlds[world] = new
    for name in (
        *("nodes", "slots", "channel_free", "ues", "links"),
        *("services", "caches", "cached", "acknowledged"),
    ):
        getattr(state, name)[world] = getattr(fresh, name)[0]
    state.events[world, : fresh.events.shape[1]] = fresh.events[0]
    # All messages of the world are free again.
    messages = state.messages[world]
    messages["next"] = [*range(1, len(messages)), NO_TASK]
    state.worlds[world]["free_message"] = 0
    state.worlds[world]["free_messages"] = len(messages)
    state.rate_factor[world] = fresh.rate_factor[0]
    changes = state.changes
    many = fresh.changes.shape[1]
    if many > changes.shape[1]:
        changes = np.zeros((len(changes), many), CHANGE)
        changes[:, : state.changes.shape[1]] = state.changes
    changes[world, :many] = fresh.changes[0]
    return state._replace(tasks=tasks, changes=changes, **beside)


def own_numbers(en: NDArray[np.int64], ens: int) -> NDArray[np.int64]:
    """[task] its number among the tasks of its EN (R41), in order of the table."""
    found = np.empty(len(en), np.int64)
    for each in range(ens):
        mine = en == each
        found[mine] = np.arange(np.count_nonzero(mine))
    return found


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
    mine["cycles"], theirs["cycles"] = own.work_cycles, other.work_cycles
    mine["deadline"], theirs["deadline"] = own.deadline_ms, np.inf
    mine["node"], theirs["node"] = own.en, ens + other.sn
    mine["ue"] = own.ue
    rows["action"] = NO_ACTION
    rows["next"] = NO_TASK
    rows["decided"] = rows["clock"] = np.nan


def _seen_cycles(fixed: Constants, episode: Episode) -> tuple[Floats, bool]:
    """[task] what nodes see of its cycles (R35), tasks of ENs first, and whether these may be other
    than the true ones.
    """
    undeclared = float(fixed.settings["undeclared_cycles"][0])
    declared = np.concatenate([episode.tasks.cycles, episode.background.cycles])
    if undeclared:
        return np.full_like(declared, undeclared), True
    return declared, not (episode.tasks.as_declared and episode.background.as_declared)


def with_more_messages(
    worlds: Records, messages: Records, carried: Floats, more: int
) -> tuple[Records, Floats]:
    """The messages of every world, and the numbers that they carry, with `more` free ones added."""
    count, before = messages.shape
    added = np.zeros((count, more), MESSAGE)
    added["next"] = np.arange(before + 1, before + more + 1)
    added["next"][:, -1] = worlds["free_message"] if before else NO_TASK
    worlds["free_message"] = before
    worlds["free_messages"] += more
    numbers = np.zeros((count, more, carried.shape[2]))
    return np.concatenate([messages, added], axis=1), np.concatenate([carried, numbers], axis=1)


def blank_turn(fixed: Constants, count: int) -> Turn:
    """Room for one decision of every world."""
    # Columns: the SNs that an EN reaches at most, and the ENs that an SN may tell.
    sns, ens = int(fixed.settings["most_sns"][0]), int(fixed.settings["most_ens"][0])
    dimensions, told = int(fixed.settings["dimensions"][0]), 4 * count + 64
    return Turn(
        counts=np.zeros(COUNTS, np.int64),
        seen=Seen(
            dispatch=np.zeros(count, DISPATCH_ROW),
            sn=np.full((count, sns), NO_NODE, np.int64),
            status=np.zeros((count, sns, dimensions)),
            status_ms=np.zeros((count, sns)),
            up_link_mbps=np.zeros((count, sns, 3)),
            up_backlog_ms=np.zeros((count, sns)),
            update=np.zeros(count, UPDATE_ROW),
            en=np.full((count, ens), NO_NODE, np.int64),
            acknowledged=np.zeros((count, ens, dimensions)),
            acknowledged_ms=np.zeros((count, ens)),
            down_link_mbps=np.zeros((count, ens, 3)),
            result=np.zeros(count, RESULT_ROW),
            result_acknowledged=np.zeros((count, dimensions)),
            feedback=np.zeros(told, FEEDBACK_ROW),
        ),
        answers=Answers(
            action=np.zeros(count, np.int64),
            send=np.zeros((count, ens), np.bool_),
            interval_ms=np.ones(count),
            numbers=np.zeros((count, dimensions)),
            ride=np.zeros(count, np.bool_),
            ride_numbers=np.zeros((count, dimensions)),
        ),
        truth=Truth(
            delay_ms=np.zeros((count, 1 + sns)),
            feasible=np.zeros((count, 1 + sns), np.bool_),
            sn_state=np.zeros((count, sns, STATE_FIELDS)),
            sn_up=np.zeros((count, sns), np.bool_),
            place=np.zeros(count, np.int64),
        ),
        settled=np.zeros(told, SETTLED_ROW),
    )
