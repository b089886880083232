"""`cosmo.check_method`: is a method of mine right? For users' own tests, as in

def test_my_policy():
    cosmo.check_method(MyPolicy)
"""

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cosmo.control.arguments import MethodLike, ScenarioLike, as_method, as_scenario, several_seeds
from cosmo.control.play import play
from cosmo.errors import InputError
from cosmo.node import (
    NOTHING,
    Dispatcher,
    DispatchObservation,
    Feedback,
    Method,
    ResultObservation,
    Site,
    SnStates,
    UpdateObservation,
    Updater,
)
from cosmo.node.guard import (
    checked_actions,
    checked_numbers,
    checked_ride,
    checked_update,
    made_dispatcher,
    made_updater,
)
from cosmo.scenario import Scenario
from cosmo.workload import episode
from cosmo.world import Outcome

# What became of an episode, and every call of the method in it with its answer.
_Played = tuple[Outcome, list[tuple[str, Any]]]


class MethodError(InputError, AssertionError):
    """A method breaks a rule of the four calls; one line says which, and where."""


def check_method(
    method: MethodLike,
    *,
    scenarios: ScenarioLike | Sequence[ScenarioLike] = ("paper", "campus"),
    seeds: int | Iterable[int] = (0,),
    window_ms: float = 1500.0,
) -> None:
    """Play a method on short episodes and raise `MethodError` for the first rule that it breaks.

    The rules, on every scenario, for the EN's side and for the SN's:
    answers have the right shapes and kinds; observations and feedback are not changed; the same
    seed gives the same decisions, in a method that is made anew; a world is played the same alone
    and in a batch; `would_decide`, `explain` and `encode` have no effect on later decisions, and
    `would_decide` says what `decide` then does; `encode` gives the same numbers for the same
    states; nothing goes from the SN's side to the EN's but what a status carries, so that the
    method pays for what it reads (its updater and its dispatcher are made from two objects); and
    nothing goes from one EN or SN to another (each has an object of its own, which sees its rows
    alone).

    Args:
        method: A method's name as on the command line, a method, or its class.
        scenarios: One or several scenarios, presets' names or paths of TOML files.
        seeds: One or several; every scenario is played with each.
        window_ms: The length of an episode.

    Raises:
        MethodError: An AssertionError, so that tests fail with one line, and an InputError; it
            names the first call that was answered differently.
        InputError: In one line, for an unknown method or scenario, or if there is no scenario.

    """
    several = [scenarios] if isinstance(scenarios, ScenarioLike) else scenarios
    if not several:
        raise InputError("scenarios = []: must have one at least")
    make = _maker(method)
    short = {"episode.window_ms": window_ms, "episode.warmup_ms": 0.0, "workload.rate": 260.0}
    for source in several:
        for seed in several_seeds(seeds):
            _check_on(as_scenario(source, short), make, seed)


# What is played again, each in another way, and what is wrong if that changes anything.
_RULES = {
    "anew": "decides differently when it is created again with the same seed; draw from"
    " site.random(purpose), and keep no state outside of dispatcher and updater",
    "asked": "decides differently when would_decide, explain or encode are called in between;"
    " they must have no effect",
    "apart": "decides differently when its updater and its dispatcher do not share an object:"
    " the EN reads what the SN has not sent, or the SN what the EN knows",
    "split": "decides differently when every EN and every SN has an object of its own: one reads"
    " what another has seen and not sent",
    "alone": "decides differently alone than in a batch; keep worlds apart by the column world",
}


def _check_on(scenario: Scenario, make: Callable[[], Method], seed: int) -> None:
    name = type(make()).__name__
    # Called like the method itself, for the messages.
    kinds: list[type[_Watched]] = [_Watched, _Asked, _Apart, _Split]
    watched, asked, apart, split = (type(name, (kind,), {}) for kind in kinds)

    def played(kind: type[_Watched], *numbers: int) -> list[_Played]:
        worlds = [episode(scenario, seed, number) for number in numbers]
        playing = kind(make)
        try:
            outcomes = play(scenario, playing, worlds, seed, numbers)
            return [(each, playing.calls.get(world, [])) for world, each in enumerate(outcomes)]
        except MethodError:
            raise
        except InputError as error:
            raise MethodError(f"{error} (on {scenario.name})") from error

    first = played(watched, 0, 1)
    again: dict[str, Callable[[], list[_Played]]] = {
        "anew": lambda: played(watched, 0, 1),
        "asked": lambda: played(asked, 0, 1),
        "apart": lambda: played(apart, 0, 1),
        "split": lambda: played(split, 0, 1),
        "alone": lambda: [*played(watched, 0), *played(watched, 1)],
    }
    for rule, wrong in _RULES.items():
        other = again[rule]()
        if not _same([each for each, _ in first], [each for each, _ in other]):
            where = _first_difference(first, other)
            raise MethodError(f"method {name}: {wrong}{where} (on {scenario.name})")


def _maker(method: MethodLike) -> Callable[[], Method]:
    """Makes the method anew; an object is copied as it was given."""
    if isinstance(method, Method):
        original = copy.deepcopy(method)
        return lambda: copy.deepcopy(original)
    return lambda: as_method(method)


def _same(one: list[Outcome], other: list[Outcome]) -> bool:
    return all(
        np.array_equal(a.action, b.action)
        and np.array_equal(a.finished_ms, b.finished_ms, equal_nan=True)
        and np.array_equal(_of_updates(a), _of_updates(b), equal_nan=True)
        for a, b in zip(one, other, strict=True)
    )


def _first_difference(one: list[_Played], other: list[_Played]) -> str:
    """The first call of the first world that was answered differently, in words."""
    for (_, calls), (_, again) in zip(one, other, strict=True):
        for call, same in zip(calls, again, strict=False):
            if call != same:
                what, answer = call
                return f"; first {what}: {answer}, then {same[1]}"
    return ""


def _of_updates(outcome: Outcome) -> NDArray[np.float64]:
    """What the SNs did, in numbers: how often, on what, and how fresh that kept the ENs."""
    counts = outcome.updates, outcome.update_decisions, outcome.rides, outcome.status_bytes
    status = outcome.status
    ages = () if status is None else (status.aoi_ms, status.peak_aoi_ms, status.decision_age_ms)
    return np.array([*counts, *ages], np.float64)


def _arrays(seen: Any) -> dict[str, NDArray[Any]]:
    """Copies of the arrays of an observation, by field."""
    return {each.name: np.array(getattr(seen, each.name)) for each in fields(seen)}


class _Watched(Method):
    """The method, with an eye on what it does to observations, and a note of what it answers."""

    def __init__(self, make: Callable[[], Method]) -> None:
        self._make, self._inner = make, make()
        self.calls: dict[int, list[tuple[str, Any]]] = {}  # of each world
        self.carries, self.privileged = self._inner.carries, self._inner.privileged

    def dispatcher(self, site: Site) -> Dispatcher:
        """A yardstick's as it is: only a simulation asks it."""
        made = made_dispatcher(self._inner, site)
        return made if self.privileged else self._dispatching(made)

    def _dispatching(self, made: Dispatcher) -> Dispatcher:
        return _WatchedDispatcher(self, made)

    def updater(self, site: Site) -> Updater:
        """The method's updater, watched."""
        return _WatchedUpdater(self, made_updater(self._inner, site))

    def unchanged(self, call: Callable[[Any], Any], name: str, seen: Any) -> Any:
        """What the call gives; MethodError if it has changed what it was shown."""
        before = _arrays(seen)
        answer = call(seen)
        for field_name, value in before.items():
            now = np.asarray(getattr(seen, field_name))
            if not np.array_equal(now, value, equal_nan=value.dtype.kind == "f"):
                raise MethodError(
                    f"method {type(self).__name__}: {name} changes what it is shown"
                    f" ({field_name}); copy it first"
                )
        return answer

    def note(self, call: str, nodes: NDArray[Any], seen: Any, answer: ArrayLike) -> None:
        """Keep what was answered to each row."""
        told = np.asarray(answer)
        if told.shape[:1] == (len(seen),):  # of any other shape, somebody else complains
            for row, world in enumerate(seen.world.tolist()):
                what = f"{call} of node {nodes[row]} at {seen.time_ms[row]:.3f} ms, row {row}"
                self.calls.setdefault(world, []).append((what, told[row].tolist()))


class _Asked(_Watched):
    """The same, asked for more than it has to answer."""

    def _dispatching(self, made: Dispatcher) -> Dispatcher:
        return _AskedDispatcher(self, made)

    def updater(self, site: Site) -> Updater:
        """Asked to encode every state that it sees."""
        return _AskedUpdater(self, made_updater(self._inner, site))


class _Apart(_Watched):
    """The same, with the SN's side made from an object of its own, as on another machine."""

    def updater(self, site: Site) -> Updater:
        """The watched updater of another object of the method."""
        if self.carries == NOTHING:
            return super().updater(site)
        return _WatchedUpdater(self, made_updater(self._make(), site))


class _Split(_Watched):
    """The same, with an object of its own for every node, which sees the rows of its node alone."""

    def dispatcher(self, site: Site) -> Dispatcher:
        """A dispatcher that asks an object of its own for each EN."""
        if self.privileged:
            return super().dispatcher(site)
        made = [made_dispatcher(self._make(), site) for _ in range(len(site.en))]
        return self._dispatching(_OneForEachEn(self, made))

    def updater(self, site: Site) -> Updater:
        """An updater that asks an object of its own for each SN."""
        made = [made_updater(self._make(), site) for _ in range(len(site.sn))]
        return _WatchedUpdater(self, _OneForEachSn(self, made))


def _of_each(nodes: NDArray[Any], seen: Any) -> Iterator[tuple[int, NDArray[np.bool_], Any]]:
    """(node, which rows are its own, these rows) of every node that is there."""
    for node in np.unique(nodes).tolist():
        own = nodes == node
        columns = {each.name: getattr(seen, each.name)[own] for each in fields(seen)}
        yield node, own, type(seen)(**columns)


class _OneForEachEn(Dispatcher):
    def __init__(self, method: Method, made: list[Dispatcher]) -> None:
        self._method, self._made = method, made

    def decide(self, observations: DispatchObservation, /) -> ArrayLike:
        """[row] the action, decided by the dispatcher of the row's EN."""
        action = np.zeros(len(observations), np.int64)
        for en, own, rows in _of_each(observations.en, observations):
            action[own] = checked_actions(self._method, self._made[en].decide(rows), rows)
        return action

    def observe(self, feedback: Feedback, /) -> None:
        """Each EN hears of its own tasks."""
        for en, _, rows in _of_each(feedback.en, feedback):
            self._made[en].observe(rows)


class _OneForEachSn(Updater):
    def __init__(self, method: Method, made: list[Updater]) -> None:
        self._method, self._made = method, made

    @property
    def rides(self) -> bool:
        """Whether any of them wants to be asked before results leave."""
        return any(each.rides for each in self._made)

    def decide(self, observations: UpdateObservation, /) -> tuple[ArrayLike, ArrayLike]:
        """[row, k] whether to send, [row] interval in ms, by the updater of the row's SN."""
        send = np.zeros((len(observations), observations.ens), np.bool_)
        interval_ms = np.zeros(len(observations))
        for sn, own, rows in _of_each(observations.sn, observations):
            answer = self._made[sn].decide(rows)
            send[own], interval_ms[own] = checked_update(self._method, answer, rows)
        return send, interval_ms

    def ride(self, results: ResultObservation, /) -> ArrayLike:
        """[row] whether a status rides on the result, decided by the updater of the row's SN."""
        ride = np.zeros(len(results), np.bool_)
        for sn, own, rows in _of_each(results.sn, results):
            ride[own] = checked_ride(self._method, self._made[sn].ride(rows), len(rows))
        return ride

    def encode(self, states: SnStates, /) -> NDArray[Any]:
        """[row, d] the numbers of statuses, made by the updater of the row's SN."""
        numbers = np.zeros((len(states), self._method.carries))
        for sn, own, rows in _of_each(states.sn, states):
            told = self._made[sn].encode(rows)
            numbers[own] = checked_numbers(self._method, told, len(rows), self._method.carries)
        return numbers


class _WatchedDispatcher(Dispatcher):
    def __init__(self, method: _Watched, inner: Dispatcher) -> None:
        self._method, self._inner = method, inner

    def decide(self, observations: DispatchObservation, /) -> ArrayLike:
        """[row] the actions of the watched dispatcher, which are noted."""
        answer: ArrayLike = self._method.unchanged(self._inner.decide, "decide", observations)
        self._method.note("decide", observations.en, observations, answer)
        return answer

    def observe(self, feedback: Feedback, /) -> None:
        """Hand feedback to the watched dispatcher, which must not change it."""
        self._method.unchanged(self._inner.observe, "observe", feedback)


class _AskedDispatcher(_WatchedDispatcher):
    def decide(self, observations: DispatchObservation, /) -> ArrayLike:
        """Asked what it would do first, three times."""
        name = type(self._method).__name__
        told = None
        for _ in range(3):
            told = self._method.unchanged(self._inner.would_decide, "would_decide", observations)
            self._method.unchanged(self._inner.explain, "explain", observations)
        answer = super().decide(observations)
        if told is not None:
            would = checked_actions(self._method, told, observations)
            does = checked_actions(self._method, answer, observations)
            if not np.array_equal(would, does):
                raise MethodError(f"method {name}: decide does not do what would_decide says")
        return answer


class _WatchedUpdater(Updater):
    def __init__(self, method: _Watched, inner: Updater) -> None:
        self._method, self._inner = method, inner

    def decide(self, observations: UpdateObservation, /) -> tuple[ArrayLike, ArrayLike]:
        """[row, k] whether to send, [row] interval in ms, of the watched updater; noted."""
        answer: tuple[ArrayLike, ArrayLike] = self._method.unchanged(
            self._inner.decide, "updater.decide", observations
        )
        for part, name in zip(answer, ("send", "interval_ms"), strict=False):
            told = np.asarray(part)
            if name == "send" and told.shape == (len(observations),):  # to all of them, or none
                told = told[:, None] & observations.reached
            self._method.note(f"updater.decide ({name})", observations.sn, observations, told)
        return answer

    @property
    def rides(self) -> bool:
        """Whether it wants to be asked before results leave."""
        return self._inner.rides

    def ride(self, results: ResultObservation, /) -> ArrayLike:
        """[row] whether a status rides on each result; it is noted."""
        answer: ArrayLike = self._method.unchanged(self._inner.ride, "ride", results)
        self._method.note("ride", results.sn, results, answer)
        return answer

    def encode(self, states: SnStates, /) -> NDArray[Any]:
        """[row, d] the numbers of the watched updater's statuses."""
        numbers: NDArray[Any] = self._method.unchanged(self._inner.encode, "encode", states)
        return numbers


class _AskedUpdater(_WatchedUpdater):
    def decide(self, observations: UpdateObservation, /) -> tuple[ArrayLike, ArrayLike]:
        """Asked for the numbers of every state, twice, whether it sends them or not."""
        one, other = (
            checked_numbers(
                self._method,
                np.array(self.encode(observations.states)),
                len(observations),
                self._method.carries,
            )
            for _ in range(2)
        )
        if not np.array_equal(one, other):
            raise MethodError(
                f"method {type(self._method).__name__}: encode gives other numbers for the same"
                " states"
            )
        return super().decide(observations)
