"""The one loop: a method on a batch of worlds, from decision to decision, to the end.

Everything that plays methods goes through here, and whoever wants to look on is a `Watcher`.
Environments (`cosmo.envs`) turn the loop inside out, as their caller holds it; training of `cosmo`
has a compiled one (`learn.turn`), which tests hold to this.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cosmo.control.arguments import MethodLike, as_method
from cosmo.control.compiled import can_compile, play_compiled
from cosmo.control.compiled_rows import with_compiled_rows
from cosmo.control.gpu import GpuPlayer
from cosmo.control.update_intervals import IntervalCheck
from cosmo.control.yardsticks import FullInformation, Yardstick
from cosmo.device import chosen_device
from cosmo.engine import Progress, engine_of
from cosmo.engine import worlds as start
from cosmo.errors import InputError
from cosmo.measure import Regret
from cosmo.node import (
    Dispatcher,
    DispatchObservation,
    Method,
    ResultObservation,
    UpdateObservation,
    Updater,
)
from cosmo.node.guard import (
    ask,
    checked_actions,
    checked_numbers,
    checked_ride,
    checked_update,
    made_sides,
)
from cosmo.node.observation import Bools, Floats, Ints, SnStates
from cosmo.scenario import Scenario
from cosmo.workload import Episode
from cosmo.world import Batch, Outcome, Watcher, site_of
from cosmo.world.device_code import NoGpuError

_PROGRESS_EVERY = 256  # turns


def play(
    scenario: Scenario,
    method: MethodLike,
    episodes: Sequence[Episode],
    seeds: int | Sequence[int] = 0,
    numbers: Sequence[int] | None = None,
    progress: Progress | None = None,
    watchers: Sequence[Watcher] = (),
    compiled: bool = True,
    remarks: set[str] | None = None,
    device: str | None = None,
) -> list[Outcome]:
    """Play episodes side by side with one method.

    Rules (`policy.rules`) are compiled, unless `compiled` is false, the engine is another one, or a
    watcher other than `Regret` looks on. They decide the same either way.

    Args:
        scenario: The scenario of all episodes.
        method: A method's name, a method, or its class. An engine whose nodes decide by themselves
            (`live`) needs a name, and takes no watchers.
        episodes: One world each; all have the same window.
        seeds: The seed of the run, or one for each episode.
        numbers: The episodes' numbers in their run, 0, 1, … by default: with the seed, they
            determine the method's own random draws.
        progress: Called now and then with the number of tasks that have entered all worlds.
        watchers: Observers of decisions and outcomes (`cosmo.world.watch`).
        compiled: False: rules are run as plain Python, as on a node.
        remarks: Is given what the method says of what it has met (`Dispatcher.remark`).
        device: "cpu" or "gpu"; by default, what `COSMO_DEVICE` says. Outcomes are the same. What
            cannot be played on a GPU is played on the CPU, with a remark.

    Returns:
        What became of each episode, in their order.

    Raises:
        InputError: In one line, for bad input, or if the method answers wrongly.

    """
    seeds = [int(seeds)] * len(episodes) if isinstance(seeds, int | np.integer) else seeds
    numbers = range(len(episodes)) if numbers is None else numbers
    for name, each in (("seeds", seeds), ("numbers", numbers)):
        if len(each) != len(episodes):
            raise InputError(
                f"{name}: must be one for each of the {len(episodes)} episode(s), not {len(each)}"
            )
    engine = engine_of(scenario)
    if engine.play is not None:
        if watchers or not isinstance(method, str):
            raise InputError(
                f"engine = {scenario.engine!r}: its nodes make their method and decide by"
                " themselves: play one by name ('priced-books', 'cosmo:checkpoint=FOLDER',"
                " 'file.py:Class'), without watchers"
            )
        return engine.play(scenario, method, episodes, seeds, progress)
    method = as_method(method)
    streams = list(zip(seeds, numbers, strict=True))
    site = site_of(scenario, streams)
    dispatcher, updater = made_sides(method, site)
    pace = IntervalCheck(method, scenario.sn.count, len(episodes))
    device = chosen_device(device)
    if (
        compiled
        and scenario.engine == "embedded"
        and can_compile(dispatcher, updater)
        and method.privileged == isinstance(dispatcher, FullInformation)
        and all(type(watcher) is Regret for watcher in watchers)
    ):
        regret = bool(watchers)
        given, told = (scenario, episodes, method.carries), (regret, progress, pace)
        try:
            player = GpuPlayer if device == "gpu" else None
            outcomes = play_compiled(*given, dispatcher, updater, *told, player)
        except NoGpuError as why:
            _note_cpu(remarks, str(why))
            # Memories have what was played until the GPU had no room for more.
            dispatcher, updater = made_sides(method, site)
            outcomes = play_compiled(*given, dispatcher, updater, *told)
        _note_remarks(remarks, method, dispatcher, updater)
        return outcomes
    if device == "gpu":
        _note_cpu(
            remarks,
            "the method is not a rule, the engine is not embedded, or the episode is recorded",
        )
    if compiled:
        dispatcher = with_compiled_rows(dispatcher)
    for watcher in watchers:
        watcher.begins(site, dispatcher, updater)
    taken = turns(scenario, method, episodes, dispatcher, updater, watchers, pace)
    for number, worlds in enumerate(taken, 1):
        if progress is not None and number % _PROGRESS_EVERY == 0:
            progress(worlds.generated)
    outcomes = [worlds.outcome(world) for world in range(len(worlds))]
    for watcher in watchers:
        outcomes = watcher.ended(outcomes)
    _note_remarks(remarks, method, dispatcher, updater)
    return outcomes


def _note_cpu(remarks: set[str] | None, why: str) -> None:
    if remarks is not None:
        remarks.add(f"device = 'gpu': {why}; played on the CPU, with the same results")


def _note_remarks(
    remarks: set[str] | None, method: Method, dispatcher: Dispatcher, updater: Updater | None
) -> None:
    if remarks is not None:
        sides = dispatcher, updater
        said = [
            str(ask(method, lambda side: side.remark(), side)) for side in sides if side is not None
        ]
        remarks.update(line for line in said if line)


def turns(
    scenario: Scenario,
    method: Method,
    episodes: Sequence[Episode],
    dispatcher: Dispatcher,
    updater: Updater | None,
    watchers: Sequence[Watcher] = (),
    pace: IntervalCheck | None = None,
) -> Iterator[Batch]:
    """Play episodes side by side, decision by decision: yields the worlds, always the same batch,
    after each turn, and once more when all is over. Watchers know already who decides.
    """
    worlds = start(scenario, episodes, method.carries, updater is not None and updater.rides)
    if any(watcher.wants_journal for watcher in watchers):
        worlds.keep_journal()
    turn = worlds.advance()
    while not turn.over:
        if len(turn.feedback):
            ask(method, dispatcher.observe, turn.feedback)
        if len(turn.dispatch):
            for watcher in watchers:
                watcher.asked(turn.dispatch, worlds.truth)
            action = dispatched(method, dispatcher, turn.dispatch, worlds)
            for watcher in watchers:
                watcher.dispatched(turn.dispatch, action)
            worlds.answer(action=action)
        if updater is not None and len(turn.update):
            if pace is not None:
                pace.note(turn.update)
            send, interval_ms, told = updated(method, updater, turn.update)
            for watcher in watchers:
                watcher.updated(turn.update, send, interval_ms)
            worlds.answer(send=send, interval_ms=interval_ms, numbers=told)
        if updater is not None and len(turn.result):
            ride, told = ridden(method, updater, turn.result)
            for watcher in watchers:
                watcher.ridden(turn.result, ride)
            worlds.answer(ride=ride, ride_numbers=told)
        turn = worlds.advance()
        yield worlds
    if len(turn.feedback):  # what is heard after the last decision (R41)
        ask(method, dispatcher.observe, turn.feedback)
    yield worlds


def dispatched(
    method: Method,
    dispatcher: Dispatcher,
    tasks: DispatchObservation,
    worlds: Batch,
    rows: Any = slice(None),
) -> Ints:
    """[row] what a dispatcher decides, checked; a yardstick is handed the truth.

    `rows` says which of the pending decisions these are.
    """
    if method.privileged:
        if not isinstance(dispatcher, Yardstick):
            raise InputError(
                f"method {type(method).__name__}: is privileged, so its dispatcher must be a"
                " cosmo.control.yardsticks.Yardstick"
            )
        knowing, truth = dispatcher, worlds.truth(dispatcher.behind_all).rows(rows)
        told: ArrayLike = ask(method, lambda seen: knowing.decide_knowing(seen, truth), tasks)
        return checked_actions(method, told, tasks)
    answer = ask(method, dispatcher.decide, tasks)
    return checked_actions(method, answer, tasks)


def updated(
    method: Method, updater: Updater, nodes: UpdateObservation
) -> tuple[Bools, Floats, Floats]:
    """[row, k] receivers, [row] ms until the next decision, [row, d] what is sent, checked."""
    send, interval_ms = checked_update(method, ask(method, updater.decide, nodes), nodes)
    sending = np.asarray(send.any(axis=1))
    told = encoded(method, updater, nodes.states, sending, method.carries)
    return send, interval_ms, told


def ridden(method: Method, updater: Updater, results: ResultObservation) -> tuple[Bools, Floats]:
    """[row] whether a status rides on a result, [row, d] what it says, checked."""
    ride = checked_ride(method, ask(method, updater.ride, results), len(results))
    return ride, encoded(method, updater, results.states, ride, method.carries)


def encoded(
    method: Method, updater: Updater, states: SnStates, send: Bools, carries: int
) -> Floats:
    """[row, d] the numbers of those that send; zeros for the others."""
    told = np.zeros((len(states), carries))
    count = np.count_nonzero(send)  # sooner than all() and any(), and asked at every decision
    if not count:
        return told
    if count == len(send):
        sending = states
    else:
        sending = SnStates(
            states.world[send], states.sn[send], states.time_ms[send], states.state[send]
        )
    answer = ask(method, updater.encode, sending)
    told[send] = checked_numbers(method, answer, len(sending), carries)
    return told
