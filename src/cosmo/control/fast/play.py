"""Worlds played by compiled rules."""

from collections.abc import Callable, Sequence
from functools import partial

from cosmo.control.fast.forms import known_of, with_regret
from cosmo.control.fast.records import Memory, Rules
from cosmo.node import Site
from cosmo.scenario import Scenario
from cosmo.workload import Episode
from cosmo.world import Outcome, Worlds

_TURNS = 20_000  # between two looks at progress, and at Ctrl-C


def play_compiled(
    scenario: Scenario,
    episodes: Sequence[Episode],
    carries: int,
    rules: Rules,
    memory: Memory,
    site: Site,
    progress: Callable[[int], None] | None,
) -> list[Outcome]:
    """What became of each episode, the same as with the plain rules."""
    from cosmo.control.fast.loop import run  # which takes a while to compile, once

    worlds = Worlds(scenario, episodes, carries, rides=rules.rides)
    on = partial(run, rules=rules, known=known_of(site), memory=memory, turns=_TURNS)
    while worlds.run_compiled(on):
        if progress is not None:
            progress(worlds.generated)
    return with_regret([worlds.outcome(world) for world in range(len(worlds))], memory)
