"""When each node could work on each task of an episode, at the earliest and at the latest."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosmo.node import Links
from cosmo.node.units import BYTES_PER_MS, transfer_ms
from cosmo.scenario import Scenario
from cosmo.workload import Episode
from cosmo.workload.table import RETURNS, SPEED, NodeEvents
from cosmo.world import Worlds, site_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

_HAIR_MS = 1e-6  # added to windows: rounding in the world must not count against a bound


@dataclass(frozen=True, slots=True)
class Windows:
    """Pairs of a task and a node that can serve it in time, one a row; nodes are ENs, then SNs."""

    task: Ints
    node: Ints
    slots: Ints  # of the node
    from_ms: Floats  # the input can be there
    until_ms: Floats  # it must be done
    service_ms: Floats  # at most until_ms - from_ms


def service_windows(scenario: Scenario, episode: Episode, chosen: Bools) -> Windows:
    """Of the chosen tasks of an episode, as if all links were idle, on the embedded engine.

    A task that never reaches its EN has none (R4).
    """
    tasks, site = episode.tasks, site_of(scenario)
    decided = decision_times_ms(scenario, episode)
    due = tasks.time_ms + tasks.deadline_ms
    found = []
    for en in range(len(site.en)):
        own = np.flatnonzero(chosen & (tasks.en == en) & ~np.isnan(decided))
        start, end = decided[own], due[own]
        nodes = [(en, site.en.slots[en], site.en.cycles_per_ms[en], start, end)]
        for column in np.flatnonzero(site.links.exist[en]).tolist():
            sn = site.links.reach[en, column]
            up, down = (_Way(scenario, site.links, episode, each, en, column) for each in (0, 1))
            there = up.earliest_ms(start, end, tasks.input_bytes[own])
            back = down.latest_ms(start, end, np.full(len(own), site.links.result_bytes))
            number = len(site.en) + sn
            nodes.append((number, site.sn.slots[sn], site.sn.cycles_per_ms[sn], there, back))
        for node, slots, speed, first, last in nodes:
            first, last, service = first - _HAIR_MS, last + _HAIR_MS, tasks.work_cycles[own] / speed
            first, last = (nominal_ms(episode.events, node, time) for time in (first, last))
            fits = last - first >= service
            same = np.ones(int(fits.sum()), np.int64)
            found.append(
                (own[fits], node * same, slots * same, first[fits], last[fits], service[fits])
            )
    return Windows(*(np.concatenate(column) for column in zip(*found, strict=True)))


def nominal_ms(events: NodeEvents, node: int, time_ms: Floats) -> Floats:
    """How long a node would have to run at its nominal speed to do as much as it does until then.

    All changes of its speed (R37) and outages (R38) are known; work goes on after an outage, so
    that a bound is rather too high.
    """
    own = np.flatnonzero(events.node == node)
    if not len(own):
        return time_ms
    speed, up = 1.0, True
    times, done, pace = [0.0], [0.0], [1.0]
    for when, what, factor in zip(
        events.time_ms[own].tolist(), events.what[own].tolist(), events.factor[own].tolist(),
        strict=True,
    ):  # fmt: skip
        done.append(done[-1] + pace[-1] * (when - times[-1]))
        times.append(when)
        speed, up = (factor, up) if what == SPEED else (speed, what == RETURNS)
        pace.append(speed if up else 0.0)
    last = np.maximum(np.searchsorted(times, time_ms, side="right") - 1, 0)
    begun, before, speeds = (np.asarray(column)[last] for column in (times, done, pace))
    found: Floats = before + speeds * (time_ms - begun)
    return found


def decision_times_ms(scenario: Scenario, episode: Episode) -> Floats:
    """[task] when its EN decides, which no decision changes (R1, R6); NaN if it never does."""
    worlds = Worlds(scenario, [episode])
    turn = worlds.advance()
    while not turn.over:
        worlds.answer(action=np.full(len(turn.dispatch), turn.dispatch.reject))
        turn = worlds.advance()
    return worlds.outcome(0).decided_ms


class _Way:
    """One direction of a link, idle: 0 up, 1 down; its rate may change from step to step."""

    def __init__(
        self,
        scenario: Scenario,
        links: Links,
        episode: Episode,
        direction: int,
        en: int,
        column: int,
    ) -> None:
        nominal = (links.up_mbps, links.down_mbps)[direction][en, column]
        factors = episode.rate_factor[direction, scenario.links.first[en] + column]
        self._mbps = nominal * (factors if len(factors) else np.ones(1))
        self._period_ms = scenario.fading.period_ms
        self._hops, self._hop_delay_ms = links.hops[en, column], links.hop_delay_ms[en, column]
        self._packet_bytes = links.packet_bytes

    def earliest_ms(self, from_ms: Floats, until_ms: Floats, size: Floats) -> Floats:
        """[row] when a message that starts then or later is there at the earliest."""
        best = np.full(len(from_ms), np.inf)
        for begin, _, took in self._steps(from_ms, until_ms, size):
            best = np.minimum(best, np.maximum(from_ms, begin) + took)
        return best

    def latest_ms(self, from_ms: Floats, until_ms: Floats, size: Floats) -> Floats:
        """[row] when a message that is to be there by `until_ms` starts at the latest; -inf if
        none that starts at `from_ms` or later is.
        """
        best = np.full(len(from_ms), -np.inf)
        for begin, end, took in self._steps(from_ms, until_ms, size):
            start = np.minimum(end, until_ms - took)
            best = np.where(start >= begin, np.maximum(best, start), best)
        return best

    def _steps(
        self, from_ms: Floats, until_ms: Floats, size: Floats
    ) -> Iterator[tuple[Floats, Floats, Floats]]:
        """Steps of the rate that meet [from_ms, until_ms], one of each row at a time: its begin,
        its end, and how long a message takes in it.
        """
        last_step = len(self._mbps) - 1  # which has no end
        first, last = (
            np.minimum(time_ms // self._period_ms, last_step).astype(np.int64)
            for time_ms in (from_ms, until_ms)
        )
        for more in range(int((last - first).max(initial=0)) + 1):
            step = np.minimum(first + more, last_step)
            end = np.where(step < last_step, (step + 1) * self._period_ms, np.inf)
            yield step * self._period_ms, end, self._took_ms(size, self._mbps[step])

    def _took_ms(self, size: Floats, mbps: Floats) -> Floats:
        """[row] how long messages take at such rates (R13)."""
        found: Floats = transfer_ms(
            size, mbps * BYTES_PER_MS, self._hops, self._hop_delay_ms, self._packet_bytes
        )
        return found
