"""The network of one world in ns-3, for the process that holds it."""

import ctypes

import numpy as np
from numpy.typing import NDArray

from cosmo.ns3.library import Settings, library
from cosmo.scenario import Scenario
from cosmo.workload import Episode
from cosmo.world.records import DELIVERY, Records
from cosmo.world.walks import walks

_ROOM = 256  # arrivals reported at a time

# As in `cpp/interface.h`.
LINK = np.dtype(
    [
        *((name, "f8") for name in ("up_mbps", "down_mbps", "hop_delay_ms")),
        *((name, "i4") for name in ("en", "sn", "hops", "first_hop")),
    ],
    align=True,
)


class Ns3Network:
    """Cells, relays and links of a scenario, at the start of an episode.

    A process has one simulator: a new network puts an end to the one before.
    """

    def __init__(self, scenario: Scenario, episode: Episode) -> None:
        self._library = library()
        self._told = np.zeros(_ROOM, DELIVERY)
        self._clock = np.zeros(1)
        links = _links(scenario)
        factors = np.ascontiguousarray(episode.rate_factor, np.float64)
        walks = _walks(scenario)
        settings = _settings(scenario, episode)
        if self._library.cosmo_begin(
            ctypes.addressof(settings), *(each.ctypes.data for each in (links, factors, walks))
        ):
            raise RuntimeError(self._library.cosmo_error().decode())

    def exchange(self, posts: Records, now_ms: float, until_ms: float) -> tuple[Records, float]:
        """Take messages at `now_ms` and run on until some have arrived, or to `until_ms`."""
        count = self._library.cosmo_exchange(
            *(posts.ctypes.data, len(posts), now_ms, until_ms),
            *(self._told.ctypes.data, _ROOM, self._clock.ctypes.data),
        )
        if count < 0:
            raise RuntimeError(self._library.cosmo_error().decode())
        if count == 0:
            return self._told[:0], until_ms  # its clock has whole nanoseconds
        return self._told[:count], max(float(self._clock[0]), now_ms)


def _settings(scenario: Scenario, episode: Episode) -> Settings:
    wifi, backhaul = scenario.wifi, scenario.backhaul
    return Settings(
        ens=scenario.en.count,
        sns=scenario.sn.count,
        ues=len(scenario.mobility.distances_m),
        links=len(scenario.links),
        packet_bytes=int(backhaul.packet_bytes),
        channel_mhz=wifi.channel_mhz,
        mcs=wifi.mcs,
        short_guard=wifi.short_guard_interval,
        rts=wifi.rts,
        ampdu_bytes=wifi.ampdu_bytes,
        datagram_bytes=wifi.datagram_bytes,
        queue_packets=wifi.queue_packets,
        tcp=wifi.transport == "tcp",
        rate_steps=episode.rate_factor.shape[-1],
        queue_ms=wifi.queue_ms,
        rate_period_ms=scenario.fading.period_ms,
        run=episode.network_seed,
    )


def _links(scenario: Scenario) -> Records:
    between = scenario.links
    found = np.zeros(len(between), LINK)
    for name in ("up_mbps", "down_mbps", "hop_delay_ms", "en", "sn", "hops"):
        found[name] = getattr(between, name)
    found["first_hop"] = np.cumsum(between.hops) - between.hops
    return found


def _walks(scenario: Scenario) -> NDArray[np.float64]:
    """[UE, (x, y, m/s, first turn in ms, ms between turns)] as `cpp/cell.h` wants it."""
    found = walks(scenario.mobility, scenario.ues_stay)
    speed = np.full(len(found.crossing), scenario.mobility.speed_m_per_s)
    turn = np.where(found.crossing > 0.0, found.edge, 0.0)  # the edge may never be reached
    return np.column_stack([-found.ahead_m, found.aside_m, speed, turn, found.crossing])
