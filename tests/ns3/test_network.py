"""The packets of one world's network, message by message."""

import numpy as np
import pytest

from cosmo import load
from cosmo.ns3.library import library
from cosmo.ns3.network import Ns3Network
from cosmo.scenario.model import Wifi
from cosmo.workload import episode
from cosmo.world import Worlds
from cosmo.world.records import DELIVERY, POST


@pytest.fixture(autouse=True)
def one_simulator_a_process():
    yield
    library().cosmo_end()


def _network(scenario):
    return Ns3Network(scenario, episode(scenario, 0, 0))


def _arrivals(network, now, places, limit_ms=90.0, **fields):
    """Messages sent at once, one from each place: ms until each is there; NaN if it never is."""
    posts = np.zeros(len(places), POST)
    posts["place"], posts["subject"] = places, np.arange(len(places))
    for name, value in fields.items():
        posts[name] = value
    took, time = np.full(len(places), np.nan), now
    while np.isnan(took).any() and time < now + limit_ms:
        told, time = network.exchange(posts, time, now + limit_ms)
        took[told["subject"]] = told["time"] - now
        posts = posts[:0]
    return took


def _link_ms(scenario, size, mbps, hops=2, hop_delay_ms=1.0):
    """R13 on an idle link, with the packets' own headers."""
    backhaul, rate = scenario.backhaul, mbps * 125.0
    payload = backhaul.packet_bytes - 28
    wire, last = size + 30 * np.ceil(size / payload), min(size, payload) + 30
    return wire / rate + hops * hop_delay_ms + (hops - 1) * last / rate


def test_the_records_are_those_of_the_library():
    assert (POST.itemsize, DELIVERY.itemsize) == (32, 16)


def test_links_of_packets_follow_the_worlds_books():
    """R13 with the packets' own headers is what point-to-point links of ns-3 do, to some ns."""
    scenario = load("paper", ["backhaul.hops=3", "backhaul.up_mbps=20"])
    world = episode(scenario, 0, 0)
    network = Ns3Network(scenario, world)
    books = Worlds(scenario, [world], networks=[network])._constants.settings[0]
    now, free = 0.0, {0: 0.0, 1: 0.0}
    for number, (down, size) in enumerate([(0, 30000.0), (0, 64.0), (1, 1000.0), (1, 1480.0)]):
        rate = (192.0 if down else 20.0) * 125.0
        packets = np.ceil(size / books["packet_bytes"])
        wire = size + packets * books["framing"]
        last = min(size, books["packet_bytes"]) + books["framing"]
        sent = max(now, free[down])
        free[down] = sent + wire / rate
        expected = free[down] + 3 * 1.0 + 2 * last / rate
        posts = np.zeros(1, POST)
        posts["bytes"], posts["what"], posts["subject"], posts["down"] = size, 4, number, down
        told, now = network.exchange(posts, now, now + 500.0)
        assert told["subject"].tolist() == [number]
        assert told["time"][0] == pytest.approx(expected, abs=1e-4)


def test_every_link_has_its_own_rate_in_each_direction():
    up, down = (
        [[20.0, 60.0], [90.0, 50.0], [33.0, 44.0]],
        [[11.0, 22.0], [48.0, 88.0], [30.0, 70.0]],
    )
    scenario = load("campus", [f"backhaul.up_mbps={up}", f"backhaul.down_mbps={down}"])
    network = _network(scenario)
    for number, (is_down, rates) in enumerate([(0, up), (1, down)]):
        took = _arrivals(network, 100.0 * number, range(6), bytes=20000.0, down=is_down)
        expected = [_link_ms(scenario, 20000.0, rate) for row in rates for rate in row]
        np.testing.assert_allclose(took, expected, atol=1e-4)


def test_rates_change_as_the_episode_says():
    scenario = load("campus", ["fading.factors=[0.25, 1.0]", "fading.period_ms=100"])
    network, factors = _network(scenario), episode(scenario, 0, 0).rate_factor
    nominal = scenario.backhaul.up_mbps, scenario.backhaul.down_mbps
    for step in (0, 1, 7, 42):
        for down in (0, 1):
            took = _arrivals(
                network, 100.0 * step + 5 + 45 * down, range(6), 40.0, bytes=5000.0, down=down
            )
            rates = nominal[down] * factors[down, :, step]
            assert len(set(rates)) == 6
            expected = [_link_ms(scenario, 5000.0, rate) for rate in rates]
            np.testing.assert_allclose(took, expected, atol=1e-4)


def test_each_link_has_its_own_rate_hops_and_delay():
    scenario = load(
        "campus",
        [
            "backhaul.reach=[[0], [0, 1], [1]]",
            "backhaul.links=[{sn = 1, hops = 4, hop_delay_ms = 3}, {en = 2, down_mbps = 20}]",
        ],
    )
    links, network = scenario.links, _network(scenario)
    assert links.hops.tolist() == [2, 2, 4, 4]
    for down, rates in ((0, links.up_mbps), (1, links.down_mbps)):
        took = _arrivals(network, 5.0 + 45 * down, range(4), 40.0, bytes=5000.0, down=down)
        expected = [
            _link_ms(scenario, 5000.0, *each)
            for each in zip(rates, links.hops, links.hop_delay_ms, strict=True)
        ]
        np.testing.assert_allclose(took, expected, atol=1e-4)


def test_only_ues_of_one_cell_contend():
    scenario = load("campus")
    [first], [other] = (
        _arrivals(_network(scenario), 0.0, [ue], bytes=30000.0, uplink=1) for ue in (0, 5)
    )
    together = _arrivals(_network(scenario), 0.0, [0, 5], bytes=30000.0, uplink=1)
    np.testing.assert_array_equal(together, [first, other])
    neighbours = _arrivals(_network(scenario), 0.0, [0, 1], bytes=30000.0, uplink=1)
    assert neighbours.max() > 1.8 * first


def _idle_uplink(*settings):
    """Of the largest input of the paper's tasks; a UE's first one also agrees on aggregates."""
    network = _network(load("paper", settings))
    for now in (0.0, 100.0):
        [took] = _arrivals(network, now, [0], bytes=50000.0, uplink=1)
    return took


# What every field of `wifi` does to a task that finds the channel idle.
SLOWER = {
    "channel_mhz": 20,
    "mcs": 6,
    "rts": "true",
    "ampdu_bytes": 20000,
    "datagram_bytes": 700,
    "queue_packets": 10,  # of 34, which wait in front of it
    "transport": "tcp",
}
FASTER = {"short_guard_interval": "true"}
LOST = {"queue_ms": 0.01}


def test_every_field_of_wifi_counts():
    assert {*SLOWER, *FASTER, *LOST} == set(Wifi.model_fields)
    plain = _idle_uplink()
    took = {
        name: _idle_uplink(f"wifi.{name}={value}")
        for name, value in (SLOWER | FASTER | LOST).items()
    }
    assert [name for name in SLOWER if not took[name] > 1.02 * plain] == []
    assert [name for name in FASTER if not took[name] < 0.98 * plain] == []
    assert [name for name in LOST if not np.isnan(took[name])] == []
