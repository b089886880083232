"""Whole worlds played on a GPU, one world a thread: the same kernel and the same rules.

A `GpuPlayer` does what the compiled players of `cosmo.control.compiled` do on the CPU, and leaves
the same bits behind. Worlds share nothing, so a thread plays its world to the end without waiting
for another. What a world needs stays on the GPU from launch to launch; only the records of the
worlds come back each time, for progress and for Ctrl-C.
"""

import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from cosmo.control.compiled import (
    Tally,
    can_compile,
    compiled_parts,
    functions_of,
    joined,
    rules_of,
)
from cosmo.control.yardsticks import best_route
from cosmo.node import Method
from cosmo.node.guard import made_sides
from cosmo.policy.rules.run import EnRule, RuleDispatcher, RuleUpdater, SnRule
from cosmo.scenario import Scenario
from cosmo.workload import Episode
from cosmo.world import Worlds, kernel, layout, site_of
from cosmo.world.answers import fault
from cosmo.world.compiled import compiled_rule, inexact_in
from cosmo.world.device import (
    back,
    bytes_of,
    cuda,
    device_kernel,
    enough_memory,
    host,
    longest_of,
    row_getter,
    stacked,
    to_device,
)
from cosmo.world.device_code import MOST_ELEMENTS, NoGpuError, for_kernels
from cosmo.world.records import NEEDS_ROOM, OVER, RUNNING, State
from cosmo.world.turns import (
    EN_ROWS,
    ERROR,
    FEEDBACK_ROWS,
    RIDE_ROWS,
    SETTLED_ROWS,
    SN_ROWS,
    STALLED,
    UNFINISHED,
    Seen,
    Turn,
)

_THREADS = 64  # of a block
_TURNS = 20_000  # of a world in a launch, between two looks at progress
_MOST_WORLDS = 65_536  # at once: more do not make it faster
_SHARE = 0.5  # of the free memory that worlds may take

_answer, _run = kernel._answer, kernel._run


def _rules_memory(en: Any, turn: Any) -> Any:
    return en


def _yardsticks_memory(en: Any, turn: Any) -> Any:
    return turn.truth


def _seen_with(seen: Any, status: Any, status_ms: Any) -> Any:
    """What is seen, but for statuses, which have memory of their own: no two arrays of a launch may
    share it.
    """
    return Seen(
        seen.dispatch,
        seen.sn,
        status,
        status_ms,
        seen.up_link_mbps,
        seen.up_backlog_ms,
        seen.update,
        seen.en,
        seen.acknowledged,
        seen.acknowledged_ms,
        seen.down_link_mbps,
        seen.result,
        seen.result_acknowledged,
        seen.feedback,
    )


# For each pair of rules these names mean functions of its own.
hear: Any = _rules_memory
_dispatch = _update = _ride = turn_of = seen_with = memory = numba_cuda = hear


def _world_of_a_thread(fingerprint):
    def play(constants, state, turns, freshes, en, sn, tally, most):
        """So many turns of the world of this thread; fewer if it is over or needs more room."""
        _ = fingerprint  # part of the cache key
        w = numba_cuda.grid(1)
        if w >= state.worlds.size:
            return
        world = state.worlds[w]
        turn = turn_of(turns, w)
        seen, answers, counts = turn.seen, turn.answers, turn.counts
        fresh = seen_with(seen, freshes[0][w], freshes[1][w])
        own = memory(en, turn)
        for _turn in range(most):
            if world.waits_for == OVER:
                return
            if world.waits_for != NEEDS_ROOM:
                for row in range(counts[FEEDBACK_ROWS]):
                    hear(seen.feedback[row], own)
                for row in range(counts[EN_ROWS]):
                    _dispatch(seen, fresh, answers, turn.truth, own, sn, tally, row)
                for row in range(counts[SN_ROWS]):
                    _update(seen, answers, sn, row)
                for row in range(counts[RIDE_ROWS]):
                    _ride(seen, answers, sn, row)
                counts[ERROR] = fault(turn, RUNNING)
                if counts[ERROR] != 0:
                    return
                counts[EN_ROWS] = 0
                counts[SN_ROWS] = 0
                counts[RIDE_ROWS] = 0
                counts[SETTLED_ROWS] = 0
                counts[FEEDBACK_ROWS] = 0
            _answer(constants, state, turn, w)
            _run(constants, state, turn, w)
            if world.waits_for == NEEDS_ROOM:
                return

    return play


def check_playable(en: EnRule, sn: SnRule) -> None:
    """NoGpuError if no GPU can be used, or these rules would not have the same bits there."""
    cuda()
    inexact = sorted(inexact_in(*functions_of(en, sn).values()))
    if inexact:
        raise NoGpuError(f"its rules compute {', '.join(inexact)}, which GPUs round in another way")


@cache
def _player(en: EnRule, sn: SnRule) -> Any:
    functions = functions_of(en, sn)
    truth = en.decide is best_route
    own = {
        "numba_cuda": cuda(),
        "turn_of": compiled_rule(row_getter(Turn)),
        "seen_with": compiled_rule(_seen_with),
        "memory": compiled_rule(_yardsticks_memory if truth else _rules_memory),
    }
    parts = {**compiled_parts(functions), **own}
    return joined(_world_of_a_thread, parts, *functions.values(), made_by=device_kernel)


class GpuPlayer:
    """Plays the worlds of a batch by a pair of rules: what `Worlds.run_compiled` wants.

    Args:
        en: The rule of the ENs.
        sn: The rule of the SNs.
        en_state: What the ENs remember, or, of a yardstick, anything.
        sn_state: What the SNs remember.
        tally: Decisions that fresh statuses would have changed.

    Raises:
        NoGpuError: If no GPU can be used, or these rules would not have the same bits there.

    """

    def __init__(self, en: EnRule, sn: SnRule, en_state: Any, sn_state: Any, tally: Tally) -> None:
        check_playable(en, sn)
        self._play = _player(en, sn)
        self._own = (() if en.decide is best_route else en_state, sn_state, tally)
        self._state: State | None = None
        self._turns: Turn | None = None
        self._there: tuple[Any, ...] = ()  # what the GPU has
        self.kernel_seconds = 0.0  # in which the GPU played

    def __call__(self, constants: Any, state: Any, turn: Any) -> None:
        """Let all worlds run on; says in `turn.counts` how it ended."""
        self._launch(constants, state, _TURNS)
        state_there, turns_there = self._there[1], self._there[2]
        back(state_there.worlds, state.worlds)
        waits_for = state.worlds["waits_for"]
        turn.counts[STALLED] = np.count_nonzero(waits_for == NEEDS_ROOM)
        turn.counts[UNFINISHED] = np.count_nonzero(waits_for != OVER)
        turn.counts[ERROR] = host(turns_there.counts)[:, ERROR].max()
        if turn.counts[STALLED] or not turn.counts[UNFINISHED]:
            for there, here in zip(self._there, self._here, strict=True):
                if here:
                    back(there, here)

    def warm_up(self, constants: Any, state: Any, turn: Any) -> None:
        """Copy all to the GPU and compile, without playing, so that a benchmark can time it."""
        turn.counts[UNFINISHED] = state.worlds.size
        self._launch(constants, state, 0)

    def _launch(self, constants: Any, state: Any, turns: int) -> None:
        if state is not self._state:
            self._upload(constants, state)
        blocks = -(-state.worlds.size // _THREADS)
        start = time.perf_counter()
        with for_kernels():
            self._play[blocks, _THREADS](*self._there, turns)
        cuda().synchronize()
        if turns:
            self.kernel_seconds += time.perf_counter() - start

    def _upload(self, constants: Any, state: Any) -> None:
        """All to the GPU: at the start, and when the batch has more room than before."""
        if self._turns is None:
            self._turns = stacked(layout.blank_turn(constants, 1), state.worlds.size)
        else:
            old = self._turns
            seen = old.seen._replace(feedback=_longer(old.seen.feedback))
            self._turns = old._replace(seen=seen, settled=_longer(old.settled))
        self._state = state
        of_now = (self._turns.seen.status.copy(), self._turns.seen.status_ms.copy())
        self._here = (constants, state, self._turns, of_now, *self._own)
        if longest_of(self._here) > MOST_ELEMENTS:
            raise NoGpuError("so many worlds need arrays longer than its indices can be")
        self._there = ()  # it came back before: the GPU need not have room for both
        with enough_memory():
            self._there = to_device(self._here)


def _free_here() -> int:
    """Bytes that this machine can still give, with what it only keeps of files: the host has all
    that the GPU has.
    """
    lines = Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
    [available] = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
    return 1024 * int(available)


def _longer(rows: Any) -> Any:
    return np.concatenate([rows, np.zeros_like(rows)], axis=1)


def worlds_that_fit(scenario: Scenario, method: Method, first: Episode) -> int:
    """How many worlds to play at once on the GPU, from what one takes; 0 if it plays none of them:
    there is no GPU, or the method is not made of rules that have the same bits there.
    """
    dispatcher, updater = made_sides(method, site_of(scenario, [(0, 0)]))
    if not can_compile(dispatcher, updater):
        return 0
    try:
        check_playable(*rules_of(dispatcher, updater))
        free = min(cuda().current_context().get_memory_info().free, _free_here())
    except NoGpuError:
        return 0
    worlds = Worlds(scenario, [first], method.carries)
    memory: list[Any] = [worlds.memory, worlds.turn]
    if isinstance(dispatcher, RuleDispatcher):
        memory.append(dispatcher.with_draws(first.tasks.most_of_an_en))
    if isinstance(updater, RuleUpdater):
        memory.append(updater.state)
    taken, longest = sum(map(bytes_of, memory)), max(map(longest_of, memory))
    # An episode may be longer than the first, with twice as many draws (a power of two of them);
    # the host has the same arrays, twice for a moment.
    fit = min(_SHARE * free / taken / 1.5, MOST_ELEMENTS / longest / 2.0)
    return max(1, min(int(fit), _MOST_WORLDS))
