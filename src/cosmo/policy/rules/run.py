"""Rules as dispatchers and updaters: the scalar functions over the rows of a batch.

A node has NumPy alone and mostly one row. Python indexes memory views and computes with its own
floats several times as fast as with arrays and NumPy's scalars, so that is what rules are handed.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosmo.node import (
    RAW,
    Dispatcher,
    DispatchObservation,
    Feedback,
    ResultObservation,
    Site,
    SnStates,
    UpdateObservation,
    Updater,
)
from cosmo.policy.draws import BLOCK, DrawPerTask
from cosmo.policy.rules.site import Known

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Remark = Callable[[Any], str]  # of a state, for people; empty if there is nothing to say


def raw(world: Any, sn: Any, own: Any, state: Any, numbers: Any) -> None:
    """A status is the SN's raw state: N, W, B, M."""
    for field in range(RAW):
        numbers[field] = own[field]


@dataclass(frozen=True)
class EnRule:
    """How ENs decide. `seen` has rows of tasks, `state` is the rule's own, of named arrays."""

    decide: Callable[..., Any]  # (seen, state, row) -> action; may change the state
    choose: Callable[..., Any] | None = None  # the same without any effect, if it can tell
    hear: Callable[..., Any] | None = None  # (fact, state): what became of a task of an EN
    note: Callable[..., Any] | None = None  # (seen, state, row, action): what was decided

    @property
    def forgets(self) -> bool:
        """Whether it remembers nothing."""
        return self.decide is self.choose


@dataclass(frozen=True)
class SnRule:
    """How SNs decide. `seen` has rows of SNs, `answers` takes what is decided."""

    send: Callable[..., Any]  # (seen, answers, state, row): fills in `send` and `interval_ms`
    encode: Callable[..., Any] = raw  # (world, sn, own state, state, numbers): fills them in
    ride: Callable[..., Any] | None = None  # (result, state) -> whether a status rides on it
    # (node, state): what is remembered of an SN is as at the start, as it has failed (R38)
    forget: Callable[..., Any] | None = None


class Task(NamedTuple):
    """A row of `DispatchObservation`; the other arrays of it are [row, k]."""

    world: int
    en: int
    task: int
    time_ms: float
    generated_ms: float
    input_bytes: float
    cycles: float
    deadline_ms: float
    en_state: list[float]
    local_wait_ms: float
    local_room: bool


class SeenTasks(NamedTuple):
    """What ENs see of tasks."""

    dispatch: Any  # a `Task` for each row
    sn: Any
    status: Any
    status_ms: Any
    up_link_mbps: Any
    up_backlog_ms: Any


class Node(NamedTuple):
    """A row of `UpdateObservation` or of `ResultObservation`."""

    world: int
    sn: int
    time_ms: float
    sn_state: list[float]
    up_since_ms: float = 0.0
    en: int = -1  # whom a result is for


class SeenNodes(NamedTuple):
    """What SNs see when they decide on updates."""

    update: list[Node]
    en: Any
    acknowledged: Any
    acknowledged_ms: Any


class UpdateAnswers(NamedTuple):
    """Room for the answers of SNs."""

    send: Any
    interval_ms: Any


class Fact(NamedTuple):
    """A row of `Feedback`."""

    world: int
    en: int
    task: int
    action: int
    fate: int
    in_time: bool
    time_ms: float


_OF_FACT = attrgetter(*Fact._fields)


def plain(state: Any) -> Any:
    """The same named arrays as memory views, which Python reads and writes fastest."""
    if isinstance(state, np.ndarray):
        return state.data
    if isinstance(state, tuple):
        return type(state)(*map(plain, state))
    return state


def seen_tasks(tasks: DispatchObservation) -> SeenTasks:
    """What a rule is handed of a batch of tasks."""
    rows = zip(
        tasks.world.tolist(),
        tasks.en.tolist(),
        tasks.task.tolist(),
        tasks.time_ms.tolist(),
        tasks.generated_ms.tolist(),
        tasks.input_bytes.tolist(),
        tasks.cycles.tolist(),
        tasks.deadline_ms.tolist(),
        tasks.en_state.tolist(),
        tasks.local_wait_ms.tolist(),
        tasks.local_room.tolist(),
        strict=True,
    )
    return SeenTasks(
        list(map(Task._make, rows)),
        tasks.sn.data,
        tasks.status.data,
        tasks.status_ms.data,
        tasks.up_link_mbps.data,
        tasks.up_backlog_ms.data,
    )


def seen_nodes(nodes: UpdateObservation) -> SeenNodes:
    """What a rule is handed of a batch of SNs."""
    rows = zip(
        nodes.world.tolist(),
        nodes.sn.tolist(),
        nodes.time_ms.tolist(),
        nodes.sn_state.tolist(),
        nodes.up_since_ms.tolist(),
        strict=True,
    )
    return SeenNodes(
        [Node(*row) for row in rows],
        nodes.en.data,
        nodes.acknowledged.data,
        nodes.acknowledged_ms.data,
    )


def has_returned(node: Any) -> Any:
    """Whether an SN comes back at this moment: it is asked as at the start (R38)."""
    return node.up_since_ms > 0.0 and node.up_since_ms == node.time_ms


class RuleDispatcher(Dispatcher):
    """A rule at the ENs of a site. A state with `draws` (`tie_draws`) gets uniform ones; `remark`
    makes of it what people should know.
    """

    def __init__(self, site: Site, rule: EnRule, state: Any, remark: Remark | None = None) -> None:
        self.rule, self.state, self._remark = rule, state, remark
        self._draws = DrawPerTask(site, state.draws.shape[3]) if _draws(state) else None
        self._plain = plain(state)
        # (world, EN): a block of tasks, and the state with the draws of that.
        self._in_block: dict[tuple[int, int], tuple[int, Any]] = {}

    def with_draws(self, tasks: int) -> Any:
        """The state, with draws for so many tasks of each EN."""
        if self._draws is not None and tasks > self.state.draws.shape[2]:
            self.state = self.state._replace(draws=self._draws.at_least(tasks))
        return self.state

    @property
    def has_draws(self) -> bool:
        """Whether the rule draws at random for each task."""
        return self._draws is not None

    def remark(self) -> str:
        """What the rule's makers say of what it has met."""
        return "" if self._remark is None else self._remark(self.state)

    def decide(self, tasks: DispatchObservation) -> Ints:
        """The rule's action for each row."""
        return self._each(self.rule.decide, tasks)

    def decide_one(self, seen: SeenTasks) -> int:
        """The rule's action for the only row, as a plain number: a node asks task by task."""
        return int(self.rule.decide(seen, self._state_for(seen.dispatch[0]), 0))

    def would_decide(self, tasks: DispatchObservation) -> Ints | None:
        """The same without any effect, if the rule can tell."""
        return None if self.rule.choose is None else self._each(self.rule.choose, tasks)

    def _each(self, call: Callable[..., Any], tasks: DispatchObservation) -> Ints:
        seen, rows = seen_tasks(tasks), range(len(tasks))
        return np.array(
            [call(seen, self._state_for(seen.dispatch[row]), row) for row in rows], np.int64
        )

    def _state_for(self, task: Task) -> Any:
        """The state, with the draws of a task's block: a node keeps no more of them."""
        if self._draws is None:
            return self._plain
        cell, number = (task.world, task.en), task.task // BLOCK
        known, state = self._in_block.get(cell, (-1, None))
        if known != number:
            draws = self._draws.block(task.world, task.en, number)
            state = self._plain._replace(draws=draws.data)
            self._in_block[cell] = number, state
        return state

    def note(self, tasks: DispatchObservation, actions: Ints) -> Floats:
        """What was decided, whoever did; [row] what the rule makes of it."""
        assert self.rule.note is not None
        seen, state, note = seen_tasks(tasks), self._plain, self.rule.note
        decided = enumerate(actions.tolist())
        return np.array([note(seen, state, row, action) for row, action in decided], np.float64)

    def take_over(self, before: Dispatcher) -> bool:
        """Copy the memory of the columns that both have; what a rule knows of its site stays."""
        if not isinstance(before, RuleDispatcher) or type(before.state) is not type(self.state):
            return False
        _copy_memory(before.state, self.state)
        return True

    def observe(self, feedback: Feedback) -> None:
        """Facts, one by one."""
        columns = map(np.ndarray.tolist, _OF_FACT(feedback))
        self.hear(map(Fact._make, zip(*columns, strict=True)))

    def hear(self, facts: Iterable[Fact]) -> None:
        """The same of facts that were never in arrays."""
        hear = self.rule.hear
        if hear is not None:
            for fact in facts:
                hear(fact, self._plain)


def _copy_memory(old: Any, new: Any) -> None:
    """Write the arrays of one state into the corner that they have in those of another."""
    for before, after in zip(old, new, strict=True):
        if isinstance(after, tuple) and not isinstance(after, Known):
            _copy_memory(before, after)
        elif isinstance(after, np.ndarray) and after.flags.writeable:
            corner = tuple(map(slice, map(min, before.shape, after.shape)))
            after[corner] = before[corner]


class RuleUpdater(Updater):
    """A rule at the SNs of a site, whose statuses have so many numbers; `remark` as at ENs."""

    def __init__(
        self, rule: SnRule, state: Any, carries: int = RAW, remark: Remark | None = None
    ) -> None:
        self.rule, self.state, self._carries, self._remark = rule, state, carries, remark
        self._plain = plain(state)

    @property
    def rides(self) -> bool:
        """Whether the rule is to be asked before each result."""
        return self.rule.ride is not None

    @property
    def sends_raw(self) -> bool:
        """Whether a status is the raw state."""
        return self.rule.encode is raw

    def remark(self) -> str:
        """What the rule's makers say of what it has met."""
        return "" if self._remark is None else self._remark(self.state)

    def decide(self, nodes: UpdateObservation) -> tuple[Bools, Floats]:
        """[row, k] to which ENs to send, [row] ms until the next decision."""
        seen, state, decide = seen_nodes(nodes), self._plain, self.rule.send
        send, interval_ms = np.zeros(nodes.en.shape, np.bool_), np.full(len(nodes), np.inf)
        answers = UpdateAnswers(send.data, interval_ms.data)
        for row in range(len(nodes)):
            node = seen.update[row]
            if self.rule.forget is not None and has_returned(node):
                self.rule.forget(node, state)
            decide(seen, answers, state, row)
        return send, interval_ms

    def encode(self, states: SnStates) -> Floats:
        """[row, d] what a status of each state says."""
        rows = []
        nodes = zip(states.world.tolist(), states.sn.tolist(), states.state.tolist(), strict=True)
        for world, sn, own in nodes:
            numbers = [0.0] * self._carries
            self.rule.encode(world, sn, own, self._plain, numbers)
            rows.append(numbers)
        return np.array(rows, np.float64).reshape(len(rows), self._carries)

    def ride(self, results: ResultObservation) -> Bools:
        """[row] whether a status rides on a result."""
        ride = self.rule.ride
        if ride is None:
            return np.zeros(len(results), np.bool_)
        rows = zip(
            results.world.tolist(),
            results.sn.tolist(),
            results.time_ms.tolist(),
            results.sn_state.tolist(),
            results.up_since_ms.tolist(),
            results.en.tolist(),
            strict=True,
        )
        return np.array([ride(Node(*row), self._plain) for row in rows], np.bool_)


def _draws(state: Any) -> bool:
    return "draws" in getattr(state, "_fields", ()) and state.draws.shape[3] > 0
