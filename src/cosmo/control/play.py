"""Methods at work: episodes played to their end."""

from collections.abc import Callable, Sequence

from cosmo.control.guard import ask, checked_actions, checked_update
from cosmo.control.method import NOTHING, Method, Setting
from cosmo.control.regret import Regret
from cosmo.engine import worlds as start
from cosmo.scenario import Scenario
from cosmo.workload import Episode
from cosmo.world import Outcome

_PROGRESS_EVERY = 256  # turns

Progress = Callable[[int], None]  # is told how many tasks have been generated


def play(
    scenario: Scenario,
    method: Method,
    episodes: Sequence[Episode],
    seed: int | Sequence[int] = 0,
    numbers: Sequence[int] | None = None,
    progress: Progress | None = None,
) -> list[Outcome]:
    """Play episodes side by side with one method.

    `numbers` are the episodes' numbers in their run (0, 1, … by default): together with the seed,
    which may differ from world to world, they determine the method's own random draws.
    """
    setting = Setting(
        scenario,
        [seed] * len(episodes) if isinstance(seed, int) else seed,
        range(len(episodes)) if numbers is None else numbers,
        rate=episodes[0].rate / scenario.en.count,
        window_ms=episodes[0].window_ms,
    )
    worlds = start(scenario, episodes, method.carries)
    dispatcher = ask(method, method.dispatcher, setting)
    updater = None if method.carries == NOTHING else ask(method, method.updater, setting)
    observe = getattr(dispatcher, "observe", None)
    regret = None if updater is None else Regret.of(method, dispatcher, setting)
    turns = 0
    turn = worlds.advance()
    while not turn.over:
        if observe is not None and len(turn.settled):
            ask(method, observe, turn.settled)
        if len(turn.dispatch):
            if method.privileged:
                turn.dispatch.truth = turn.truth
            if regret is not None:
                regret.foresee(turn.dispatch, turn.truth)
            answer = ask(method, dispatcher.decide, turn.dispatch)
            action = checked_actions(method, answer, len(turn.dispatch), scenario.sn.count)
            if regret is not None:
                regret.compare(turn.dispatch, action)
            worlds.answer(action=action)
        if updater is not None and len(turn.update):
            update = ask(method, updater.decide, turn.update)
            send, interval_ms = checked_update(method, update, len(turn.update))
            worlds.answer(send=send, interval_ms=interval_ms)
        turn = worlds.advance()
        turns += 1
        if progress is not None and turns % _PROGRESS_EVERY == 0:
            progress(worlds.generated)
    outcomes = [worlds.outcome(world) for world in range(len(worlds))]
    return outcomes if regret is None else regret.added_to(outcomes)
