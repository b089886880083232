"""What every engine offers: a batch of independent worlds that move from decision to decision."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from operator import itemgetter

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cosmo.node import DispatchObservation, Feedback, ResultObservation, UpdateObservation
from cosmo.scenario import Scenario
from cosmo.workload import Episode
from cosmo.world import layout
from cosmo.world.answers import BAD_ACTION, BAD_INTERVAL, BAD_NUMBERS
from cosmo.world.check import check_episode, check_size
from cosmo.world.outcome import Outcome
from cosmo.world.records import EN_TURN, RUNNING, SN_TURN
from cosmo.world.truth import Settled, Truth
from cosmo.world.turns import (
    EN_ROWS,
    FEEDBACK_ROWS,
    HOLDING,
    RIDE_ROWS,
    SETTLED_ROWS,
    SN_ROWS,
    UNFINISHED,
    Turn,
)

# Columns of records by the fields that they become, in their order.
_OF_FEEDBACK = itemgetter(*(each.name for each in fields(Feedback)))
_OF_SETTLED = itemgetter(*(each.name for each in fields(Settled)))


@dataclass(slots=True)
class Decisions:
    """Who must decide now: ENs on a task each, SNs on an update each, or on a status that may ride
    on a result; nobody once all is over.
    """

    dispatch: DispatchObservation
    update: UpdateObservation
    result: ResultObservation  # results that a status may ride on, if `rides` was asked for
    feedback: Feedback  # what ENs have heard of their tasks since the last turn
    over: bool


class Batch(ABC):
    """Independent worlds of one scenario, one for each episode, in lockstep by decisions.

    `status_dimensions` says how many numbers a status message carries; with 0 nobody sends any and
    SNs are never asked. With `rides`, SNs are also asked before each result leaves (R31). Two
    batches share nothing.
    """

    def __init__(
        self,
        scenario: Scenario,
        episodes: Sequence[Episode],
        status_dimensions: int = 0,
        outside: bool = False,
        rides: bool = False,
    ) -> None:
        if not episodes:
            raise ValueError("a batch needs at least one episode")
        if len({episode.window_ms for episode in episodes}) > 1:
            raise ValueError("all episodes of a batch must have the same window")
        check_size(scenario)
        for each in episodes:
            check_episode(scenario, each)
        self.scenario = scenario
        self.episodes = tuple(episodes)
        self._dimensions = status_dimensions
        window_ms = episodes[0].window_ms
        self._constants = layout.constants(
            scenario, window_ms, status_dimensions, outside, rides and status_dimensions > 0
        )
        self._turn = layout.blank_turn(self._constants, len(episodes))
        # Most turns ask one kind of node alone: of the others these are shown every time.
        self._no_dispatch = _dispatch(self._turn, 0)
        self._no_update = _update(self._turn, 0)
        self._no_result = _result(self._turn, 0)
        self._no_feedback = _feedback(self._turn, 0)

    def __len__(self) -> int:
        return len(self.episodes)

    def advance(self, hold: str = "") -> Decisions:
        """Carry out the answers to the last decisions and run every world on to its next one.

        With `hold` ("en" or "sn"), worlds that wait for such a decision stay where they are,
        unanswered; only the others go on. Rows that are held come first in what is returned;
        feedback and settled tasks include those returned before.
        """
        self.advance_buffers(hold)
        return self._decisions()

    def advance_buffers(self, hold: str = "") -> Turn:
        """The same for compiled callers, who read and answer in the turn's own arrays."""
        self._turn.counts[HOLDING] = {"": RUNNING, "en": EN_TURN, "sn": SN_TURN}[hold]
        self._run()
        self._unanswered()
        return self._turn

    def _unanswered(self) -> None:
        """Whoever is asked must answer."""
        turn = self._turn
        turn.answers.action[: turn.counts[EN_ROWS]] = -1
        turn.answers.interval_ms[: turn.counts[SN_ROWS]] = np.nan
        turn.answers.numbers[: turn.counts[SN_ROWS]] = np.nan
        turn.answers.ride[: turn.counts[RIDE_ROWS]] = False

    def keep_journal(self) -> bool:
        """Write down what happens inside of worlds, for `Outcome.journal`; False if this engine
        cannot.
        """
        return False

    def restart(self, world: int, episode: Episode) -> None:
        """Put a world that is over at the start of another episode; `advance` then runs it on."""
        if not self.over[world]:
            raise ValueError(f"world {world} is not over")
        check_episode(self.scenario, episode)
        if episode.window_ms != self.episodes[world].window_ms:
            raise ValueError("all episodes of a batch must have the same window")
        episodes = list(self.episodes)
        episodes[world] = episode
        self.episodes = tuple(episodes)
        self._restart(world)

    def answer(
        self,
        action: ArrayLike | None = None,
        send: ArrayLike | None = None,
        interval_ms: ArrayLike | None = None,
        numbers: ArrayLike | None = None,
        ride: ArrayLike | None = None,
        ride_numbers: ArrayLike | None = None,
    ) -> None:
        """Answer the pending decisions, row by row; they take effect with the next `advance()`.

        `send` is [row], to all ENs that the SN knows or none, or [row, k], to these (R31); columns
        without an EN do not count. `numbers` [row, d] are what a status carries, and count where
        one is sent. `ride` and `ride_numbers` likewise for results; none rides by default.
        """
        ens, sns = self._turn.counts[EN_ROWS], self._turn.counts[SN_ROWS]
        results = self._turn.counts[RIDE_ROWS]
        if action is not None:
            self._turn.answers.action[:ens] = action
        if send is not None:
            told = np.asarray(send)
            self._turn.answers.send[:sns] = told[:, None] if told.ndim == 1 else told
        if interval_ms is not None:
            self._turn.answers.interval_ms[:sns] = interval_ms
        if numbers is not None:
            self._turn.answers.numbers[:sns] = numbers
        if ride is not None:
            self._turn.answers.ride[:results] = ride
        if ride_numbers is not None:
            self._turn.answers.ride_numbers[:results] = ride_numbers

    def truth(self, behind_all: bool = False) -> Truth:
        """The true state behind the pending EN decisions, in their rows; not for policies (R15).

        With `behind_all`, delays and feasibility are those behind all tasks that are on their way
        to an SN, whoever sent them (R40).
        """
        found = self._turn.truth.rows(slice(self._turn.counts[EN_ROWS]))
        if not behind_all:
            return found
        delay, feasible = np.empty_like(found.delay_ms), np.empty_like(found.feasible)
        self._behind_all(delay, feasible)
        return found._replace(delay_ms=delay, feasible=feasible)

    def settled(self) -> Settled:
        """Tasks whose outcome became final since the last turn; not for policies (R15)."""
        rows = self._turn.settled[: self._turn.counts[SETTLED_ROWS]]
        return Settled(*_OF_SETTLED(rows))

    @abstractmethod
    def outcome(self, world: int) -> Outcome:
        """What has become of one world's tasks so far; complete once all is over."""

    @property
    @abstractmethod
    def over(self) -> NDArray[np.bool_]:
        """[world] whether it is over."""

    @property
    @abstractmethod
    def generated(self) -> int:
        """Tasks of ENs that have entered all worlds so far: for progress."""

    @property
    def turn(self) -> Turn:
        """The turn's own arrays, for compiled callers."""
        return self._turn

    @property
    def all_over(self) -> bool:
        """Whether nobody has anything left to decide."""
        return bool(self._turn.counts[UNFINISHED] == 0)

    @abstractmethod
    def _behind_all(self, delay_ms: NDArray[np.float64], feasible: NDArray[np.bool_]) -> None:
        """Fill in delays and feasibility as `truth` says."""

    @abstractmethod
    def _run(self) -> None:
        """Carry out the answers and fill in the next turn."""

    @abstractmethod
    def _restart(self, world: int) -> None:
        """Put a world at the start of its episode."""

    def _refuse(self, error: int) -> None:
        """Answers were bad; nothing has been carried out."""
        if error == BAD_ACTION:
            raise ValueError(
                f"actions must be whole numbers from 0 to {self.scenario.links.most_sns + 1}, and"
                " no SN that the EN does not reach"
            )
        if error == BAD_INTERVAL:
            raise ValueError("intervals must be greater than 0 ms")
        if error == BAD_NUMBERS:
            raise ValueError(f"a status must carry {self._dimensions} finite numbers")

    def _decisions(self) -> Decisions:
        turn, counts = self._turn, self._turn.counts
        ens, sns, results, told = counts[[EN_ROWS, SN_ROWS, RIDE_ROWS, FEEDBACK_ROWS]].tolist()
        return Decisions(
            dispatch=_dispatch(turn, ens) if ens else self._no_dispatch,
            update=_update(turn, sns) if sns else self._no_update,
            result=_result(turn, results) if results else self._no_result,
            feedback=_feedback(turn, told) if told else self._no_feedback,
            over=self.all_over,
        )


def _dispatch(turn: Turn, rows: int) -> DispatchObservation:
    task = turn.seen.dispatch[:rows]
    return DispatchObservation(
        world=task["world"],
        en=task["en"],
        ue=task["ue"],
        task=task["task"],
        time_ms=task["time_ms"],
        generated_ms=task["generated_ms"],
        input_bytes=task["input_bytes"],
        cycles=task["cycles"],
        deadline_ms=task["deadline_ms"],
        throughput_mbps=task["throughput_mbps"],
        throughput_trend_mbps=task["throughput_trend_mbps"],
        residual_ms=task["residual_ms"],
        en_state=task["en_state"],
        en_speed=task["en_speed"],
        local_wait_ms=task["local_wait_ms"],
        local_room=task["local_room"],
        sn=turn.seen.sn[:rows],
        status=turn.seen.status[:rows],
        status_ms=turn.seen.status_ms[:rows],
        up_link_mbps=turn.seen.up_link_mbps[:rows],
        up_backlog_ms=turn.seen.up_backlog_ms[:rows],
    )


def _update(turn: Turn, rows: int) -> UpdateObservation:
    status = turn.seen.update[:rows]
    return UpdateObservation(
        world=status["world"],
        sn=status["sn"],
        time_ms=status["time_ms"],
        sn_state=status["sn_state"],
        sn_speed=status["sn_speed"],
        up_since_ms=status["up_since_ms"],
        en=turn.seen.en[:rows],
        acknowledged=turn.seen.acknowledged[:rows],
        acknowledged_ms=turn.seen.acknowledged_ms[:rows],
        recent_delay_ms=status["recent_delay_ms"],
        recent_success=status["recent_success"],
        recent_failure=status["recent_failure"],
        down_link_mbps=turn.seen.down_link_mbps[:rows],
    )


def _result(turn: Turn, rows: int) -> ResultObservation:
    leaving = turn.seen.result[:rows]
    return ResultObservation(
        world=leaving["world"],
        sn=leaving["sn"],
        en=leaving["en"],
        time_ms=leaving["time_ms"],
        sn_state=leaving["sn_state"],
        sn_speed=leaving["sn_speed"],
        up_since_ms=leaving["up_since_ms"],
        acknowledged=turn.seen.result_acknowledged[:rows],
        acknowledged_ms=leaving["acknowledged_ms"],
    )


def _feedback(turn: Turn, rows: int) -> Feedback:
    return Feedback(*_OF_FEEDBACK(turn.seen.feedback[:rows]))
