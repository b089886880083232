"""The embedded engine: compiled, all in memory; its network may be another's."""

import math
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cosmo.scenario import Scenario
from cosmo.workload import Episode
from cosmo.world import kernel, layout
from cosmo.world.batch import Batch, Decisions
from cosmo.world.events import EN_DECISION, SN_DECISION
from cosmo.world.outcome import Outcome, StatusRecord
from cosmo.world.records import (
    ANY_FEASIBLE,
    EVENT,
    EXPIRED_THERE,
    JOURNAL,
    LOST_THERE,
    NEEDS_ROOM,
    NETWORK,
    OVER,
    REFUSED_THERE,
    RUNNING,
    SN_TURN,
    TAKEN,
    TOOK_FEASIBLE,
    Records,
    State,
)
from cosmo.world.turns import ERROR, HOLDING, STALLED

_FIRST_NOTES = 1024  # of a journal, which grows
_FARTHEST_MS = 1000.0  # that the network is asked to run at a time when nothing else is due


class Network(Protocol):
    """The network of one world, if it is not ours (see `outside.py`)."""

    def exchange(self, posts: Records, now_ms: float, until_ms: float) -> tuple[Records, float]:
        """Take messages (POST) at `now_ms` and run on until some have arrived, or to `until_ms`.

        Returns what has arrived (DELIVERY, of one instant), and how far it has come.
        """
        ...


class Worlds(Batch):
    """The embedded engine: a batch of independent worlds that move from decision to decision.

    Args:
        scenario: The scenario of all worlds.
        episodes: One world each; all have the same window.
        status_dimensions: How many numbers a status carries; 0: none is sent.
        networks: Networks outside, one a world, that messages travel through; none by default.
        rides: Whether SNs are also asked before each result leaves (R31).

    Raises:
        ValueError: If there is no episode, or windows or networks do not fit.
        InputError: In one line, for a site or an episode that is too large.

    """

    def __init__(
        self,
        scenario: Scenario,
        episodes: Sequence[Episode],
        status_dimensions: int = 0,
        networks: Sequence[Network] = (),
        rides: bool = False,
    ) -> None:
        super().__init__(scenario, episodes, status_dimensions, bool(networks), rides)
        if networks and len(networks) != len(episodes):
            raise ValueError("there must be a network for each world")
        self._networks = networks
        self._carries = status_dimensions > 0
        self._state = layout.initial_state(self._constants, episodes, self._carries)

    def decisions_now(self, world: int) -> int:
        """How many more decisions are due at the present instant, behind the pending one."""
        here = self._state.worlds[world]
        listed = self._state.events[world, : here["events"]]
        due: list[int] = listed["what"][listed["time"] == here["now"]].tolist()
        return due.count(EN_DECISION) + due.count(SN_DECISION)

    def fork(self) -> "Worlds":
        """A copy that stands where this one does and goes its own way from here on.

        Not with networks outside, which cannot be copied.
        """
        if self._networks:
            raise ValueError("worlds with a network outside cannot be copied")
        other = copy(self)
        other._state, other._turn = _copied(self._state), _copied(self._turn)
        return other

    def keep_journal(self) -> bool:
        """From now on write down when tasks are in nodes and when ENs take statuses; yes, it can.

        To be called before the first `advance`.
        """
        notes = np.zeros((len(self), _FIRST_NOTES), JOURNAL)
        self._state = self._state._replace(journal=notes)
        return True

    def run_compiled(self, run: Callable[..., None]) -> bool:
        """Let compiled code, `run(constants, state, turn)`, go on, which answers decisions itself;
        whether there is more to do. Not with networks outside.
        """
        if self._networks:
            raise ValueError("compiled rules do not go with a network outside")
        run(self._constants, self._state, self._turn)
        self._refuse(self._turn.counts[ERROR])
        if self._turn.counts[STALLED]:
            self._make_room()
            return True
        return not self.all_over

    @property
    def memory(self) -> State:
        """The arrays of all worlds: their size says how much memory a batch needs."""
        return self._state

    def advance_playing(self, play: Callable[..., None], hold: str = "") -> Decisions:
        """`advance` to the next SN decisions: ENs are answered by `play`, a compiled function of
        (constants, state, turn) that calls the kernel's own `advance`.
        """
        self._turn.counts[HOLDING] = {"": RUNNING, "sn": SN_TURN}[hold]
        self._run(play)
        self._unanswered()
        return self._decisions()

    def _run(self, play: Callable[..., None] | None = None) -> None:
        counts, advance = self._turn.counts, play or kernel.advance
        advance(self._constants, self._state, self._turn)
        while counts[STALLED]:
            waits_for = self._state.worlds["waits_for"]
            if (waits_for == NEEDS_ROOM).any():
                self._make_room()
            if self._networks:
                for world in np.flatnonzero(waits_for == NETWORK).tolist():
                    self._exchange(world)
            advance(self._constants, self._state, self._turn)
        self._refuse(counts[ERROR])

    def _exchange(self, world: int) -> None:
        """Hand over a world's messages, and hear what has arrived before its next event."""
        here = self._state.worlds[world]
        posts, now = self._state.posts[world, : here["posts"]], float(here["now"])
        until = min(float(here["horizon"]), max(now, float(here["network"])) + _FARTHEST_MS)
        told, clock = self._networks[world].exchange(posts, now, until)
        while int(self._state.worlds[world]["events"]) + len(told) > self._state.events.shape[1]:
            self._make_room()
        kernel.hear(self._constants, self._state, world, told, clock)

    def _behind_all(self, delay_ms: NDArray[np.float64], feasible: NDArray[np.bool_]) -> None:
        kernel.foresee_behind_all(self._constants, self._state, delay_ms, feasible)

    def _restart(self, world: int) -> None:
        if self._networks:
            raise ValueError("a world with a network outside cannot start again")
        self._state = layout.restarted(
            self._constants, self._state, world, self.episodes[world], self._carries
        )

    def outcome(self, world: int) -> Outcome:
        """What has become of one world's tasks so far; complete once all is over."""
        here = self._state.worlds[world]
        own = slice(here["first_task"], here["end_task"])
        rows = self._state.tasks[own]
        return Outcome(
            episode=self.episodes[world],
            action=rows["action"],
            outcome=rows["outcome"],
            decided_ms=rows["decided"],
            finished_ms=rows["clock"],
            any_feasible=(rows["marks"] & ANY_FEASIBLE) != 0,
            took_feasible=(rows["marks"] & TOOK_FEASIBLE) != 0,
            refused=(rows["marks"] & REFUSED_THERE) != 0,
            lost=(rows["marks"] & LOST_THERE) != 0,
            expired=(rows["marks"] & EXPIRED_THERE) != 0,
            noticed_ms=self._state.noticed_ms[own],
            updates=int(here["updates"]),
            rides=int(here["rides"]),
            status_bytes=float(here["status_bytes"]),
            update_decisions=int(here["update_decisions"]),
            status=self._status_record(world) if self._carries else None,
            journal=self._journal(world),
        )

    def _journal(self, world: int) -> Records | None:
        if self._state.journal.shape[1] == 0:
            return None
        here = self._state.worlds[world]
        found = self._state.journal[world, : here["noted"]].copy()
        of_task = found["what"] != TAKEN
        found["subject"][of_task] -= here["first_task"].astype(np.int32)
        return found

    def _status_record(self, world: int) -> StatusRecord:
        here, caches = self._state.worlds[world], self._state.caches[world]
        fixed = self._constants.settings[0]
        source = np.nan_to_num(caches["source"], nan=0.0)
        start = np.maximum(caches["counted_until"], fixed["warmup"])
        rest = 0.5 * ((fixed["window"] - source) ** 2 - (start - source) ** 2)
        area = caches["age_area"] + np.where(start < fixed["window"], rest, 0.0)
        falls, decisions = int(caches["falls"].sum()), int(here["decisions"])
        return StatusRecord(
            aoi_ms=float(area.mean() / (fixed["window"] - fixed["warmup"])),
            peak_aoi_ms=float(caches["age_peaks"].sum()) / falls if falls else math.nan,
            decision_age_ms=float(here["decision_age"]) / decisions if decisions else math.nan,
            decision_error=float(here["decision_error"]) / decisions if decisions else math.nan,
        )

    @property
    def over(self) -> NDArray[np.bool_]:
        """[world] whether it is over."""
        return np.asarray(self._state.worlds["waits_for"] == OVER)

    @property
    def generated(self) -> int:
        """Tasks of ENs that have entered all worlds so far: for progress."""
        worlds = self._state.worlds
        return int((worlds["next_task"] - worlds["first_task"]).sum())

    @property
    def update_decisions(self) -> tuple[int, float]:
        """Decisions of SNs in all worlds so far, and how far the first world has come, in ms."""
        worlds = self._state.worlds
        return int(worlds["update_decisions"].sum()), float(worlds["now"].max())

    def _make_room(self) -> None:
        """Room for events, messages or notices of tasks is used up: double all of it."""
        state, turn = self._state, self._turn
        seen = turn.seen._replace(feedback=_doubled(turn.seen.feedback))
        self._turn = turn._replace(seen=seen, settled=_doubled(turn.settled))
        events = np.concatenate([state.events, np.zeros(state.events.shape, EVENT)], axis=1)
        messages, carried = layout.with_more_messages(
            state.worlds, state.messages, state.carried, state.messages.shape[1]
        )
        self._state = state._replace(
            events=events, messages=messages, carried=carried, journal=_doubled(state.journal, 1)
        )


def _copied(arrays: Any) -> Any:
    """Arrays of their own in a (nested) named tuple of arrays."""
    if isinstance(arrays, np.ndarray):
        return arrays.copy()
    return type(arrays)(*map(_copied, arrays))


def _doubled(rows: Records, axis: int = 0) -> Records:
    return np.concatenate([rows, np.zeros_like(rows)], axis=axis)
