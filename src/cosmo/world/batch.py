"""A batch of independent worlds: `advance()` moves each to its next decision."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cosmo.scenario import Scenario
from cosmo.workload import Episode, Tasks
from cosmo.world import kernel, layout
from cosmo.world.check import check_episode
from cosmo.world.observation import DispatchObservation, Settled, Truth, UpdateObservation
from cosmo.world.records import EN_TURN, EVENT, OVER, RUNNING, SETTLED_ROW, SN_TURN, Turn


@dataclass(slots=True)
class Decisions:
    """Who must decide now: ENs on a task each, SNs on an update each; nobody once all is over."""

    dispatch: DispatchObservation
    update: UpdateObservation
    truth: Truth  # rows as in `dispatch`; not for policies
    settled: Settled
    over: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an episode's tasks, in the order of the workload.

    Actions are 0 local, 1..S offload, S+1 reject, -1 none; outcomes are the codes of
    `cosmo.world.records`; `feasible` has bit r set if route r was feasible at the decision.
    """

    episode: Episode
    action: NDArray[np.int8]
    outcome: NDArray[np.int8]
    decided_ms: NDArray[np.float64]  # NaN where there was no decision
    finished_ms: NDArray[np.float64]
    feasible: NDArray[np.uint32]
    refused: NDArray[np.bool_]  # the node had no room when the task reached it
    updates: int  # status messages sent
    update_decisions: int
    status: "StatusRecord | None" = None  # None if updates carry nothing

    @property
    def tasks(self) -> Tasks:
        """The tasks themselves."""
        return self.episode.tasks


@dataclass(frozen=True, slots=True)
class StatusRecord:
    """How fresh and how right the status at the ENs was, in the measured part of an episode."""

    aoi_ms: float  # time average of the age at an EN
    peak_aoi_ms: float  # mean of the age just before it falls; NaN if it never did
    decision_age_ms: float  # mean age at EN decisions
    decision_error: float  # mean of the largest normalised |true - cached| component at decisions
    decision_regret: float = math.nan  # share of decisions that a fresh status would have changed


class Worlds:
    """Independent worlds of one scenario, one for each episode, in lockstep by decisions.

    `status_dimensions` says how many numbers a status message carries; with 0 nobody sends any and
    SNs are never asked. Two batches share nothing.
    """

    def __init__(
        self, scenario: Scenario, episodes: Sequence[Episode], status_dimensions: int = 0
    ) -> None:
        if not episodes:
            raise ValueError("a batch needs at least one episode")
        if len({episode.window_ms for episode in episodes}) > 1:
            raise ValueError("all episodes of a batch must have the same window")
        for each in episodes:
            check_episode(scenario, each)
        self.scenario = scenario
        self.episodes = tuple(episodes)
        self._constants = layout.constants(scenario, episodes[0].window_ms, status_dimensions)
        self._state = layout.initial_state(self._constants, episodes, status_dimensions > 0)
        self._turn = layout.blank_turn(self._constants, len(episodes))
        self._carries = status_dimensions > 0

    def __len__(self) -> int:
        return len(self.episodes)

    def advance(self, hold: str = "") -> Decisions:
        """Carry out the answers to the last decisions and run every world on to its next one.

        With `hold` ("en" or "sn"), worlds that wait for such a decision stay where they are,
        unanswered; only the others go on. Rows that are held come first in what is returned, and
        the settled tasks include those told before.
        """
        self.advance_buffers(hold)
        return self._decisions()

    def advance_buffers(self, hold: str = "") -> Turn:
        """The same for compiled callers, who read and answer in the turn's own arrays."""
        held = {"": RUNNING, "en": EN_TURN, "sn": SN_TURN}[hold]
        self._turn.counts[kernel.HOLDING] = held
        kernel.advance(self._constants, self._state, self._turn)
        while self._turn.counts[kernel.FULL]:
            self._make_room()
            kernel.advance(self._constants, self._state, self._turn)
        error = self._turn.counts[kernel.ERROR]
        if error == kernel.BAD_ACTION:
            raise ValueError(
                f"actions must be whole numbers from 0 to {self.scenario.sn.count + 1}"
            )
        if error == kernel.BAD_INTERVAL:
            raise ValueError("intervals must be finite and greater than 0 ms")
        turn = self._turn
        # Whoever is asked must answer.
        turn.action[: turn.counts[kernel.EN_ROWS]] = -1
        turn.interval[: turn.counts[kernel.SN_ROWS]] = np.nan
        return turn

    def restart(self, world: int, episode: Episode) -> None:
        """Put a world that is over at the start of another episode; `advance` then runs it on."""
        if not self.over[world]:
            raise ValueError(f"world {world} is not over")
        check_episode(self.scenario, episode)
        if episode.window_ms != self.episodes[world].window_ms:
            raise ValueError("all episodes of a batch must have the same window")
        self._state = layout.restarted(self._constants, self._state, world, episode, self._carries)
        episodes = list(self.episodes)
        episodes[world] = episode
        self.episodes = tuple(episodes)

    def answer(
        self,
        action: ArrayLike | None = None,
        send: ArrayLike | None = None,
        interval_ms: ArrayLike | None = None,
    ) -> None:
        """Answer the pending decisions, row by row; they take effect with the next `advance()`."""
        ens, sns = self._turn.counts[kernel.EN_ROWS], self._turn.counts[kernel.SN_ROWS]
        if action is not None:
            self._turn.action[:ens] = action
        if send is not None:
            self._turn.send[:sns] = send
        if interval_ms is not None:
            self._turn.interval[:sns] = interval_ms

    def outcome(self, world: int) -> Outcome:
        """What has become of one world's tasks so far; complete once all is over."""
        here = self._state.worlds[world]
        rows = self._state.tasks[here["first_task"] : here["end_task"]]
        return Outcome(
            episode=self.episodes[world],
            action=rows["action"],
            outcome=rows["outcome"],
            decided_ms=rows["decided"],
            finished_ms=rows["clock"],
            feasible=rows["feasible"],
            refused=rows["refused"],
            updates=int(here["updates"]),
            update_decisions=int(here["update_decisions"]),
            status=self._status_record(world) if self._carries else None,
        )

    def _status_record(self, world: int) -> StatusRecord:
        here, caches = self._state.worlds[world], self._state.caches[world]
        fixed = self._constants.settings[0]
        source = np.maximum(caches["source"], 0.0)
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
        """Which worlds are."""
        return np.asarray(self._state.worlds["waits_for"] == OVER)

    @property
    def all_over(self) -> bool:
        """Whether nobody has anything left to decide."""
        return bool(self._turn.counts[kernel.UNFINISHED] == 0)

    @property
    def generated(self) -> int:
        """Tasks of ENs that have entered all worlds so far: for progress."""
        worlds = self._state.worlds
        return int((worlds["next_task"] - worlds["first_task"]).sum())

    def _make_room(self) -> None:
        """Events, messages or the list of settled tasks are used up: double them all."""
        state, settled = self._state, self._turn.settled
        more_settled = np.concatenate([settled, np.zeros(settled.shape, SETTLED_ROW)])
        self._turn = self._turn._replace(settled=more_settled)
        events = np.concatenate([state.events, np.zeros(state.events.shape, EVENT)], axis=1)
        more = state.messages.shape[1]
        messages = layout.with_more_messages(state.worlds, state.messages, more)
        self._state = state._replace(events=events, messages=messages)

    def _decisions(self) -> Decisions:
        turn = self._turn
        ens, sns = turn.counts[kernel.EN_ROWS], turn.counts[kernel.SN_ROWS]
        task, status = turn.dispatch[:ens], turn.update[:sns]
        settled = turn.settled[: turn.counts[kernel.SETTLED_ROWS]]
        dispatch = DispatchObservation(
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
            local_wait_ms=task["local_wait_ms"],
            local_room=task["local_room"],
            sn_state=turn.cached_state[:ens],
            sn_source_ms=turn.cached_source[:ens],
            up_link_mbps=turn.up_link[:ens],
            up_backlog_ms=turn.up_backlog[:ens],
        )
        update = UpdateObservation(
            world=status["world"],
            sn=status["sn"],
            time_ms=status["time_ms"],
            sn_state=status["sn_state"],
            acknowledged_state=turn.acknowledged_state[:sns],
            acknowledged_source_ms=turn.acknowledged_source[:sns],
            recent_delay_ms=status["recent_delay_ms"],
            recent_success=status["recent_success"],
            recent_failure=status["recent_failure"],
            down_link_mbps=turn.down_link[:sns],
        )
        return Decisions(
            dispatch=dispatch,
            update=update,
            truth=Truth(turn.estimate[:ens], turn.feasible[:ens], turn.true_state[:ens]),
            settled=Settled(
                world=settled["world"],
                task=settled["task"],
                en=settled["en"],
                action=settled["action"],
                outcome=settled["outcome"],
                time_ms=settled["time_ms"],
            ),
            over=self.all_over,
        )
