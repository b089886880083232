"""A station of tasks under the virtual clock: times and bounds that can be checked on paper.

Nodes of the paper: an EN has 2 slots of 18 000 cycles/ms and room for 240 000 bytes, an SN 4 of
27 000 and 480 000; a task reserves 50 000 bytes. Links take 12 000 bytes a ms up and 24 000 down,
over two hops of 1 ms.
"""

import pytest

from cosmo import load
from cosmo.live.station import Station
from cosmo.live.tasks import Item
from live.cores import task
from observations import site

PAPER = load("paper")
EN, SN = 18_000.0, 27_000.0


def test_a_station_s_state_wait_and_delay():
    begun = []
    here = site(PAPER)
    station = Station(here.en, 0, 50_000.0, 0.1, lambda slot, item, at: begun.append((slot, at)))
    items = [task(number, cycles=EN * length) for number, length in enumerate((10, 4, 6, 3))]
    for item in items[:3]:
        assert station.admit(item, 1.0)
    assert begun == [(0, 11.0), (1, 5.0)]
    # At 3 ms: 8 and 2 ms are left of those that run, 6 wait for 2 ms.
    assert station.state(3.0) == [0.0, 2.0, EN * 16.0, 90_000.0, 3.0, 0.0]
    # Slot 1 is free at 5, has the third until 11, as slot 0; then 3 ms of its own.
    assert station.delay_ms(items[3], 3.0) == 14.0
    assert station.wait_ms(items[3], 3.0) == 8.0
    assert station.admit(items[3], 3.0)
    assert not station.has_room(task(9))  # 40 000 bytes are left
    assert not station.admit(task(9), 3.0)
    station.complete(1, 5.0)
    assert begun[2] == (1, 11.0)
    assert station.state(5.0) == [0.0, 2.0, EN * 15.0, 90_000.0, 3.0, 4.0]
    station.complete(0, 11.0)  # 4 ms, then 10: a tenth of the difference
    assert station.state(11.0)[5] == pytest.approx(4.0 + 0.1 * 6.0)
    short = Station(here.en, 0, 50_000.0, 0.1, lambda *_: None)
    for now, length in ((0.0, 0.5), (1.0, 10.0)):
        short.admit(task(0), now)
        short.complete(0, now + length)
    assert short.state(20.0) == [2.0, 0.0, 0.0, 240_000.0, 0.0, 0.5 + 0.1 * 9.5]
    # Work that takes longer than declared is work of no length.
    assert station.state(20.0)[2] == 0.0
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
    assert station.state(1.0)[1:5] == [1.0, EN * (4.0 + 4.0 + 5.0), 90_000.0, 3.0]
    assert station.drop(items[2], 1.0) is None  # gone already
    assert station.drop(items[1], 2.0) == 1
    assert station.state(2.0)[:5] == [0.0, 0.0, EN * (3.0 + 5.0), 140_000.0, 2.0]
    assert changes == [0.0] * 4 + [1.0, 2.0]
