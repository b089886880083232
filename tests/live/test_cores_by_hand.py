"""Cores of nodes under the virtual clock: times, numbers and bounds that can be checked on paper.

Nodes of the paper: an EN has 2 slots of 18 000 cycles/ms and room for 240 000 bytes, an SN 4 of
27 000 and 480 000; a task reserves 50 000 bytes. Links take 12 000 bytes a ms up and 24 000 down,
over two hops of 1 ms.
"""

import math
from dataclasses import fields
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from cosmo import load, method
from cosmo.errors import InputError
from cosmo.live import guarded
from cosmo.live.chooser import Chooser, feedback_of
from cosmo.live.core_en import Cache, EnCore, EnRules
from cosmo.live.core_sn import Peer, SnCore, SnRules
from cosmo.live.decisions import DecisionLog, _known_told
from cosmo.live.guarded import Guarded
from cosmo.live.host import DELIVERY, EN_DECISION, FINISH, GENERATION, SN_DECISION, Emulated
from cosmo.live.items import Fate, Item
from cosmo.live.link import Link
from cosmo.live.metrics import Counters
from cosmo.live.shadow import Shadow
from cosmo.live.station import Station
from cosmo.live.teller import GuardedTeller, Teller
from cosmo.live.virtual import VirtualClock
from cosmo.node import DONE, Dispatcher, Method, Updater
from live.cores import Moody, Wires, en_node, sn_node, task
from observations import site

PAPER = load("paper")
EN, SN = 18_000.0, 27_000.0


class Timed(Wires):
    """Keeps when books say that messages are there."""

    def __init__(self):
        super().__init__()
        self.times = []

    def offload(self, sn, item, arrival_ms):
        self.times.append(arrival_ms)

    def acknowledge(self, sn, sequence, arrival_ms):
        self.times.append(arrival_ms)

    def status(self, en, sequence, numbers, arrival_ms):
        super().status(en, sequence, numbers, arrival_ms)
        self.times.append(arrival_ms)

    def answer(self, *told):
        if not isinstance(told[0], Item):
            self.times.append(told[4])
            self.results.append(told)


def _timed(core):
    core._transport = wires = Timed()
    return wires


# The station.


def test_a_station_s_state_wait_and_delay():
    begun = []
    here = site(PAPER)
    station = Station(here.en, 0, 50_000.0, 0.1, lambda slot, item, at: begun.append((slot, at)))
    items = [task(number, cycles=EN * length) for number, length in enumerate((10, 4, 6, 3))]
    for item in items[:3]:
        assert station.admit(item, 1.0)
    assert begun == [(0, 11.0), (1, 5.0)]
    # At 3 ms: 8 and 2 ms are left of those that run, 6 wait for 2 ms.
    assert station.state(3.0).tolist() == [0.0, 2.0, EN * 16.0, 90_000.0, 3.0, 0.0]
    # Slot 1 is free at 5, has the third until 11, as slot 0; then 3 ms of its own.
    assert station.delay_ms(items[3], 3.0) == 14.0
    assert station.wait_ms(items[3], 3.0) == 8.0
    assert station.admit(items[3], 3.0)
    assert not station.has_room(task(9))  # 40 000 bytes are left
    assert not station.admit(task(9), 3.0)
    station.complete(1, 5.0)
    assert begun[2] == (1, 11.0)
    assert station.state(5.0).tolist() == [0.0, 2.0, EN * 15.0, 90_000.0, 3.0, 4.0]
    station.complete(0, 11.0)  # 4 ms, then 10: a tenth of the difference
    assert station.state(11.0)[5] == pytest.approx(4.0 + 0.1 * 6.0)
    short = Station(here.en, 0, 50_000.0, 0.1, lambda *_: None)
    for now, length in ((0.0, 0.5), (1.0, 10.0)):
        short.admit(task(0), now)
        short.complete(0, now + length)
    assert short.state(20.0).tolist() == [2.0, 0.0, 0.0, 240_000.0, 0.0, 0.5 + 0.1 * 9.5]
    # Work that takes longer than declared is work of no length.
    assert station.state(20.0).tolist()[2] == 0.0
    assert station.delay_ms(task(9, generated_ms=18.0, cycles=EN), 20.0) == 3.0
    assert station.wait_ms(task(9, generated_ms=18.0, cycles=EN), 20.0) == 0.0


def test_a_station_is_full_by_bytes_or_by_tasks():
    one = load("paper", ["en.queue_capacity=3", "en.storage_bytes=150000"])
    station = Station(site(one).en, 0, 50_000.0, 0.1, lambda *_: None)
    assert [station.admit(task(number), 0.0) for number in range(4)] == [True] * 3 + [False]
    large = Station(site(one).en, 0, 0.0, 0.1, lambda *_: None)
    sizes = [Item(k, 0.0, 9.0, size, 1.0) for k, size in enumerate((90_000, 60_001, 60_000, 1))]
    assert [large.admit(item, 0.0) for item in sizes] == [True, False, True, False]
    # A slot that was free for a moment before anybody took note.
    late = Station(site(one).en, 0, 0.0, 0.1, lambda *told: begun.append(told[2]))
    begun = []
    for number in range(3):
        late.admit(task(number, cycles=EN * 2.0), 4.0)
    late.complete(0, 3.0)
    assert begun == [6.0, 6.0, 6.0]


def test_tasks_that_are_taken_out_leave_no_work_behind():
    station = Station(site(PAPER).en, 0, 50_000.0, 0.1, lambda *_: None)
    changes = []
    station.before_change = changes.append
    items = [task(number, cycles=EN * 5.0) for number in range(4)]
    for item in items:
        station.admit(item, 0.0)
    assert station.drop(items[2], 1.0) is None
    assert station.state(1.0).tolist()[1:5] == [1.0, EN * (4.0 + 4.0 + 5.0), 90_000.0, 3.0]
    assert station.drop(items[2], 1.0) is None  # gone already
    assert station.drop(items[1], 2.0) == 1
    assert station.state(2.0).tolist()[:5] == [0.0, 0.0, EN * (3.0 + 5.0), 140_000.0, 2.0]
    assert changes == [0.0] * 4 + [1.0, 2.0]


# The EN.


def test_an_en_s_defaults_are_the_simulator_s():
    rules, cache = EnRules(), Cache(np.zeros(1))
    seen, status = PAPER.observation, PAPER.status
    assert (rules.ack_bytes, rules.latency_weight) == (status.ack_bytes, seen.latency_weight)
    assert rules.throughput_weight == PAPER.access.throughput_weight
    assert rules.nominal_mbps == PAPER.access.rate_mbps
    assert (cache.sequence, cache.unbooked_ms, cache.silent) == (-1, 0.0, False)
    sn, peer = SnRules(), Peer(np.zeros(1))
    assert (sn.header_bytes, sn.bytes_per_number) == (
        status.header_bytes,
        status.bytes_per_dimension,
    )
    assert (sn.notice_bytes, sn.latency_weight) == (status.notice_bytes, seen.latency_weight)
    assert sn.history_ms == seen.history_ms
    assert (sn.least_gap_ms, sn.refresh_ms, sn.per_task) == (0.0, 0.0, 0.0)
    assert (peer.sequence, peer.allowed_ms, peer.sent_ms) == (-1, 0.0, -math.inf)
    assert (FINISH, DELIVERY, EN_DECISION, SN_DECISION, GENERATION) == (0, 1, 2, 3, 4)  # R5


def test_what_an_en_sees_of_a_task_and_of_its_links():
    core, _, _ = en_node("periodic", PAPER)
    core.guard_ms = lambda: 2.5
    for number in range(3):
        core.station.admit(task(number, cycles=EN * 10.0), 0.0)
    core.links[0].send(24_000.0, 3.0)
    core.status(0, 0, 1.5, [3.0, 1.0, 2.0, 9.0])  # its acknowledgement joins the link at 0
    item = Item(7, 2.0, 80.0, 25_000.0, EN * 4.0, ue=1, residual_ms=50.0)
    seen = core.observation(item, 4.0)
    assert (seen.time_ms[0], seen.generated_ms[0], seen.deadline_ms[0]) == (4.0, 2.0, 77.5)
    assert (seen.input_bytes[0], seen.cycles[0], seen.residual_ms[0]) == (25_000.0, EN * 4.0, 50.0)
    assert (seen.ue[0], seen.task[0], seen.en[0], seen.world[0]) == (1, 7, 0, 0)
    assert seen.throughput_mbps[0] == pytest.approx(25_000 * 8 / 2e3)
    assert seen.throughput_trend_mbps[0] == 0.0
    assert seen.en_state[0].tolist() == [0.0, 4.0, EN * 22.0, 90_000.0, 3.0, 0.0]
    assert (seen.local_wait_ms[0], seen.local_room[0]) == (6.0, True)
    assert seen.status[0, 0].tolist() == [3.0, 1.0, 2.0, 9.0]
    assert (seen.status_ms[0, 0], seen.sn.tolist()) == (1.5, [[0]])
    assert seen.up_link_mbps[0, 0].tolist() == [96.0, 0.0, 0.0]
    assert seen.up_backlog_ms[0, 0] == pytest.approx(3.0 + 2.0 + 64 / 12_000 - 4.0)
    assert {len(getattr(seen, each.name)) for each in fields(seen)} == {1}
    core.caches[0].unbooked_ms = 10.0
    assert core.observation(item, 4.0).up_backlog_ms[0, 0] == pytest.approx(7.0 + 64 / 12_000)


def test_an_en_of_several_sees_its_own_sns():
    uneven = load("campus", ["backhaul.reach=[[0, 1], [1], [0]]"])
    here, clock = site(uneven), VirtualClock()
    chooser = Chooser(method("periodic"), here, 1)
    links = [Link(here.links, 1, 0, up=True)]
    core = EnCore(here, 1, chooser, clock, Emulated(clock), Wires(), links)
    seen = core.observation(task(0), 0.0)
    assert {len(getattr(seen, each.name)) for each in fields(seen)} == {1}
    assert (seen.en.tolist(), seen.sn.tolist()) == ([1], [[1, -1]])
    assert seen.status.shape == (1, 2, 4)
    assert seen.up_link_mbps[0, 1].tolist() == [1.0, 0.0, 0.0]
    assert seen.up_backlog_ms.tolist() == [[0.0, math.inf]]
    assert core.rules == EnRules()


def test_messages_of_an_en_are_there_when_its_books_say():
    core, _, _ = en_node("all-offload", PAPER)
    wires = _timed(core)
    core.arrive(Item(0, 0.0, 100.0, 24_000.0, SN, residual_ms=9.0))
    core.status(0, 0, 0.0, [])
    # 2 ms on the link, 2 of hops, a packet once more; then 64 bytes behind that.
    assert wires.times == pytest.approx([2.0 + 2.0 + 0.125, 2.0 + 64 / 12_000 + 2.0 + 64 / 12_000])
    core.status(0, 0, 5.0, [])  # not newer
    assert (len(wires.times), core.caches[0].source_ms) == (2, 0.0)


def test_numbers_of_tasks_and_what_is_under_way():
    core, _, wires = en_node("all-offload")
    assert [core.next_number() for _ in range(3)] == [0, 1, 2]
    for number in (0, 1, 2):  # by turns
        core.arrive(task(number))
    assert [item.number for item in core.away(0)] == [0, 2]
    assert [item.number for item in core.away(1)] == [1]
    assert core.under_way == 3
    core.refused(core.away(1)[0])
    core.failed(core.away(0)[1], Fate.EXPIRED, "")
    core.result(core.away(0)[0], b"")
    assert wires.answers == {1: Fate.REFUSED, 2: Fate.EXPIRED, 0: Fate.DONE}
    assert core.under_way == 0


@pytest.mark.parametrize(("now", "fate"), [(100.0, Fate.DONE), (100.5, Fate.LATE)])
def test_a_result_at_the_very_deadline_is_in_time(now, fate):
    core, clock, wires = en_node("all-offload", PAPER)
    heard = []
    core.chooser.tell = lambda *told: heard.append(told)
    item = task(0)
    core.arrive(item)
    clock.at(now, 1, lambda: core.result(item, b""))
    clock.run()
    assert wires.answers == {0: fate}
    assert heard == [(0, 1, DONE, fate == Fate.DONE, now)]


def test_a_lost_task_is_done_again_if_it_can_be_in_time_to_the_ms():
    for deadline_ms, rerun in ((10.0, True), (9.999, False)):
        core, clock, wires = en_node("all-offload", PAPER)
        item = task(0, deadline_ms=deadline_ms)  # 10 ms here
        core.arrive(item)
        core.lost(item)
        clock.run()
        assert item.rerun == rerun
        assert wires.answers == {0: Fate.DONE if rerun else Fate.FAILED}


def test_a_pause_is_one_only_if_it_is_longer_and_nothing_is_under_way():
    for gap_ms, started in ((1000.0, 1), (1000.5, 2)):
        core, clock, _ = en_node("all-local", PAPER, fresh_ms=1000.0)
        starts = []
        core.chooser.start_over = lambda starts=starts: starts.append(1)
        for number, now in enumerate((50.0, 50.0 + gap_ms)):
            clock.at(now, 0, partial(core.arrive, task(number, now)))
        clock.run()
        assert len(starts) == started
        last = 50.0 if started == 1 else 50.0 + gap_ms
        assert core._origin_ms == pytest.approx(last - 1000.0 / core.site.tasks.rate)
    core, clock, _ = en_node("all-local", PAPER, fresh_ms=1000.0)
    long = task(0, 0.0, cycles=EN * 3000.0)
    core.arrive(long)
    origin = core._origin_ms
    clock.at(2000.0, 0, lambda: core.arrive(task(1, 2000.0)))
    clock.run()
    assert core._origin_ms == origin


def test_work_that_no_books_know_of_counts_once():
    core, _, _ = en_node("all-offload")
    rate = 4 * SN
    for number, ms in ((0, 6.0), (1, 4.0)):  # to the two SNs
        core.arrive(task(number, cycles=rate * ms))
    core.restarted(0, rate * 9.0)
    assert [cache.unbooked_ms for cache in core.caches] == [9.0, 4.0]
    core.start_over()
    assert [cache.unbooked_ms for cache in core.caches] == [9.0, 4.0]


def test_a_budget_that_ends_at_this_very_moment_is_gone():
    for deadline_ms, left in ((5.0, 0), (5.5, 1)):
        core, _, wires = en_node("all-offload", PAPER, answer_late=True)
        item = task(0, generated_ms=-5.0, deadline_ms=deadline_ms)
        core.arrive(item)
        assert core.under_way == left
        assert (wires.answers == {0: Fate.EXPIRED}) == (left == 0)
        assert item.ended == (left == 0)


def test_a_failed_handler_gives_the_slot_back_and_is_told():
    core, _, wires = en_node("all-local", PAPER)
    core._worker = SimpleNamespace(
        exact=False, run=lambda item, finish, done, failed: works.append((done, failed))
    )
    works, heard = [], []
    core.chooser.tell = lambda *told: heard.append(told)
    for number in range(2):
        core.arrive(task(number))
    works[0][1]("broken")
    works[1][0](b"out")
    assert wires.answers == {0: Fate.FAILED, 1: Fate.DONE}
    assert core.station.requests == 0
    assert [(told[0], told[1], told[3]) for told in heard] == [(0, 0, False), (1, 0, True)]


# The SN.


def test_results_notices_and_statuses_are_as_long_as_they_are():
    core, clock, _ = sn_node("periodic:interval_ms=1000", until_ms=0.0)
    wires = _timed(core)
    down = 24_000.0

    def way(size):
        return size / down + 2.0 + min(size, 1500.0) / down

    core.begin()
    clock.run()
    status = 64.0 + 4.0 * 4
    assert wires.times == pytest.approx([way(status)])
    core.arrive(task(0, cycles=SN * 8.0), 0)
    clock.run()
    # A result has 1000 bytes at least.
    assert wires.times[1] == pytest.approx(8.0 + way(1000.0))
    assert core.recent.numbers(8.0) == (pytest.approx(8.0 + way(1000.0)), 1.0, 0.0)
    item = task(1, 8.0, cycles=SN)
    core.arrive(item, 0)
    core._finish(0, item, 9.0, bytes(4000))
    assert wires.times[2] == pytest.approx(8.0 + 1000.0 / down + way(4000.0))  # behind the other


@pytest.mark.parametrize(("deadline_ms", "in_time"), [(10.0833333333334, 1.0), (10.0833333, 0.0)])
def test_an_sn_judges_by_when_the_result_will_be_there(deadline_ms, in_time):
    core, clock, _ = sn_node("never")
    core.arrive(task(0, deadline_ms=deadline_ms, cycles=SN * 8.0), 0)
    clock.run()
    delay_ms, success, failure = core.recent.numbers(8.0)
    assert delay_ms == pytest.approx(8.0 + 1000 / 24_000 + 2.0 + 1000 / 24_000)
    assert (success, failure) == (in_time, 1.0 - in_time)


def test_tasks_of_nobody_take_room_and_are_not_answered():
    core, clock, wires = sn_node("never")
    for number in range(10):
        core.arrive(task(-1 - number, cycles=SN), None)
    assert core.station.requests == 9  # 480 000 bytes
    clock.run()
    assert wires.results == []
    assert core.recent.numbers(1.0) == (0.0, 0.0, 0.0)


class Rides(Method, Updater):
    """A status on every result; nothing else."""

    carries, rides = 2, True

    def __init__(self, ride=True):
        self._ride, self.seen = ride, []

    def updater(self, site):
        return self

    def decide(self, nodes):
        return np.zeros(len(nodes), bool), np.full(len(nodes), np.inf)

    def ride(self, results):
        self.seen.append(results)
        return np.full(len(results), self._ride)

    def encode(self, states):
        return states.state[:, :2]


def test_a_status_that_rides_makes_a_result_longer_and_counts_as_an_update():
    for ride, size, updates in ((True, 1008.0, 1), (False, 1000.0, 0)):
        made = Rides(ride)
        core, clock, _ = sn_node(made)
        wires = _timed(core)
        core.arrive(task(0, cycles=SN * 8.0), 0)
        clock.run()
        [told] = wires.results
        assert wires.times == pytest.approx([8.0 + size / 24_000 + 2.0 + size / 24_000])
        assert core.updates == updates
        if ride:
            assert (told[5][0], told[5][1].tolist()) == (0, [4.0, 0.0])
        else:
            assert told[5] is None
        [seen] = made.seen
        assert (seen.time_ms[0], seen.en[0], seen.sn[0]) == (8.0, 0, 0)
        assert math.isnan(seen.acknowledged_ms[0])


def test_what_an_sn_sees():
    core, _, _ = sn_node("periodic")
    core.recent.note(0.0, 30.0, True)
    core.recent.note(0.0, None, False)
    core._numbered(np.arange(4.0), 2.0)
    core.acknowledged(0, 0)
    core.arrive(task(0, cycles=SN * 8.0), 0)
    seen = core.observation(3.0)
    assert (seen.time_ms[0], seen.sn[0], seen.en.tolist()) == (3.0, 0, [[0]])
    assert seen.sn_state[0].tolist() == [3.0, 0.0, SN * 5.0, 430_000.0, 1.0, 0.0]
    assert seen.acknowledged[0, 0].tolist() == [0.0, 1.0, 2.0, 3.0]
    assert seen.acknowledged_ms[0, 0] == 2.0
    assert (seen.recent_delay_ms[0], seen.recent_success[0]) == (30.0, 0.5)
    assert seen.recent_failure[0] == 0.5
    assert seen.down_link_mbps[0, 0].tolist() == [192.0, 0.0, 0.0]


def test_only_newer_acknowledgements_of_what_was_sent_count():
    core, _, _ = sn_node("periodic")
    for number in range(3):
        assert core._numbered(np.full(4, float(number)), 10.0 * number) == number
    for sequence, held_ms in ((1, 10.0), (0, 10.0), (9, 10.0), (1, 10.0), (2, 20.0)):
        core.acknowledged(0, sequence)
        assert core.peers[0].acknowledged_ms == held_ms
    core.met(0, True)
    assert math.isnan(core.peers[0].acknowledged_ms)


def test_a_status_waits_for_its_gap_its_allowance_and_news():
    core, _, _ = sn_node(
        "periodic", least_gap_ms=10.0, refresh_ms=50.0, per_task=2.0, idle_ms=100.0, burst=3.0
    )
    peer, numbers = core.peers[0], np.ones(4)
    core._spend(peer, 0.0)
    peer.allowed = 2.0
    assert [core._wants(0, numbers, now) for now in (9.9, 10.0)] == [False, True]
    peer.allowed, peer.allowed_ms = 0.5, 10.0
    assert [core._wants(0, numbers, now) for now in (59.0, 60.0)] == [False, True]
    core._allow(peer, 60.0, 2.0)
    assert peer.allowed == 3.0  # never more
    core._spend(peer, 60.0)
    assert (peer.allowed, core.updates) == (2.0, 2)
    # The same numbers again only when they are old; others at once.
    peer.numbers, peer.acknowledged_ms = np.ones(4), 100.0
    assert [core._wants(0, numbers, now) for now in (149.9, 150.0)] == [False, True]
    assert core._wants(0, np.zeros(4), 101.0)
    peer.here = False
    assert not core._wants(0, np.zeros(4), 101.0)


def test_an_sn_decides_until_its_end_and_one_that_takes_over_begins_at_once():
    core, clock, _ = sn_node("periodic:interval_ms=10", until_ms=30.0)
    core.begin()
    clock.run()
    assert (core.decisions, clock.now()) == (4, 30.0)
    core, clock, _ = sn_node("periodic:interval_ms=10", until_ms=30.0)
    core.begin()
    clock.at(15.0, 0, lambda: core.take_over(core.teller))
    clock.run()
    assert (core.decisions, clock.now()) == (4, 25.0)  # 0, 10, 15, 25


def _of_campus():
    """SN 0, which ENs 0 and 2 reach, of two; SN 1 is reached by all three."""
    uneven = load("campus", ["backhaul.reach=[[0, 1], [1], [0, 1]]", "backhaul.down_mbps=8"])
    here, clock, wires = site(uneven), VirtualClock(), Timed()
    made = Rides()
    links = [Link(here.links, en, 0, up=False) for en in (0, 2)]
    teller = GuardedTeller(made, here)
    return SnCore(here, 0, teller, clock, Emulated(clock), wires, links), clock, wires, made


def test_an_sn_of_several_ens_tells_whom_it_means():
    core, clock, wires, made = _of_campus()
    seen = core.observation(0.0)
    assert {len(getattr(seen, each.name)) for each in fields(seen)} == {1}
    assert seen.en.tolist() == [[0, 2, -1]]
    assert seen.down_link_mbps[0].tolist() == [[8.0, 0.0, 0.0]] * 2 + [[1.0, 0.0, 0.0]]
    assert np.isnan(seen.acknowledged_ms).all()
    assert not seen.acknowledged.any()
    made.decide = lambda nodes: (np.array([[False, True, True]]), np.full(1, np.inf))
    core.begin()
    clock.run()
    assert [en for en, _, _ in wires.statuses] == [1]
    assert (core.updates, core.suppressed, core.decisions) == (1, 0, 1)
    core.arrive(task(0, cycles=SN), 1)
    clock.run()
    assert made.seen[-1].en.tolist() == [2]
    assert {len(getattr(made.seen[-1], each.name)) for each in fields(made.seen[-1])} == {1}


def test_an_sn_without_an_updater_is_silent_and_knows_no_numbers():
    here, clock = site(PAPER), VirtualClock()
    links = [Link(here.links, 0, 0, up=False)]
    core = SnCore(here, 0, None, clock, Emulated(clock), Wires(), links)
    core.begin()
    assert (clock._events, core.peers[0].numbers.tolist()) == ([], [])
    assert (core.decisions, core.updates, core.suppressed) == (0, 0, 0)
    assert core.rules == SnRules()


def test_256_statuses_are_remembered_until_they_are_acknowledged():
    core, _, _ = sn_node("periodic")
    for number in range(257):
        core._numbered(np.zeros(4), float(number))
    core.acknowledged(0, 0)
    assert math.isnan(core.peers[0].acknowledged_ms)
    core.acknowledged(0, 1)
    assert core.peers[0].acknowledged_ms == 1.0


def test_a_budget_that_is_gone_at_an_sn():
    for deadline_ms, results in ((5.0, [(0, Fate.EXPIRED)]), (5.5, [])):
        core, _, wires = sn_node("never", drop_late=True)
        core.arrive(task(0, generated_ms=-5.0, deadline_ms=deadline_ms), 0)
        assert wires.results == results
    core, _, wires = sn_node("never")  # as R11 says
    core.arrive(task(0, generated_ms=-500.0), 0)
    assert wires.results == []


# Who is asked.


def test_feedback_of_what_is_known_has_a_row_each():
    found = feedback_of([(3, 1, 2, True, 5.0), (4, 0, 1, False, 6.5)], 2)
    assert (found.task.tolist(), found.action.tolist()) == ([3, 4], [1, 0])
    assert (found.fate.tolist(), found.in_time.tolist()) == ([2, 1], [True, False])
    assert (found.time_ms.tolist(), found.en.tolist()) == ([5.0, 6.5], [2, 2])
    assert found.world.tolist() == [0, 0]


class Clocks:
    """`time` with a processor and a wall that go as they are told, at each decision."""

    def __init__(self):
        self.wall_s = self.work_s = 0.0

    def perf_counter(self):
        return self.wall_s

    def thread_time(self):
        return self.work_s


def test_slowness_is_of_the_processor_at_once_or_of_the_wall_three_times(monkeypatch):
    clocks = Clocks()
    monkeypatch.setattr(guarded, "time", clocks)

    class Takes(Method, Dispatcher):
        took = 0.0, 0.0

        def dispatcher(self, site):
            return self

        def decide(self, tasks):
            clocks.wall_s += self.took[0]
            clocks.work_s += self.took[1]
            return np.zeros(1, np.int64)

    made, said, seconds = Takes(), [], [0.0]
    here = site(PAPER)
    chooser = Guarded(made, Takes(), here, 0, 4.0, ("a", "b"), lambda: seconds[0])
    chooser.report = lambda who, why: said.append((who, why))
    core, _, _ = en_node(scenario=PAPER, chooser=chooser)
    seen = core.observation(task(0), 1.0)

    def ask(wall_ms, work_ms):
        made.took = wall_ms / 1000.0, work_ms / 1000.0
        chooser.choose(seen)
        return chooser.on_fallback

    # Late twice, then quick: nobody's fault. Three times in a row is one.
    assert [ask(ms, 0.0) for ms in (9.0, 9.0, 3.0, 9.0, 9.0)] == [False] * 5
    assert ask(9.0, 0.0)
    assert said == [("b", "took 9.0 ms, limit 4")]
    assert chooser.decision_ms.count == 6
    assert chooser.decision_ms.quantile(1.0) == pytest.approx(9.0)
    seconds[0] = 1.0  # a second later it is tried again
    assert not ask(1.0, 1.0)
    assert ask(4.5, 4.5)
    assert said[1:] == [("a", "tried again"), ("b", "took 4.5 ms, limit 4")]
    assert chooser.faults == 2
    # It now stays away for two seconds, unless it has been good for fifty answers before.
    seconds[0] = 2.9
    assert ask(1.0, 1.0)
    seconds[0] = 3.0
    for _ in range(50):
        assert not ask(1.0, 1.0)
    ask(4.5, 4.5)
    seconds[0] = 4.0
    assert not ask(1.0, 1.0)


def test_a_method_stays_away_for_a_minute_at_most():
    moody, seconds = Moody(), [0.0]
    chooser = Guarded(moody, Moody(), site(PAPER), 0, 1e6, clock=lambda: seconds[0])
    core, _, _ = en_node(scenario=PAPER, chooser=chooser)
    seen, away = core.observation(task(0), 1.0), []
    for _ in range(8):
        moody.moods = [99]
        chooser.choose(seen)
        away.append(chooser._retry_s - seconds[0])
        seconds[0] = chooser._retry_s
    assert away == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]
    assert chooser.name == "Moody"


def test_an_updater_that_fails_pauses_for_a_tenth_of_a_second():
    class Broken(Rides):
        def decide(self, nodes):
            raise RuntimeError("no")

        def ride(self, results):
            raise RuntimeError("neither")

    core, _, _ = sn_node(Broken())
    teller, said = core.teller, []
    teller.report = said.append
    send, interval_ms, numbers = teller.decide(core.observation(0.0), 1)
    assert (send.tolist(), interval_ms, numbers.tolist()) == ([False], 100.0, [0.0, 0.0])
    assert core._rider(0, 0.0) is None
    assert (teller.faults, len(said)) == (2, 2)
    assert GuardedTeller(Rides(), site(PAPER)).rides
    with pytest.raises(InputError, match="Broken"):
        Teller(Broken(), site(PAPER)).decide(core.observation(0.0), 1)


def test_a_shadow_starts_over_when_time_begins_anew():
    core, _, _ = en_node(scenario=PAPER)
    counters, starts = Counters(), []
    shadow = Shadow.of("all-local", site(PAPER))
    shadow._chooser.start_over = lambda: starts.append(1)
    for now, action in ((5.0, 0), (5.0, 1), (6.0, 2), (2.0, 0)):
        shadow.ask(core.observation(task(0), now), action, counters)
    assert len(starts) == 1
    assert counters.get("shadow_total", agrees="true") == 2.0
    assert counters.get("shadow_differs_total", decided="offload", would="local") == 1.0
    assert counters.get("shadow_differs_total", decided="reject", would="local") == 1.0


def test_the_virtual_clock_keeps_the_order_of_kinds_then_of_asking():
    clock, done = VirtualClock(), []
    for number, (time_ms, kind) in enumerate(((2.0, 3), (1.0, 4), (1.0, 0), (1.0, 4), (2.0, 1))):
        clock.at(time_ms, kind, lambda number=number: done.append((number, clock.now())))
    clock.at(1.5, 0, lambda: done.append("never")).cancel()
    kinds = []
    clock.run(kinds.append)
    assert done == [(2, 1.0), (1, 1.0), (3, 1.0), (4, 2.0), (0, 2.0)]
    assert kinds == [0, 4, 4, 1, 3]


# The decision log.


def test_a_row_of_the_decision_log(tmp_path):
    log = DecisionLog(str(tmp_path / "log.csv"), 100, lambda why: None)
    core, _, _ = en_node("periodic", PAPER)
    for number, generated_ms in ((1, 107.0), (0, 100.5)):
        item = Item(number, generated_ms, 50.0, 10.0, 20.0, ue=4, kind="k")
        item.decided_ms, item.action, item.rerun = generated_ms + 2.0, 1, number == 0
        if number == 0:
            core.status(0, 0, 100.0, [3.0, 0.25, 1e7, 7.0])
            log.note(core.observation(item, 102.5), item)
        log.add(item, Fate.LATE, generated_ms + 60.125)
    log.close()
    _, first, second = (tmp_path / "log.csv").read_text().splitlines()
    assert first == "0.0,4,10.0,20.0,50.0,k,2.0,1,LATE,60.125,1,2.5,3 0.25 1e+07 7"
    assert second == "6.5,4,10.0,20.0,50.0,k,8.5,1,LATE,66.625,0,,"
    ages, numbers = np.array([1.5, np.nan]), np.array([[1.0], [2.0]])
    assert _known_told((ages, numbers)) == ("1.5;", "1;")
