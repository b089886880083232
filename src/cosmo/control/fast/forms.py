"""Which dispatchers and updaters have a compiled form, and what that needs."""

from dataclasses import fields, replace

import numpy as np

from cosmo.control.fast.admission import admission_of
from cosmo.control.fast.books import books_of
from cosmo.control.fast.changes import changes_of
from cosmo.control.fast.prices import prices_of
from cosmo.control.fast.probes import probes_of
from cosmo.control.fast.records import (
    ADAPTIVE,
    ADMISSION,
    BACK_OFF,
    BOOKS,
    BY_AGE,
    BY_CHANGE,
    BY_CLOCK,
    BY_CONTENT,
    BY_NEWS,
    CROWD,
    ESTIMATE,
    FRIENDS,
    IN_TURN,
    LOCAL,
    NO_CROWD,
    PREQUAL,
    PRICED,
    PROBES,
    RANDOM,
    SILENT,
    STRICT,
    TO_FRIENDS,
    TO_FRIENDS_MOVED,
    TRUTH,
    UNTIL_FULL,
    Crowd,
    Floats,
    Friends,
    Known,
    Memory,
    Rules,
)
from cosmo.control.full_information import FullInformation
from cosmo.node import RAW, Dispatcher, Site, Updater
from cosmo.policy.chance import RandomDispatcher
from cosmo.policy.dispatchers import (
    AdaptivePricesDispatcher,
    AdmissionDispatcher,
    BackOffDispatcher,
    EstimateDispatcher,
    PrequalDispatcher,
    PricedBooksDispatcher,
    SelfTrackingDispatcher,
    StrictDispatcher,
)
from cosmo.policy.dispatchers.power_of_d import ENTRIES, PowerOfDDispatcher
from cosmo.policy.fixed import AllLocal, AllOffload, LocalUntilFull
from cosmo.policy.next.crowd.en import CrowdDispatcher
from cosmo.policy.next.crowd.ground import Ground
from cosmo.policy.next.crowd.sn import CrowdUpdater
from cosmo.policy.updaters import (
    AociOnlineUpdater,
    AoiThresholdUpdater,
    AovGapUpdater,
    NeverUpdater,
    PeriodicUpdater,
    ProbeUpdater,
)
from cosmo.policy.updaters.to_friends import MovedUpdater, RegularUpdater, RidingUpdater
from cosmo.scenario import Scenario
from cosmo.world import Outcome

# By their very type: a subclass may do something else.
_EN: dict[type, int] = {
    AllLocal: LOCAL,
    AllOffload: IN_TURN,
    LocalUntilFull: UNTIL_FULL,
    FullInformation: TRUTH,
    EstimateDispatcher: ESTIMATE,
    StrictDispatcher: STRICT,
    SelfTrackingDispatcher: BOOKS,
    BackOffDispatcher: BACK_OFF,
    PricedBooksDispatcher: PRICED,
    AdaptivePricesDispatcher: ADAPTIVE,
    PrequalDispatcher: PREQUAL,
    AdmissionDispatcher: ADMISSION,
    RandomDispatcher: RANDOM,
    PowerOfDDispatcher: FRIENDS,
    CrowdDispatcher: CROWD,
}
_SN = (
    NeverUpdater,
    PeriodicUpdater,
    ProbeUpdater,
    AociOnlineUpdater,
    AoiThresholdUpdater,
    AovGapUpdater,
    RegularUpdater,
    MovedUpdater,
    RidingUpdater,
    CrowdUpdater,
)


_OF_GROUND = [each.name for each in fields(Ground)]
_OF_BOOKS = (
    *("work", "work_at", "full_at", "source", "flow", "flow_at", "blame", "blame_at"),
    *("next_entry", "task", "arrival", "own_work"),
)


def en_rule(dispatcher: Dispatcher) -> int | None:
    """The rule at the EN; None if it has no compiled form."""
    return _EN.get(type(dispatcher))


def slow(dispatcher: Dispatcher) -> bool:
    """Whether its plain form takes so long that many small worlds are worth compiling, too."""
    return isinstance(dispatcher, CrowdDispatcher)


def rules_of(
    scenario: Scenario, dispatcher: Dispatcher, updater: Updater | None, regret: bool
) -> Rules | None:
    """The compiled form of both sides, which measures regret if it is asked to and if the rule can
    tell; None if one of them has none.
    """
    rule = en_rule(dispatcher)
    if rule is None or not (updater is None or type(updater) in _SN):
        return None
    can_tell = type(dispatcher).would_decide is not Dispatcher.would_decide
    rules = Rules(
        en=rule,
        sn=SILENT,
        interval_ms=np.inf,
        threshold=0.0,
        timeout_ms=0.0,
        warmup_ms=scenario.episode.warmup_ms,
        regret=regret and updater is not None and can_tell,
        rides=updater is not None and updater.rides,
    )
    if isinstance(updater, PeriodicUpdater):
        sn = PROBES if isinstance(updater, ProbeUpdater) else BY_CLOCK
        return rules._replace(sn=sn, interval_ms=float(updater.interval_ms))
    if isinstance(updater, AoiThresholdUpdater):
        return rules._replace(sn=BY_AGE, interval_ms=float(updater.threshold_ms))
    if isinstance(updater, AociOnlineUpdater):
        return rules._replace(
            sn=BY_CHANGE,
            interval_ms=float(updater.check_ms),
            timeout_ms=float(updater.timeout_ms),
        )
    if isinstance(updater, AovGapUpdater):
        return rules._replace(
            sn=BY_CONTENT,
            interval_ms=float(updater.check_ms),
            threshold=float(updater.threshold),
            timeout_ms=float(updater.timeout_ms),
        )
    if isinstance(updater, RegularUpdater):
        return rules._replace(sn=TO_FRIENDS, interval_ms=float(updater.interval_ms))
    if isinstance(updater, MovedUpdater):
        return rules._replace(
            sn=TO_FRIENDS_MOVED,
            interval_ms=float(updater.check_ms),
            threshold=float(updater.threshold_ms),
        )
    if isinstance(updater, RidingUpdater):
        return rules._replace(interval_ms=float(updater.gap_ms))
    if isinstance(updater, CrowdUpdater):
        return rules._replace(sn=BY_NEWS)
    return rules


def known_of(site: Site) -> Known:
    """What the rules are told of a site."""
    links = site.links
    return Known(
        en_speed=site.en.cycles_per_ms,
        sn_speed=site.sn.cycles_per_ms,
        sn_full_rate=site.sn.full_rate,
        sn_storage=site.sn.storage_bytes,
        sn_queue=site.sn.queue_capacity,
        sn_idle=site.sn.idle_state,
        sn_scale=site.state_scale(site.sn),
        hops=links.hops,
        hop_delay_ms=links.hop_delay_ms,
        result_ms=links.result_ms,
        packet_bytes=float(links.packet_bytes),
        reservation_floor=float(site.reservation_floor_bytes),
    )


def draws_of(dispatcher: Dispatcher, tasks: int) -> Floats:
    """[world, task, draw] of a dispatcher that draws for each task; empty for others."""
    if isinstance(dispatcher, PowerOfDDispatcher | AdmissionDispatcher | RandomDispatcher):
        return np.ascontiguousarray(dispatcher.draws.first(tasks))
    return np.zeros((0, 0, 0))


def friends_of(site: Site, dispatcher: Dispatcher, updater: Updater | None) -> Friends:
    """Of a dispatcher that keeps to a few SNs; empty for others."""
    worlds, kept, d, numbers = 0, np.zeros((0, 0), np.bool_), 0, 0
    if isinstance(dispatcher, PowerOfDDispatcher):
        worlds, kept = site.worlds, dispatcher.friends
        d, numbers = dispatcher.d, dispatcher.numbers
    told = np.zeros((0, 0), np.bool_)
    if isinstance(updater, RegularUpdater | MovedUpdater):
        told = updater.friends
    ridden_at = updater.last_ms if isinstance(updater, RidingUpdater) else np.zeros((0, 0, 0))
    own, channels = (worlds, *kept.shape), (worlds, *told.shape)
    return Friends(
        d=d,
        numbers=numbers,
        longest_ms=float(site.tasks.deadline_ms[1]),
        largest_reservation=float(site.largest_reservation),
        kept=kept,
        told=told,
        next_entry=np.zeros(own, np.int64),
        arrival=np.full((*own, ENTRIES), -np.inf),
        cycles=np.zeros((*own, ENTRIES)),
        reserved=np.zeros((*own, ENTRIES)),
        told_ms=np.zeros(channels),
        told_at=np.zeros(channels),
        ridden_at=ridden_at,
    )


def crowd_of(site: Site, dispatcher: Dispatcher, updater: Updater | None, tasks: int) -> Crowd:
    """Of a crowd, with fresh books and draws for so many tasks; empty for others."""
    if not (isinstance(dispatcher, CrowdDispatcher) and isinstance(updater, CrowdUpdater)):
        return NO_CROWD
    ground, books = dispatcher.ground, dispatcher.books
    named = {name: getattr(ground, name) for name in _OF_GROUND}
    named |= {name: getattr(books, name) for name in _OF_BOOKS}
    return Crowd(
        numbers=dispatcher.numbers,
        mean_cycles=float(site.tasks.mean_cycles),
        reach=site.links.reach,
        draws=np.ascontiguousarray(dispatcher.draws.first(tasks)),
        load=dispatcher.load,
        load_at=dispatcher.load_at,
        told_work=updater.work,
        told_at=updater.told_at,
        told_full_at=updater.full_at,
        untold=updater.untold,
        looked_at=updater.looked_at,
        pressure=updater.pressure,
        pressed_at=updater.pressed_at,
        **named,
    )


def blank_memory(
    site: Site, dispatcher: Dispatcher, updater: Updater | None = None, tasks: int = 0
) -> Memory:
    """Nothing has been decided yet; `tasks` are the most that a world has."""
    channels = site.worlds, len(site.sn)
    return Memory(
        books=books_of(dispatcher),
        prices=prices_of(dispatcher),
        probes=probes_of(dispatcher),
        admission=admission_of(dispatcher),
        draws=draws_of(dispatcher, tasks),
        sent=np.zeros((*channels, RAW)),
        sent_ms=np.full(channels, -np.inf),
        pending=np.zeros(channels, np.bool_),
        decisions=np.zeros(site.worlds, np.int64),
        regretted=np.zeros(site.worlds, np.int64),
        changes=changes_of(updater),
        friends=friends_of(site, dispatcher, updater),
        crowd=crowd_of(site, dispatcher, updater, tasks),
    )


def with_regret(outcomes: list[Outcome], memory: Memory) -> list[Outcome]:
    """The outcomes with the regret in their status record, as `measure.Regret` has it."""
    with np.errstate(invalid="ignore"):
        share = memory.regretted / np.asarray(memory.decisions, np.float64)
    return [
        outcome
        if outcome.status is None
        else replace(outcome, status=replace(outcome.status, decision_regret=float(value)))
        for outcome, value in zip(outcomes, share, strict=True)
    ]
