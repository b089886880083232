"""Methods at work: episodes played to their end."""

from collections.abc import Callable, Sequence

import numpy as np

from cosmo.control.method import NOTHING, Method, Setting
from cosmo.control.regret import Regret
from cosmo.scenario import Scenario
from cosmo.workload import Episode
from cosmo.world import Outcome, Worlds

_PROGRESS_EVERY = 256  # turns

Progress = Callable[[int], None]  # is told how many tasks have been generated


def play(
    scenario: Scenario,
    method: Method,
    episodes: Sequence[Episode],
    seed: int = 0,
    numbers: Sequence[int] | None = None,
    progress: Progress | None = None,
) -> list[Outcome]:
    """Play episodes side by side with one method.

    `numbers` are the episodes' numbers in their run (0, 1, … by default): together with the seed
    they determine the method's own random draws.
    """
    setting = Setting(
        scenario,
        seed,
        range(len(episodes)) if numbers is None else numbers,
        rate=episodes[0].rate / scenario.en.count,
        window_ms=episodes[0].window_ms,
    )
    worlds = Worlds(scenario, episodes, status_dimensions=method.carries)
    dispatcher = method.dispatcher(setting)
    updater = None if method.carries == NOTHING else method.updater(setting)
    observe = getattr(dispatcher, "observe", None)
    regret = None if updater is None else Regret.of(dispatcher, setting)
    turns = 0
    turn = worlds.advance()
    while not turn.over:
        if observe is not None and len(turn.settled):
            observe(turn.settled)
        if len(turn.dispatch):
            if method.privileged:
                turn.dispatch.truth = turn.truth
            if regret is not None:
                regret.foresee(turn.dispatch, turn.truth)
            action = np.asarray(dispatcher.decide(turn.dispatch))
            if regret is not None:
                regret.compare(turn.dispatch, action)
            worlds.answer(action=action)
        if updater is not None and len(turn.update):
            send, interval_ms = updater.decide(turn.update)
            worlds.answer(send=send, interval_ms=interval_ms)
        turn = worlds.advance()
        turns += 1
        if progress is not None and turns % _PROGRESS_EVERY == 0:
            progress(worlds.generated)
    outcomes = [worlds.outcome(world) for world in range(len(worlds))]
    return outcomes if regret is None else regret.added_to(outcomes)
