"""Whole worlds played by the rules of `cosmo.policy.rules`, compiled.

The functions are those that nodes run as plain Python. A large world is played without a call from
Python a decision: `play_compiled` joins the functions of an EN rule and of an SN rule with the
event loop. What is compiled is kept on disk, for each pair of rules.
"""

import hashlib
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosmo import node as node_room
from cosmo.control.update_intervals import IntervalCheck
from cosmo.control.yardsticks import FullInformation, best_route
from cosmo.errors import InputError
from cosmo.measure.regret import with_regret
from cosmo.node import NO_NODE, Dispatcher, Updater
from cosmo.policy.rules.periodic import Clock, send_never
from cosmo.policy.rules.run import (
    EnRule,
    RuleDispatcher,
    RuleUpdater,
    SnRule,
    has_returned,
    raw,
)
from cosmo.scenario import Scenario
from cosmo.workload import Episode
from cosmo.world import Outcome, Worlds, kernel
from cosmo.world.compiled import (
    compiled,
    compiled_rule,
    entry_point,
    fingerprint_of,
    sources_of,
    with_names,
)
from cosmo.world.records import SN_TURN
from cosmo.world.turns import (
    EN_ROWS,
    ERROR,
    FEEDBACK_ROWS,
    HOLDING,
    RIDE_ROWS,
    SN_ROWS,
    STALLED,
    UNFINISHED,
)

_DECISIONS = 10_000  # about, between two looks at progress, and at Ctrl-C

# Linked in as it is: handing over its arrays costs less than a decision, and compiling it again
# would take several times as long as the rules do.
_advance = kernel.advance

_YARDSTICK = EnRule(best_route)
SILENT = RuleUpdater(SnRule(send_never), Clock(np.inf))


class Tally(NamedTuple):
    """Decisions that a status of this very moment would have changed."""

    measured: bool
    warmup_ms: float  # tasks of before do not count
    decisions: NDArray[np.int64]  # [world]
    regretted: NDArray[np.int64]


def _hears_nothing(fact: Any, state: Any) -> Any:
    return 0


def _cannot_tell(seen: Any, state: Any, row: Any) -> Any:
    return 0


def _forgets_nothing(node: Any, state: Any) -> Any:
    return 0


def _never_rides(result: Any, state: Any) -> Any:
    return False


# What the functions below call; for each pair of rules these names mean the rules' own functions.
decide = choose = _cannot_tell
hear = _hears_nothing
send = send_never
encode = raw
ride = _never_rides
forget = _forgets_nothing
returned = has_returned


def _dispatch(seen, fresh, answers, truth, en, sn, tally, row):
    """Answer an EN. What it would decide if all statuses were of now is asked before, as the
    decision may change what is remembered; no rule sees more of the truth than such a status.
    """
    task, would = seen.dispatch[row], 0
    counted = tally.measured and task.generated_ms >= tally.warmup_ms
    if counted:
        for column in range(seen.sn.shape[1]):
            if seen.sn[row, column] == NO_NODE:
                break
            if not truth.sn_up[row, column]:  # has no status of now: the last one stays
                for k in range(seen.status.shape[2]):
                    fresh.status[row, column, k] = seen.status[row, column, k]
                fresh.status_ms[row, column] = seen.status_ms[row, column]
                continue
            own = truth.sn_state[row, column]
            encode(task.world, seen.sn[row, column], own, sn, fresh.status[row, column])
            fresh.status_ms[row, column] = task.time_ms
        would = choose(fresh, en, row)
    action = decide(seen, en, row)
    answers.action[row] = action
    if counted:
        tally.decisions[task.world] += 1
        tally.regretted[task.world] += 1 if would != action else 0


def _update(seen, answers, sn, row):
    """Answer an SN that decides on an update."""
    if returned(seen.update[row]):
        forget(seen.update[row], sn)
    send(seen, answers, sn, row)
    node = seen.update[row]
    encode(node.world, node.sn, node.sn_state, sn, answers.numbers[row])


def _ride(seen, answers, sn, row):
    """Answer an SN that has a result to send."""
    result = seen.result[row]
    rides = ride(result, sn)
    answers.ride[row] = rides
    if rides:
        encode(result.world, result.sn, result.sn_state, sn, answers.ride_numbers[row])


def _whole_worlds(fingerprint):
    def play(constants, state, turn, fresh, en, sn, tally, turns):
        """So many turns of all worlds; fewer if all are over, or one needs more room."""
        _ = fingerprint  # part of the cache key
        seen, answers = turn.seen, turn.answers
        for _turn in range(turns):
            if turn.counts[STALLED] == 0:
                for row in range(turn.counts[FEEDBACK_ROWS]):
                    hear(seen.feedback[row], en)
                for row in range(turn.counts[EN_ROWS]):
                    _dispatch(seen, fresh, answers, turn.truth, en, sn, tally, row)
                for row in range(turn.counts[SN_ROWS]):
                    _update(seen, answers, sn, row)
                for row in range(turn.counts[RIDE_ROWS]):
                    _ride(seen, answers, sn, row)
            _advance(constants, state, turn)
            if turn.counts[STALLED] > 0 or turn.counts[UNFINISHED] == 0:
                return

    return play


def _until_sns_decide(fingerprint):
    def play(constants, state, turn, en):
        """Run every world on, and answer all ENs by the rule, until only SNs are asked.

        Returns early if a world has no room left (counts[STALLED]); the next call goes on.
        """
        _ = fingerprint
        seen, answers = turn.seen, turn.answers
        while True:
            _advance(constants, state, turn)
            if turn.counts[STALLED] > 0 or turn.counts[ERROR] != 0 or turn.counts[EN_ROWS] == 0:
                return
            for row in range(turn.counts[EN_ROWS]):
                answers.action[row] = decide(seen, en, row)
            turn.counts[HOLDING] = SN_TURN  # SNs that have been asked wait for their answer

    return play


@cache
def _kernel() -> str:
    """A digest of what every entry point has in it beside its rules: this file, too."""
    rooms = fingerprint_of(*(Path(str(room.__file__)).parent for room in (kernel, node_room)))
    return rooms + hashlib.sha256(Path(__file__).read_bytes()).hexdigest()


def _named(function: Callable[..., Any]) -> str:
    return f"{function.__module__.rpartition('.')[2]}_{function.__name__}"


def joined(
    template: Callable[..., Any],
    parts: dict[str, Any],
    *named: Callable[..., Any],
    made_by: Callable[..., Any] = entry_point,
) -> Any:
    """An entry point of these parts, made of these plain functions.

    It has files of its own on disk, named by its sources: two processes that compile at once must
    not meet in one file, nor anybody open a file of types that are no more.
    """
    names = [_named(function) for function in named]
    digest = _kernel() + sources_of(*named)
    made = with_names(template(digest), **parts)
    key = hashlib.sha256("".join([digest, *names]).encode()).hexdigest()[:16]
    made.__qualname__ = f"{template.__name__}_{names[0]}_{names[-1]}_{key}"
    return made_by(made)


def functions_of(en: EnRule, sn: SnRule) -> dict[str, Callable[..., Any]]:
    """What the names that whole worlds are played by mean for a pair of rules."""
    return {
        "decide": en.decide,
        "choose": en.choose or choose,
        "hear": en.hear or hear,
        "encode": sn.encode,
        "ride": sn.ride or ride,
        "send": sn.send,
        "forget": sn.forget or forget,
        "returned": has_returned,
    }


def compiled_parts(functions: dict[str, Callable[..., Any]]) -> dict[str, Any]:
    """The same, compiled, with how ENs and SNs are answered by them."""
    parts = {name: compiled_rule(function) for name, function in functions.items()}
    for each in (_dispatch, _update, _ride):
        parts[each.__name__] = compiled(with_names(each, **parts))
    return parts


@cache
def _player(en: EnRule, sn: SnRule) -> Any:
    functions = functions_of(en, sn)
    return joined(_whole_worlds, compiled_parts(functions), *functions.values())


@cache
def _en_player(en: EnRule) -> Any:
    return joined(_until_sns_decide, {"decide": compiled_rule(en.decide)}, en.decide)


def can_compile(dispatcher: Dispatcher, updater: Updater | None) -> bool:
    """Whether both sides are rules, by their very type: a subclass may do something else."""
    en = type(dispatcher) in (RuleDispatcher, FullInformation)
    return en and (updater is None or type(updater) is RuleUpdater)


def rules_of(dispatcher: Dispatcher, updater: Updater | None) -> tuple[EnRule, SnRule]:
    """The rules of both sides, of which `can_compile` says that they are rules."""
    en = dispatcher.rule if isinstance(dispatcher, RuleDispatcher) else _YARDSTICK
    return en, (updater if isinstance(updater, RuleUpdater) else SILENT).rule


def play_compiled(
    scenario: Scenario,
    episodes: Sequence[Episode],
    carries: int,
    dispatcher: Dispatcher,
    updater: Updater | None,
    regret: bool,
    progress: Callable[[int], None] | None,
    pace: IntervalCheck,
    player: Callable[..., Callable[..., Any]] | None = None,
) -> list[Outcome]:
    """What became of each episode, with its regret if that is asked for and can be measured.

    Worlds are played on the CPU, or by what `player(EN rule, SN rule, their states, tally)` makes.
    """
    told = updater if isinstance(updater, RuleUpdater) else SILENT
    worlds = Worlds(scenario, episodes, carries, rides=updater is not None and updater.rides)
    rule, _ = rules_of(dispatcher, updater)
    en: Any = worlds.turn.truth
    if isinstance(dispatcher, RuleDispatcher):
        en = dispatcher.with_draws(max(each.tasks.most_of_an_en for each in episodes))
    counts = np.zeros((2, len(episodes)), np.int64)
    measured = regret and updater is not None and rule.choose is not None
    tally = Tally(measured, float(scenario.episode.warmup_ms), counts[0], counts[1])
    seen = worlds.turn.seen
    fresh = seen._replace(status=seen.status.copy(), status_ms=seen.status_ms.copy())
    on: Callable[..., Any]
    if player is not None:
        on = player(rule, told.rule, en, told.state, tally)
    else:
        play, turns = _player(rule, told.rule), max(_DECISIONS // len(episodes), 1)
        on = partial(play, fresh=fresh, en=en, sn=told.state, tally=tally, turns=turns)
    while _moved(worlds, on):
        pace.check(*worlds.update_decisions)
        if progress is not None:
            progress(worlds.generated)
    outcomes = [worlds.outcome(world) for world in range(len(worlds))]
    return with_regret(outcomes, tally.regretted, tally.decisions)


def _moved(worlds: Worlds, on: Callable[..., Any]) -> bool:
    """Play on; a rule's answer that no world can carry out is a mistake in its parameters."""
    try:
        return worlds.run_compiled(on)
    except ValueError as error:
        raise InputError(str(error)) from None


class EnPlayer:
    """A compiled rule that remembers nothing at the ENs: what `Worlds.advance_playing` wants."""

    def __init__(self, dispatcher: RuleDispatcher) -> None:
        self._play, self._state = _en_player(dispatcher.rule), dispatcher.state
        self.has_draws = dispatcher.has_draws

    def __call__(self, constants: Any, world: Any, turn: Any) -> None:
        """Run every world on until only SNs are asked."""
        self._play(constants, world, turn, self._state)

    def start(self, world: int, dispatcher: RuleDispatcher, tasks: int) -> None:
        """A world starts anew, with the draws that a dispatcher has for so many tasks of an EN."""
        drawn, kept = dispatcher.with_draws(tasks).draws, self._state.draws
        if len(kept) != len(drawn) or kept.shape[2] < drawn.shape[2]:
            room = np.empty(drawn.shape)
            if len(kept) == len(drawn):
                room[:, :, : kept.shape[2]] = kept
            self._state = self._state._replace(draws=room)
        self._state.draws[world, :, : drawn.shape[2]] = drawn[world]


def en_player(dispatcher: Dispatcher) -> EnPlayer | None:
    """What `Worlds.advance_playing` wants, if a dispatcher is a rule that remembers nothing.

    Worlds start anew one by one, and a memory would have to.
    """
    if type(dispatcher) is not RuleDispatcher or not dispatcher.rule.forgets:
        return None
    return EnPlayer(dispatcher)
