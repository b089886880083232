r"""How fast worlds are played on a GPU, against one core of the same machine.

    python benchmarks/gpu.py

Prints, for each scenario and method, from one run: the seconds until a GPU begins (laying out
worlds, copying them, compiling; a second run finds the compiled kernel on disk), tasks a second of
whole episodes in the kernel alone and with the way there and back, the same of one core (compiled,
64 worlds at once), and how many of the compared values differ. Without a GPU it says so. For a
profile, the first of them alone with episodes of a second (the first launch plays nothing):

    ncu --clock-control none --launch-skip 1 --launch-count 1 --set full \
        python benchmarks/gpu.py --profile
"""

import sys
import time
from typing import Any

import numpy as np

from cosmo import load, method
from cosmo.control.compiled import SILENT, Tally, play_compiled
from cosmo.control.gpu import GpuPlayer
from cosmo.control.update_intervals import IntervalCheck
from cosmo.node.guard import made_dispatcher, made_updater
from cosmo.policy.rules.run import RuleDispatcher, RuleUpdater
from cosmo.scenario import Scenario
from cosmo.workload import Episode, episode
from cosmo.world import Worlds, site_of
from cosmo.world.device import cuda
from cosmo.world.device_code import NoGpuError
from measured import sized

CASES = (
    ("paper", 320, "local-until-full", sized(16_384, 64)),
    ("paper", 320, "power-of-d", sized(16_384, 64)),
    ("campus", 150, "cosmo-next", sized(4_096, 16)),
    ("district", 150, "power-of-d", sized(1_024, 4)),
)
DISTINCT = 8  # episodes; further worlds repeat them
COMPARED = ("action", "outcome", "decided_ms", "finished_ms")


def sides(scenario: Scenario, name: str, worlds: int) -> tuple[RuleDispatcher, RuleUpdater]:
    chosen = method(name)
    site = site_of(scenario, [(0, number % DISTINCT) for number in range(worlds)])
    dispatcher = made_dispatcher(chosen, site)
    updater = made_updater(chosen, site) if chosen.carries else SILENT
    assert isinstance(dispatcher, RuleDispatcher)
    assert isinstance(updater, RuleUpdater)
    return dispatcher, updater


def on_core(scenario: Scenario, name: str, base: list[Episode]) -> tuple[float, list[Any]]:
    """Tasks a second of one core, compiled before; and what became of the first episodes."""
    chosen, rate, played = method(name), 0.0, []
    for worlds in (DISTINCT, 64):
        dispatcher, updater = sides(scenario, name, worlds)
        episodes = [base[number % DISTINCT] for number in range(worlds)]
        pace = IntervalCheck(chosen, scenario.sn.count, worlds)
        told = updater if chosen.carries else None
        start = time.perf_counter()
        played = play_compiled(
            scenario, episodes, chosen.carries, dispatcher, told, False, None, pace
        )
        rate = sum(len(each.tasks) for each in episodes) / (time.perf_counter() - start)
    return rate, played


def on_gpu(scenario: Scenario, name: str, base: list[Episode], count: int) -> None:
    clock = time.perf_counter
    laying = clock()
    dispatcher, updater = sides(scenario, name, count)
    episodes = [base[number % DISTINCT] for number in range(count)]
    carries = method(name).carries
    worlds = Worlds(scenario, episodes, carries, rides=carries > 0 and updater.rides)
    state = dispatcher.with_draws(max(each.tasks.most_of_an_en for each in base))
    tally = Tally(False, 0.0, *np.zeros((2, count), np.int64))
    player = GpuPlayer(dispatcher.rule, updater.rule, state, updater.state, tally)
    laid = clock()
    worlds.run_compiled(lambda *given: player.warm_up(*given))
    warm = clock()
    while worlds.run_compiled(player):
        pass
    done = clock()
    tasks = sum(len(each.tasks) for each in episodes)
    rate, played = on_core(scenario, name, base)
    differ = 0
    for number in range(min(DISTINCT, count)):
        ours, theirs = worlds.outcome(number), played[number]
        for field in COMPARED:
            here, there = getattr(ours, field), getattr(theirs, field)
            differ += int((~((here == there) | ((here != here) & (there != there)))).sum())
    whole = tasks / (done - warm)
    alone = tasks / player.kernel_seconds
    compared = len(COMPARED) * sum(len(each.tasks) for each in base)
    print(
        f"{scenario.name} at {scenario.workload.rate:g}, {name}, {count} worlds:"
        f" kernel {alone / 1e6:.1f} M tasks/s ({alone / rate:.0f} times a core's {rate / 1e6:.2f}),"
        f" with copying back {whole / 1e6:.1f}; before that {laid - laying:.1f} s to lay out,"
        f" {warm - laid:.1f} s to copy and compile; {differ} of {compared} values differ",
        flush=True,
    )


def main() -> None:
    try:
        print(cuda().get_current_device().name)
    except NoGpuError as why:
        print(f"left out: {why}")
        return
    profile = "--profile" in sys.argv
    second = ["episode.window_ms=1000", "episode.warmup_ms=0"] if profile else []
    for preset, rate, name, count in CASES[:1] if profile else CASES:
        scenario = load(preset, [f"workload.rate={rate}", *second])
        base = [episode(scenario, 0, number) for number in range(DISTINCT)]
        on_gpu(scenario, name, base, count)


if __name__ == "__main__":
    main()
