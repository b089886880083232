"""The core of an EN under the virtual clock: times and bounds that can be checked on paper.

Nodes of the paper: an EN has 2 slots of 18 000 cycles/ms and room for 240 000 bytes, an SN 4 of
27 000 and 480 000; a task reserves 50 000 bytes. Links take 12 000 bytes a ms up and 24 000 down,
over two hops of 1 ms.
"""

import math
from dataclasses import fields
from types import SimpleNamespace

import numpy as np
import pytest
from virtual_clock import VirtualClock

from cosmo import load, method
from cosmo.live.clock import (
    CHANGE,
    DEADLINE,
    DELIVERY,
    EN_DECISION,
    FINISH,
    GENERATION,
    SN_DECISION,
    TENANT,
    Emulated,
)
from cosmo.live.core_en import Cache, EnCore, EnRules
from cosmo.live.core_sn import Peer, SnRules
from cosmo.live.dispatcher_runner import DispatcherRunner
from cosmo.live.link import Link
from cosmo.live.tasks import Fate, Item
from cosmo.node import DONE
from live.cores import Wires, en_node, task, timed
from observations import site

PAPER = load("paper")
EN, SN = 18_000.0, 27_000.0


def test_an_en_s_defaults_are_the_simulator_s():
    rules, cache = EnRules(), Cache(np.zeros(1))
    seen, status = PAPER.observation, PAPER.status
    assert (rules.ack_bytes, rules.latency_weight) == (status.ack_bytes, seen.latency_weight)
    assert rules.throughput_weight == PAPER.access.throughput_weight
    assert rules.nominal_mbps == PAPER.access.rate_mbps
    assert (cache.sequence, cache.unknown_work_ms, cache.silent) == (-1, 0.0, False)
    sn, peer = SnRules(), Peer(np.zeros(1))
    assert (sn.header_bytes, sn.bytes_per_number) == (
        status.header_bytes,
        status.bytes_per_dimension,
    )
    assert (sn.notice_bytes, sn.latency_weight) == (status.notice_bytes, seen.latency_weight)
    assert sn.history_ms == seen.history_ms
    assert (sn.least_gap_ms, sn.refresh_ms, sn.per_task) == (0.0, 0.0, 0.0)
    assert (peer.sequence, peer.allowed_ms, peer.sent_ms) == (-1, 0.0, -math.inf)
    r5 = FINISH, CHANGE, DELIVERY, DEADLINE, EN_DECISION, SN_DECISION, GENERATION, TENANT
    assert r5 == tuple(range(8))


def test_what_an_en_sees_of_a_task_and_of_its_links():
    core, _, _ = en_node("periodic", PAPER)
    core.guard_ms = lambda: 2.5
    for number in range(3):
        core.station.admit(task(number, cycles=EN * 10.0), 0.0)
    core.links[0].send(24_000.0, 3.0)
    core.status(0, 0, 1.5, [3.0, 1.0, 2.0, 9.0])  # its acknowledgement joins the link at 0
    item = Item(7, 2.0, 80.0, 25_000.0, EN * 4.0, ue=1, residual_ms=50.0)
    seen = core.sight(item, 4.0).arrays()
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
    core.caches[0].unknown_work_ms = 10.0
    assert core.sight(item, 4.0).arrays().up_backlog_ms[0, 0] == pytest.approx(7.0 + 64 / 12_000)


def test_an_en_of_several_sees_its_own_sns():
    uneven = load("campus", ["backhaul.reach=[[0, 1], [1], [0]]"])
    here, clock = site(uneven), VirtualClock()
    runner = DispatcherRunner(method("periodic"), here, 1)
    links = [Link(here.links, 1, 0, up=True)]
    core = EnCore(here, 1, runner, clock, Emulated(clock), Wires(), links)
    seen = core.sight(task(0), 0.0).arrays()
    assert {len(getattr(seen, each.name)) for each in fields(seen)} == {1}
    assert (seen.en.tolist(), seen.sn.tolist()) == ([1], [[1, -1]])
    assert seen.status.shape == (1, 2, 4)
    assert seen.up_link_mbps[0, 1].tolist() == [1.0, 0.0, 0.0]
    assert seen.up_backlog_ms.tolist() == [[0.0, math.inf]]
    assert core.rules == EnRules()


def test_messages_of_an_en_are_there_when_its_books_say():
    core, _, _ = en_node("all-offload", PAPER)
    wires = timed(core)
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
    assert core.in_flight == 3
    core.refused(core.away(1)[0])
    core.failed(core.away(0)[1], Fate.EXPIRED, "")
    core.result(core.away(0)[0], b"")
    assert wires.answers == {1: Fate.REFUSED, 2: Fate.EXPIRED, 0: Fate.DONE}
    assert core.in_flight == 0


@pytest.mark.parametrize(("now", "fate"), [(100.0, Fate.DONE), (100.5, Fate.LATE)])
def test_a_result_at_the_very_deadline_is_in_time(now, fate):
    core, clock, wires = en_node("all-offload", PAPER)
    heard = []
    core.runner.note_fate = lambda *told: heard.append(told)
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


def test_work_that_no_books_know_of_counts_once():
    core, _, _ = en_node("all-offload")
    rate = 4 * SN
    for number, ms in ((0, 6.0), (1, 4.0)):  # to the two SNs
        core.arrive(task(number, cycles=rate * ms))
    core.restarted(0, rate * 9.0)
    assert [cache.unknown_work_ms for cache in core.caches] == [9.0, 4.0]
    core.start_over()
    assert [cache.unknown_work_ms for cache in core.caches] == [9.0, 4.0]


def test_a_budget_that_ends_at_this_very_moment_is_gone():
    for deadline_ms, left in ((5.0, 0), (5.5, 1)):
        core, _, wires = en_node("all-offload", PAPER, answer_late=True)
        item = task(0, generated_ms=-5.0, deadline_ms=deadline_ms)
        core.arrive(item)
        assert core.in_flight == left
        assert (wires.answers == {0: Fate.EXPIRED}) == (left == 0)
        assert item.ended == (left == 0)


def test_a_failed_handler_gives_the_slot_back_and_is_told():
    core, _, wires = en_node("all-local", PAPER)
    core._worker = SimpleNamespace(
        exact=False, run=lambda item, finish, done, failed: works.append((done, failed))
    )
    works, heard = [], []
    core.runner.note_fate = lambda *told: heard.append(told)
    for number in range(2):
        core.arrive(task(number))
    works[0][1]("broken")
    works[1][0](b"out")
    assert wires.answers == {0: Fate.FAILED, 1: Fate.DONE}
    assert core.station.requests == 0
    assert [(told[0], told[1], told[3]) for told in heard] == [(0, 0, False), (1, 0, True)]
