"""A batch of worlds on ns-3: a process each, and the same interface as the embedded engine's."""

import pickle
import weakref
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cosmo.ns3 import wire
from cosmo.ns3.library import compiled_network
from cosmo.ns3.process import Worker, give_back, take
from cosmo.scenario import Scenario
from cosmo.workload import Episode
from cosmo.world import Batch, Outcome
from cosmo.world.answers import fault
from cosmo.world.records import EN_TURN, OVER, RUNNING, SN_TURN, Records
from cosmo.world.turns import (
    EN_ROWS,
    FEEDBACK_ROWS,
    HOLDING,
    RIDE_ROWS,
    SETTLED_ROWS,
    SN_ROWS,
    UNFINISHED,
)


class Ns3Worlds(Batch):
    """Every world in a process of its own, in lockstep by decisions."""

    def __init__(
        self,
        scenario: Scenario,
        episodes: Sequence[Episode],
        status_dimensions: int = 0,
        rides: bool = False,
    ) -> None:
        super().__init__(scenario, episodes, status_dimensions, outside=True, rides=rides)
        self._rides = rides
        compiled_network()  # once, and what is missing is said here
        self._workers: list[Worker] = []
        weakref.finalize(self, give_back, self._workers)
        self._workers += [take() for _ in episodes]
        count = len(episodes)
        self._waits_for = np.full(count, RUNNING)
        self._row = np.zeros(count, np.int64)  # of the pending decision in the turn
        self._generated = np.zeros(count, np.int64)
        for world in range(count):
            self._workers[world].begin(scenario, self.episodes[world], status_dimensions, rides)
        for worker in self._workers:
            worker.hear(wire.READY)

    def _run(self) -> None:
        turn = self._turn
        counts, holding = turn.counts, turn.counts[HOLDING]
        self._refuse(fault.py_func(turn, holding))
        going = [
            world
            for world, waits_for in enumerate(self._waits_for.tolist())
            if waits_for != OVER and (holding == RUNNING or waits_for != holding)
        ]
        for world in going:
            row = int(self._row[world])
            self._workers[world].ask(wire.STEP, wire.answer_bytes(turn, row))
        # As the kernel does: rows of the kind that is held stay, new ones follow them.
        if holding != EN_TURN:
            counts[EN_ROWS] = 0
        if holding != SN_TURN:
            counts[SN_ROWS] = 0
        counts[RIDE_ROWS] = 0
        if holding == RUNNING:
            counts[SETTLED_ROWS] = counts[FEEDBACK_ROWS] = 0
        for world in going:
            self._take_turn(world, self._workers[world].hear(wire.TURN))
        counts[UNFINISHED] = int((self._waits_for != OVER).sum())

    def _take_turn(self, world: int, payload: bytes) -> None:
        counts = self._turn.counts
        rows = {kind: int(counts[count]) for kind, count in wire.ROWS.items()}
        told = wire.turn_into(self._turn, world, rows, payload)
        self._waits_for[world], self._generated[world] = told.waits_for, told.generated
        if told.waits_for != OVER:
            self._row[world] = rows[told.waits_for]
            counts[wire.ROWS[told.waits_for]] += 1
        turn = self._turn
        settled = _with(turn.settled, counts, SETTLED_ROWS, told.settled)
        feedback = _with(turn.seen.feedback, counts, FEEDBACK_ROWS, told.feedback)
        self._turn = turn._replace(seen=turn.seen._replace(feedback=feedback), settled=settled)

    def _behind_all(self, delay_ms: NDArray[np.float64], feasible: NDArray[np.bool_]) -> None:
        asked = np.flatnonzero(self._waits_for == EN_TURN).tolist()
        for world in asked:
            self._workers[world].ask(wire.BEHIND_ALL)
        for world in asked:
            told = self._workers[world].hear(wire.RESULT)
            row = self._row[world]
            delay_ms[row], feasible[row] = pickle.loads(told)  # of a process of our own

    def _restart(self, world: int) -> None:
        worker = self._workers[world]
        worker.begin(self.scenario, self.episodes[world], self._dimensions, self._rides)
        worker.hear(wire.READY)
        self._waits_for[world], self._generated[world] = RUNNING, 0

    def outcome(self, world: int) -> Outcome:
        """What has become of one world's tasks so far; complete once all is over."""
        self._workers[world].ask(wire.OUTCOME)
        told = pickle.loads(self._workers[world].hear(wire.RESULT))  # of a process of our own
        return Outcome(episode=self.episodes[world], **told)

    @property
    def over(self) -> NDArray[np.bool_]:
        """[world] whether it is over."""
        return np.asarray(self._waits_for == OVER)

    @property
    def generated(self) -> int:
        """Tasks of ENs that have entered all worlds so far: for progress."""
        return int(self._generated.sum())


def _with(room: Records, counts: NDArray[np.int64], count: int, rows: Records) -> Records:
    """`room` with further rows after the `counts[count]` that are there; larger if it must be."""
    first = counts[count]
    if first + len(rows) > len(room):
        more = np.zeros(2 * (len(room) + len(rows)), room.dtype)
        more[:first] = room[:first]
        room = more
    room[first : first + len(rows)] = rows
    counts[count] += len(rows)
    return room
