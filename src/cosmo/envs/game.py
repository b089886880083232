"""One side of the world played by an agent from outside, the other by a method of the registry.

Many worlds at once: each stands at a decision of the agent's side. An agent acts for all nodes of
its kind, one decision at a time.
"""

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from cosmo.control.compiled import EnPlayer, en_player
from cosmo.control.compiled_rows import with_compiled_rows
from cosmo.control.play import dispatched, encoded, ridden, updated
from cosmo.control.update_intervals import IntervalCheck, check_intervals
from cosmo.engine import worlds as start
from cosmo.envs.ledger import Ledger, finished_metrics
from cosmo.node import (
    NOTHING,
    RAW,
    DispatchObservation,
    Feedback,
    Method,
    ResultObservation,
    Site,
    UpdateObservation,
    Updater,
)
from cosmo.node.guard import ask, made_dispatcher, made_updater
from cosmo.policy.views import EnView, SnView
from cosmo.scenario import Scenario
from cosmo.workload import episode
from cosmo.world import Batch, Decisions, Settled, Worlds, site_of

Floats = NDArray[np.float32]
Observation = TypeVar("Observation", DispatchObservation, UpdateObservation, ResultObservation)


def rows_of(seen: Observation, chosen: NDArray[np.bool_]) -> Observation:
    """Some rows of an observation."""
    parts: dict[str, Any] = {
        field.name: value[chosen]
        for field in fields(seen)
        if isinstance(value := getattr(seen, field.name), np.ndarray)
    }
    return replace(seen, **parts)


class Opponents:
    """A method's side in worlds that restart at their own times.

    All worlds in their g-th episode share one dispatcher or updater, made for that episode; at any
    time there are but two or three of them.
    """

    def __init__(self, make: Callable[[int], Any], worlds: int) -> None:
        self._make, self.generation = make, np.zeros(worlds, np.int64)
        self._made: dict[int, Any] = {}

    def restart(self, world: int) -> None:
        """It is in its next episode now."""
        self.generation[world] += 1
        oldest = int(self.generation.min())
        self._made = {number: made for number, made in self._made.items() if number >= oldest}

    def of(self, world: int) -> Any:
        """The opponent of a world."""
        return self._of(int(self.generation[world]))

    def _of(self, generation: int) -> Any:
        if generation not in self._made:
            self._made[generation] = self._make(generation)
        return self._made[generation]

    def each(self, seen: Any) -> list[tuple[Any, Any, Any]]:
        """(opponent, its rows, which rows these are) of an observation."""
        if not len(seen):
            return []
        generations = self.generation[seen.world]
        first = int(generations[0])
        if (generations == first).all():
            return [(self._of(first), seen, slice(None))]
        return [
            (self._of(int(number)), rows_of(seen, generations == number), generations == number)
            for number in np.unique(generations)
        ]


class Game:
    """What both sides share. Runs are seeded world by world: episode g of run `seeds[world]`."""

    def __init__(self, scenario: Scenario, method: Method, dimensions: int) -> None:
        self.scenario, self.method, self._dimensions = scenario, method, dimensions
        self._compiled: EnPlayer | None = None  # the other side, if it can be
        self.site = site_of(scenario)

    def begin(self, seeds: Sequence[int], numbers: Sequence[int]) -> Floats:
        """All worlds at the start of their episodes; what the agent sees in each."""
        self._seeds, self._numbers = list(seeds), list(numbers)
        episodes = [
            episode(self.scenario, seed, number)
            for seed, number in zip(seeds, numbers, strict=True)
        ]
        self.__dict__.pop("worlds", None)  # what they hold can be used again
        self.worlds = start(self.scenario, episodes, self._dimensions, self.rides)
        if self.keeps_journal:
            self.worlds.keep_journal()
        self.ledger = Ledger(self.scenario, episodes, self._dimensions)
        self.opponents = Opponents(self._opponent, len(episodes))
        for world, chosen in enumerate(episodes):
            self._started(world, chosen.tasks.most_of_an_en)
        self.seen = np.zeros((len(episodes), len(self.view.names)), np.float32)
        self.time_ms = np.zeros(len(episodes))
        self._reward = np.zeros(len(episodes))
        self.final: list[tuple[Settled, Any]] = []
        self._to_agent(self._advance(""))
        return self.seen

    def _site(self, generation: int) -> Site:
        numbers = [number + generation for number in self._numbers]
        return site_of(self.scenario, list(zip(self._seeds, numbers, strict=True)))

    def restart(self, worlds: NDArray[np.int64]) -> None:
        """Worlds that are over go on with the next episodes of their runs."""
        for world in worlds.tolist():
            self.opponents.restart(world)
            number = self._numbers[world] + int(self.opponents.generation[world])
            chosen = episode(self.scenario, self._seeds[world], number)
            self.worlds.restart(world, chosen)
            self.ledger.restart(world, chosen)
            self._started(world, chosen.tasks.most_of_an_en)
        self._to_agent(self._advance(self.side))

    def step(self, action: NDArray[np.int64]) -> tuple[Floats, NDArray[np.float64]]:
        """Act in every world that is not over; (what the agent sees then, what it has earned)."""
        self._reward[:] = 0.0
        self.final.clear()
        self._answer(action)
        self._to_agent(self._advance(""))
        return self.seen, self._reward

    def _advance(self, hold: str) -> Decisions:
        if not hold:
            self._earned = self._heard = 0  # the lists of what became of tasks start anew
        return self.worlds.advance(hold)

    def metrics(self, world: int) -> dict[str, float]:
        """How good the episode of a world that is over was (see `finished`)."""
        return finished_metrics(self.scenario, self.worlds, world, self._dimensions)

    def _earn(self) -> None:
        """Rewards of what became final since the last look."""
        settled = self.worlds.settled()
        if len(settled) > self._earned:
            added = rows_from(settled, self._earned)
            self._earned = len(settled)
            gained = self.ledger.utilities(added)
            np.add.at(self._reward, added.world, gained)
            self.final.append((added, gained))

    def _to_agent(self, turn: Decisions) -> None:
        """Let the other side play until every world waits for the agent or is over."""
        raise NotImplementedError

    def _started(self, world: int, tasks: int) -> None:
        """A world is at the start of an episode of so many tasks of an EN."""

    def _answer(self, action: NDArray[np.int64]) -> None:
        raise NotImplementedError

    def _opponent(self, generation: int) -> Any:
        raise NotImplementedError

    rides = False  # whether statuses may ride on results
    keeps_journal = False  # of what happens inside of nodes, for a recording
    side: str
    turn: Decisions  # who waits for the agent
    view: Any  # EnView or SnView
    actions: int
    _earned = 0  # settled tasks in the turn that have been looked at
    _heard = 0  # feedback in the turn that has been passed on


def rows_from(told: Any, start: int) -> Any:
    """Copies of settled tasks, or of feedback, from a row on."""
    # Not `fields`, which takes as long as copying what is in them.
    return type(told)(*(getattr(told, name)[start:].copy() for name in told.__dataclass_fields__))


class DispatchGame(Game):
    """The agent decides on tasks; a method's updater sends status."""

    side = "en"

    def __init__(self, scenario: Scenario, method: Method) -> None:
        super().__init__(scenario, method, method.carries)
        sends = method.carries > NOTHING
        raw = method.carries == RAW and made_updater(method, self.site).sends_raw
        self.view = EnView(self.site, method.carries if sends and not raw else 0)
        self.actions = 2 + scenario.links.most_sns
        self.rides = method.carries > NOTHING and made_updater(method, self.site).rides
        self.sent: Callable[[UpdateObservation, Any, Any], None] | None = None  # hears of updates

    def _opponent(self, generation: int) -> Any:
        return made_updater(self.method, self._site(generation))

    def _to_agent(self, turn: Decisions) -> None:
        pace = IntervalCheck(self.method, self.scenario.sn.count, len(self.worlds))
        while len(turn.update) or len(turn.result):
            pace.note(turn.update)
            self._answer_results(turn.result)
            send = np.zeros((len(turn.update), turn.update.ens), np.bool_)
            interval_ms = np.ones(len(turn.update))
            numbers = np.zeros((len(turn.update), self._dimensions))
            for updater, nodes, rows in self.opponents.each(turn.update):
                send[rows], interval_ms[rows], numbers[rows] = updated(self.method, updater, nodes)
            if self.sent is not None and len(turn.update):
                self.sent(turn.update, send, interval_ms)
            self.worlds.answer(send=send, interval_ms=interval_ms, numbers=numbers)
            turn = self._advance("en")
        self._earn()
        tasks = turn.dispatch
        self.turn = turn
        self.seen[:] = 0.0
        if len(tasks):
            self.seen[tasks.world] = self.view.of(tasks)
            self.time_ms[tasks.world] = tasks.time_ms

    def _answer_results(self, results: ResultObservation) -> None:
        ride = np.zeros(len(results), np.bool_)
        numbers = np.zeros((len(results), self._dimensions))
        for updater, some, rows in self.opponents.each(results):
            ride[rows], numbers[rows] = ridden(self.method, updater, some)
        self.worlds.answer(ride=ride, ride_numbers=numbers)

    def _answer(self, action: NDArray[np.int64]) -> None:
        self.worlds.answer(action=action[self.turn.dispatch.world])


class UpdateGame(Game):
    """The agent decides on updates; a method's dispatcher decides on tasks."""

    side = "sn"

    def __init__(self, scenario: Scenario, method: Method, intervals_ms: Sequence[float]) -> None:
        dimensions = RAW if method.carries == NOTHING else method.carries
        super().__init__(scenario, method, dimensions)
        self.view = SnView(self.site, dimensions)
        check_intervals(intervals_ms)
        self._intervals_ms = np.array(intervals_ms)
        self.actions = 2 * len(intervals_ms)
        # Rules that hear nothing decide alike in every episode, but for their draws.
        self._compiled = en_player(made_dispatcher(method, self.site))

    def _opponent(self, generation: int) -> Any:
        return _Opponent(self.method, self._site(generation))

    def _started(self, world: int, tasks: int) -> None:
        if self._compiled is not None and self._compiled.has_draws:
            self._compiled.start(world, self.opponents.of(world).dispatcher, tasks)

    def _advance(self, hold: str) -> Decisions:
        play = self._compiled
        if play is None or not isinstance(self.worlds, Worlds):
            return super()._advance(hold)
        if not hold:
            self._earned = self._heard = 0
        return self.worlds.advance_playing(play, hold)

    def _to_agent(self, turn: Decisions) -> None:
        self._tell(turn)
        while len(turn.dispatch):
            action = np.zeros(len(turn.dispatch), np.int64)
            for opponent, tasks, rows in self.opponents.each(turn.dispatch):
                action[rows] = opponent.act(tasks, self.worlds, rows)
            self.worlds.answer(action=action)
            turn = self._advance("sn")
            self._tell(turn)
        nodes = turn.update
        self.turn = turn
        self.seen[:] = 0.0
        if len(nodes):
            self.seen[nodes.world] = self.view.of(nodes)
            self.time_ms[nodes.world] = nodes.time_ms

    def _tell(self, turn: Decisions) -> None:
        """Rewards of what became final; dispatchers that learn from outcomes receive them."""
        self._earn()
        if self._compiled is None and len(turn.feedback) > self._heard:
            added = rows_from(turn.feedback, self._heard)
            self._heard = len(turn.feedback)
            for opponent, rows, _ in self.opponents.each(added):
                opponent.hear(rows)

    def _answer(self, action: NDArray[np.int64]) -> None:
        chosen = action[self.turn.update.world]
        choices = len(self._intervals_ms)
        send = chosen < choices
        price = self.ledger.update_price[self.turn.update.sn[send]]
        np.subtract.at(self._reward, self.turn.update.world[send], price)
        numbers = np.zeros((len(chosen), self._dimensions))
        for opponent, nodes, rows in self.opponents.each(self.turn.update):
            numbers[rows] = opponent.encoded(nodes, send[rows])
        interval_ms = self._intervals_ms[chosen % choices]
        self.worlds.answer(send=send, interval_ms=interval_ms, numbers=numbers)


class _Opponent:
    """A method at the ENs, and what a status to them is made of at the SNs."""

    def __init__(self, method: Method, site: Site) -> None:
        self._method = method
        self.dispatcher = with_compiled_rows(made_dispatcher(method, site))
        self._updater = Updater() if method.carries == NOTHING else made_updater(method, site)
        self._carries = RAW if method.carries == NOTHING else method.carries

    def act(self, tasks: DispatchObservation, worlds: Batch, rows: Any) -> NDArray[np.int64]:
        """[row] the method's action for each task: 0 local, k the k-th SN, beyond them reject."""
        return dispatched(self._method, self.dispatcher, tasks, worlds, rows)

    def hear(self, feedback: Feedback) -> None:
        """What became of the ENs' tasks."""
        ask(self._method, self.dispatcher.observe, feedback)

    def encoded(self, nodes: UpdateObservation, send: NDArray[np.bool_]) -> NDArray[np.float64]:
        """[row, d] numbers of those that send."""
        return encoded(self._method, self._updater, nodes.states, send, self._carries)
