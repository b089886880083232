"""A network that is not ours: with one that follows R6 and R13, nothing may differ from ours."""

import heapq
import math

import numpy as np
import pytest

from cosmo.scenario import Scenario, load
from cosmo.workload import episode
from cosmo.world import Outcome, Worlds
from cosmo.world.events import EN_DECISION
from cosmo.world.records import DELIVERY, UNDECIDED

_HEADERS, _FRAME = 28, 2


class Twin:
    """R6 and R13 once more, in plain Python; loses the uplink of some tasks if told so."""

    def __init__(self, scenario: Scenario, lost: frozenset[int] = frozenset()) -> None:
        self._set, self._lost = scenario, lost
        self._air: dict[int, float] = {}
        self._links: dict[tuple[int, int], float] = {}
        self._under_way: list[tuple[float, int, int, int]] = []
        self._count = 0
        self._clock_ms = 0.0

    def exchange(self, posts, now_ms, until_ms):
        # It never runs past the world's next event, so that no message comes from its past.
        assert not len(posts) or self._clock_ms <= now_ms <= until_ms
        for post in posts:
            self._count += 1
            arrival = self._on_air(post, now_ms) if post["uplink"] else self._on_link(post, now_ms)
            if arrival is not None:
                entry = arrival, self._count, int(post["what"]), int(post["subject"])
                heapq.heappush(self._under_way, entry)
        if not self._under_way or self._under_way[0][0] > until_ms:
            self._clock_ms = until_ms
            return np.empty(0, DELIVERY), until_ms
        time, _, what, subject = heapq.heappop(self._under_way)
        self._clock_ms = time
        return np.array([(time, what, subject)], DELIVERY), time

    def _on_air(self, post, now: float) -> float | None:
        assert not post["down"]
        access, ues = self._set.access, len(self._set.mobility.distances_m)
        cell = int(post["place"]) // ues
        free = self._air.get(cell, 0.0)
        hold = access.overhead_ms + float(post["bytes"]) / (access.rate_mbps * 125.0)
        hold += access.contention_ms if free > now else 0.0
        self._air[cell] = max(now, free) + hold
        return None if int(post["subject"]) in self._lost else self._air[cell]

    def _on_link(self, post, now: float) -> float:
        links, backhaul = self._set.links, self._set.backhaul
        place, down = int(post["place"]), int(post["down"])
        rate = (links.down_mbps if down else links.up_mbps)[place] * 125.0
        size = float(post["bytes"])
        payload = backhaul.packet_bytes - _HEADERS
        wire = size + (_HEADERS + _FRAME) * math.ceil(size / payload)
        start = max(now, self._links.get((place, down), 0.0))
        self._links[place, down] = start + wire / rate
        last = min(size, payload) + _HEADERS + _FRAME
        hops, delay_ms = links.hops[place], links.hop_delay_ms[place]
        # In the order of the engine's own sum, so that not a bit differs.
        return start + (wire / rate + hops * delay_ms + (hops - 1) * (last / rate))


class Inside(Worlds):
    """Our own network, with the framing that one outside has."""

    def __init__(self, scenario, episodes, dimensions):
        super().__init__(scenario, episodes, dimensions)
        framed = self._constants.settings.copy()
        framed["packet_bytes"] -= _HEADERS
        framed["framing"] = _HEADERS + _FRAME
        self._constants = self._constants._replace(settings=framed)


def _play(worlds: Worlds, seed: int) -> tuple[list[Outcome], list[tuple[float, ...]]]:
    random = [np.random.default_rng([seed, world]) for world in range(len(worlds))]
    seen: list[tuple[float, ...]] = []
    turn = worlds.advance()
    while not turn.over:
        tasks, nodes, told = turn.dispatch, turn.update, turn.feedback
        seen += zip(told.world, told.task, told.fate, told.in_time, told.time_ms, strict=True)
        truth = worlds.truth()
        for row, world in enumerate(tasks.world.tolist()):
            numbers = truth.delay_ms[row], tasks.status[row].ravel(), tasks.en_state[row]
            seen.append((world, *tasks.up_backlog_ms[row], *np.concatenate(numbers)))
        worlds.answer(
            action=[int(random[world].integers(tasks.sns + 2)) for world in tasks.world],
            send=[bool(random[world].random() < 0.7) for world in nodes.world],
            interval_ms=[float(random[world].uniform(1.0, 60.0)) for world in nodes.world],
            numbers=nodes.sn_state[:, :4],
        )
        turn = worlds.advance()
    return [worlds.outcome(world) for world in range(len(worlds))], sorted(seen)


_SETTINGS = ("episode.window_ms=1500", "episode.warmup_ms=200")
_SHORT = ("episode.window_ms=150", "episode.warmup_ms=20")


def test_what_is_lost_on_the_air_has_no_decision():
    scenario = load("paper", [*_SHORT, "workload.rate=200"])
    world = episode(scenario, 1, 0)
    last = len(world.tasks) - 1
    lost = frozenset({3, 10, last})
    worlds = Worlds(scenario, [world], 4, networks=[Twin(scenario, lost)])
    [outcome], _ = _play(worlds, 2)
    undecided = set(np.flatnonzero(outcome.outcome == UNDECIDED).tolist())
    assert undecided == lost
    wait = scenario.episode.undecided_after_ms
    tasks = world.tasks
    for task in lost:
        assert outcome.action[task] == -1
        assert math.isnan(outcome.decided_ms[task])
        assert outcome.finished_ms[task] == tasks.time_ms[task] + tasks.deadline_ms[task] + wait


def test_what_comes_later_than_its_last_chance_has_no_decision():
    scenario = load("paper", [*_SHORT, "episode.undecided_after_ms=0"])
    world = episode(scenario, 1, 0)

    class Late(Twin):
        def _on_air(self, post, now):
            arrival = super()._on_air(post, now)
            task = int(post["subject"])
            assert post["what"] == EN_DECISION
            return arrival + (world.tasks.deadline_ms[task] if task % 7 == 0 else 0.0)

    worlds = Worlds(scenario, [world], 4, networks=[Late(scenario)])
    [outcome], _ = _play(worlds, 2)
    late = np.arange(len(world.tasks)) % 7 == 0
    np.testing.assert_array_equal(outcome.outcome == UNDECIDED, late)


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("shared-sn", [*_SHORT, "status.loss_probability=0.3", "status.jitter_ms=3"]),
        ("paper", ["workload.rate=320"]),
        ("campus", ["workload.arrivals=bursty"]),
        ("shared-sn", ["status.loss_probability=0.2", "status.jitter_ms=3"]),
        ("paper", ["backhaul.up_mbps=20", "backhaul.hops=3"]),
    ],
)
def test_a_network_outside_that_follows_the_model_changes_nothing(name, more):
    scenario = load(name, [*_SETTINGS, *more])
    episodes = [episode(scenario, seed, 0) for seed in range(3)]
    ours, seen = _play(Inside(scenario, episodes, 4), 5)
    theirs, seen_there = _play(
        Worlds(scenario, episodes, 4, networks=[Twin(scenario) for _ in episodes]), 5
    )
    assert seen == seen_there
    for one, other in zip(ours, theirs, strict=True):
        for field in ("action", "outcome", "decided_ms", "finished_ms", "took_feasible", "refused"):
            np.testing.assert_array_equal(getattr(one, field), getattr(other, field), field)
        assert (one.updates, one.update_decisions) == (other.updates, other.update_decisions)
        assert one.status == other.status


def test_every_world_needs_a_network_of_its_own():
    scenario = load("paper", _SETTINGS)
    episodes = [episode(scenario, 0, 0), episode(scenario, 1, 0)]
    with pytest.raises(ValueError, match="a network for each world"):
        Worlds(scenario, episodes, networks=[Twin(scenario)])
