"""Rules compiled over the rows of a batch, where the loop around them is plain.

So it is for a method that is a rule in part, for opponents in environments, and while somebody
looks on. Batches of all sizes are handed over, so that the number of episodes changes nothing.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosmo.control.compiled import joined
from cosmo.node import Dispatcher, DispatchObservation
from cosmo.policy.rules.run import RuleDispatcher, SeenTasks, Task
from cosmo.world.compiled import compiled_rule
from cosmo.world.turns import DISPATCH_ROW


def _no_rule(seen: Any, state: Any, row: Any) -> Any:
    return 0


def _notes_nothing(seen: Any, state: Any, row: Any, action: Any) -> Any:
    return 0.0


# What the functions below call; for each rule these names mean the rule's own functions.
decide, note = _no_rule, _notes_nothing


def _rows(fingerprint):
    def act(seen, state, actions):
        """An action for each row."""
        _ = fingerprint
        for row in range(actions.size):
            actions[row] = decide(seen, state, row)

    return act


def _noted_rows(fingerprint):
    def act(seen, state, actions, found):
        """What a rule makes of each action."""
        _ = fingerprint
        for row in range(actions.size):
            found[row] = note(seen, state, row, actions[row])

    return act


@cache
def _over_rows(function: Callable[..., Any]) -> Any:
    return joined(_rows, {"decide": compiled_rule(function)}, function)


@cache
def _noting(function: Callable[..., Any]) -> Any:
    return joined(_noted_rows, {"note": compiled_rule(function)}, function)


class CompiledRows(RuleDispatcher):
    """The same rule with the same memory, for the batches of a simulation."""

    def __init__(self, plain: RuleDispatcher) -> None:
        self.__dict__.update(plain.__dict__)

    def _each(self, call: Callable[..., Any], tasks: DispatchObservation) -> NDArray[np.int64]:
        known = int(tasks.task.max(initial=-1)) + 1
        state, actions = self.with_draws(known), np.zeros(len(tasks), np.int64)
        _over_rows(call)(_records(tasks), state, actions)
        return actions

    def note(self, tasks: DispatchObservation, actions: NDArray[np.int64]) -> NDArray[np.float64]:
        """What was decided, whoever did."""
        assert self.rule.note is not None
        found = np.zeros(len(tasks))
        _noting(self.rule.note)(_records(tasks), self.state, actions, found)
        return found


def _records(tasks: DispatchObservation) -> SeenTasks:
    """What a compiled rule is handed of a batch of tasks."""
    dispatch = np.empty(len(tasks), DISPATCH_ROW)
    for name in Task._fields:
        dispatch[name] = getattr(tasks, name)
    rest = (getattr(tasks, name) for name in SeenTasks._fields[1:])
    return SeenTasks(dispatch, *map(np.ascontiguousarray, rest))


def with_compiled_rows(dispatcher: Dispatcher) -> Dispatcher:
    """The dispatcher with its rule, or the rules that it is made of, compiled over rows."""
    if type(dispatcher) is RuleDispatcher:
        return CompiledRows(dispatcher)
    for name, part in getattr(dispatcher, "__dict__", {}).items():
        if type(part) is RuleDispatcher:
            setattr(dispatcher, name, CompiledRows(part))
    return dispatcher
