"""What nodes are told at the start, and what follows from it, by hand."""

import numpy as np
import pytest

from cosmo import load
from cosmo.node.units import transfer_ms
from cosmo.seeds import Purpose, run_digest
from cosmo.world import site_of
from observations import site, tasks

PAPER = load("paper")


@pytest.mark.parametrize(
    ("message_bytes", "hops", "expected"),
    [
        # 12000 B/ms, 1 ms a hop, packets of 1500 B.
        (36000.0, 1, 3.0 + 1.0),
        (36000.0, 2, 3.0 + 2.0 + 0.125),
        (36000.0, 3, 3.0 + 3.0 + 2 * 0.125),
        (1500.0, 2, 0.125 + 2.0 + 0.125),
        (1200.0, 2, 0.1 + 2.0 + 0.1),  # less than a packet: all of it passes every hop
        (0.0, 2, 2.0),
    ],
)
def test_a_message_passes_the_first_hop_and_its_last_packet_the_others(
    message_bytes, hops, expected
):
    assert transfer_ms(message_bytes, 12000.0, hops, 1.0, 1500.0) == pytest.approx(expected)


def test_transfers_of_arrays_are_those_of_their_numbers():
    sizes, rates = np.array([[64.0], [36000.0]]), np.array([12000.0, 24000.0])
    table = transfer_ms(sizes, rates, 2, 1.0, 1500.0)
    assert table.shape == (2, 2)
    for row, size in enumerate(sizes[:, 0]):
        for column, rate in enumerate(rates):
            assert table[row, column] == transfer_ms(size, rate, 2, 1.0, 1500.0)


def test_the_way_to_an_sn_and_back():
    here, seen = site(PAPER), tasks(PAPER, up_backlog_ms=0.5)
    assert here.upload_ms(seen) == pytest.approx(0.5 + 3.0 + 2.0 + 0.125)
    assert here.return_ms(seen) == pytest.approx(2 * 1000 / 24000 + 2.0)
    # By the rate that the link has now.
    halved = tasks(PAPER, up_link_mbps=[48.0, 0.0, 0.0])
    assert here.upload_ms(halved) == pytest.approx(6.0 + 2.0 + 0.25)


def test_rooms_and_places():
    """R9, R10: 50000 B a task at least, 240000 and 480000 B, and a queue that may be shorter."""
    here = site(PAPER)
    np.testing.assert_array_equal(here.reservation(np.array([2e4, 6e4])), [5e4, 6e4])
    assert (here.places(here.en).tolist(), here.places(here.sn).tolist()) == ([4.0], [9.0])
    short = site(load("paper", ["sn.queue_capacity=3"]))
    assert short.places(short.sn).tolist() == [3.0]
    # Without the floor the smallest tasks (20000 B) are more than the largest (50000 B).
    free = ["storage.reservation_floor_bytes=0", "sn.queue_capacity=100"]
    small = site(load("paper", free))
    assert (small.places(small.sn).tolist(), small.most_tasks(small.sn).tolist()) == ([9.0], [24])


def test_scales_are_those_of_the_scenario():
    """R18."""
    here = site(PAPER)
    expected = [4.0, 100.0, 100.0 * 4 * 27000.0, 480000.0]
    np.testing.assert_allclose(here.state_scale(here.sn), [expected])
    np.testing.assert_array_equal(here.sn.idle_state, [[4.0, 0.0, 0.0, 480000.0]])
    ages = np.array([0.0, 200.0, 1999.0, 2000.0, 1e9])
    np.testing.assert_allclose(here.scales.age(ages), [0.0, 1.0, 9.995, 10.0, 10.0])
    shorter = site(load("paper", ["observation.most_age=2", "observation.age_scale_ms=100"]))
    np.testing.assert_allclose(shorter.scales.age(ages), [0.0, 2.0, 2.0, 2.0, 2.0])


def test_prices_are_in_units_of_utility():
    """R16: a success is worth 1.2 · 80, a number of a status costs 4 · 0.5."""
    prices = site(PAPER).prices
    assert (prices.success, prices.per_number) == (96.0, 2.0)


def test_nodes_and_links_of_several_kinds():
    settings = ["sn.slots=[2, 6]", "sn.cycles_per_ms=[1000, 2000]"]
    settings += ["backhaul.up_mbps=[[9,8],[7,6],[5,4]]"]
    here = site(load("campus", settings))
    assert (len(here.en), len(here.sn)) == (3, 2)
    np.testing.assert_array_equal(here.sn.full_rate, [2000.0, 12000.0])
    np.testing.assert_array_equal(here.links.up_mbps, [[9, 8], [7, 6], [5, 4]])
    assert here.links.result_ms.shape == (3, 2)


def test_worlds_have_draws_of_their_own_that_their_number_decides():
    here = site_of(PAPER, [(3, 0), (3, 1), (4, 0)])
    assert (here.worlds, here.runs) == (3, tuple(map(run_digest, (3, 3, 4))))
    first, second, third = (each.random() for each in here.random(Purpose.DISPATCHER))
    assert len({first, second, third}) == 3
    [again] = site_of(PAPER, [(3, 1)]).random(Purpose.DISPATCHER)
    assert again.random() == second


def test_the_rate_that_is_expected_is_the_scenario_s_or_what_is_said():
    assert site(PAPER).tasks.rate == PAPER.workload.rate
    assert site(PAPER, rate=33.0).tasks.rate == 33.0
    assert site(load("paper", ["workload.arrivals=deterministic"])).tasks.squared_variation == 0.0
