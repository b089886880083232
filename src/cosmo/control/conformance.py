"""`cosmo.check_method`: is a method of mine right? For users' own tests, as in

def test_my_policy():
    cosmo.check_method(MyPolicy)
"""

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cosmo.control.arguments import MethodLike, ScenarioLike, as_method, as_scenario, several_seeds
from cosmo.control.play import play
from cosmo.errors import InputError
from cosmo.node import (
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


# What is played again, each in another way (`_Watched.way`), and what is wrong if that changes
# anything.
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
    kind = type(name, (_Watched,), {})  # called like the method itself, for the messages

    def played(way: str, *numbers: int) -> list[_Played]:
        worlds = [episode(scenario, seed, number) for number in numbers]
        playing = kind(make, way)
        try:
            outcomes = play(scenario, playing, worlds, seed, numbers)
            return [(each, playing.calls.get(world, [])) for world, each in enumerate(outcomes)]
        except MethodError:
            raise
        except InputError as error:
            raise MethodError(f"{error} (on {scenario.name})") from error

    first = played("first", 0, 1)
    for rule, wrong in _RULES.items():
        alone = rule == "alone"
        other = [*played(rule, 0), *played(rule, 1)] if alone else played(rule, 0, 1)
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
    """The method, with an eye on what it does to observations, and a note of what it answers.

    `way` is how else it is played: "asked" for more than it has to answer; "apart" with the SN's
    side made from an object of its own, as on another machine; "split" with an object of its own
    for every node, which sees the rows of its node alone.
    """

    def __init__(self, make: Callable[[], Method], way: str) -> None:
        self._make, self._inner, self.way = make, make(), way
        self.calls: dict[int, list[tuple[str, Any]]] = {}  # of each world
        self.carries, self.privileged = self._inner.carries, self._inner.privileged

    def dispatcher(self, site: Site) -> Dispatcher:
        """A yardstick's as it is: only a simulation asks it."""
        if self.privileged:
            return made_dispatcher(self._inner, site)
        if self.way == "split":
            made = [made_dispatcher(self._make(), site) for _ in range(len(site.en))]
        else:
            made = [made_dispatcher(self._inner, site)]
        return _WatchedDispatcher(self, made)

    def updater(self, site: Site) -> Updater:
        """Of the same object, of another one, or of one for each SN."""
        if self.way == "split":
            made = [made_updater(self._make(), site) for _ in range(len(site.sn))]
        else:
            made = [made_updater(self._make() if self.way == "apart" else self._inner, site)]
        return _WatchedUpdater(self, made)

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


def _told(
    calls: list[Callable[[Any], Any]],
    nodes: NDArray[Any],
    seen: Any,
    checked: Callable[[Any, Any], tuple[NDArray[Any], ...]],
) -> Any:
    """What one object answers for all nodes; or what one for each does, put together, where every
    node sees its own rows alone. `checked` makes arrays with a row each of an answer to some rows.
    """
    if len(calls) == 1 or not len(seen):
        return calls[0](seen)
    whole: list[NDArray[Any]] = []
    for node in np.unique(nodes).tolist():
        own = nodes == node
        rows = type(seen)(**{each.name: getattr(seen, each.name)[own] for each in fields(seen)})
        parts = checked(calls[node](rows), rows)
        whole = whole or [np.zeros((len(seen), *part.shape[1:]), part.dtype) for part in parts]
        for into, part in zip(whole, parts, strict=True):
            into[own] = part
    return tuple(whole) if len(whole) > 1 else next(iter(whole), None)


class _WatchedDispatcher(Dispatcher):
    def __init__(self, method: _Watched, made: list[Dispatcher]) -> None:
        self._method, self._made = method, made

    def decide(self, observations: DispatchObservation, /) -> ArrayLike:
        """What it decides; asked what it would do first, three times, if `way` says so."""
        method, first = self._method, self._made[0]
        would: Any = None
        for _ in range(3 if method.way == "asked" else 0):
            would = method.unchanged(first.would_decide, "would_decide", observations)
            method.unchanged(first.explain, "explain", observations)
        answer: ArrayLike = method.unchanged(self._decided, "decide", observations)
        method.note("decide", observations.en, observations, answer)
        if would is not None:
            told, done = (checked_actions(method, each, observations) for each in (would, answer))
            if not np.array_equal(told, done):
                raise MethodError(
                    f"method {type(method).__name__}: decide does not do what would_decide says"
                )
        return answer

    def _decided(self, seen: DispatchObservation) -> Any:
        calls: list[Callable[[Any], Any]] = [each.decide for each in self._made]
        return _told(calls, seen.en, seen, lambda *told: (checked_actions(self._method, *told),))

    def observe(self, feedback: Feedback, /) -> None:
        """Hand feedback to the watched dispatchers, which must not change it."""
        calls: list[Callable[[Any], Any]] = [each.observe for each in self._made]
        self._method.unchanged(
            lambda seen: _told(calls, seen.en, seen, lambda *told: ()), "observe", feedback
        )


class _WatchedUpdater(Updater):
    def __init__(self, method: _Watched, made: list[Updater]) -> None:
        self._method, self._made = method, made

    def _answer(self, call: str, seen: Any, checked: Callable[[Any, Any], Any]) -> Any:
        calls = [getattr(each, call) for each in self._made]
        name = "updater.decide" if call == "decide" else call
        return self._method.unchanged(
            lambda shown: _told(calls, shown.sn, shown, checked), name, seen
        )

    def decide(self, observations: UpdateObservation, /) -> tuple[ArrayLike, ArrayLike]:
        """What it decides; asked for the numbers of every state first, twice, if `way` says so."""
        method = self._method
        if method.way == "asked":
            one, other = (
                self._numbers(np.array(self.encode(observations.states)), observations)
                for _ in range(2)
            )
            if not np.array_equal(one, other):
                raise MethodError(
                    f"method {type(method).__name__}: encode gives other numbers for the same"
                    " states"
                )
        answer: tuple[ArrayLike, ArrayLike] = self._answer(
            "decide", observations, lambda *told: checked_update(method, *told)
        )
        for part, name in zip(answer, ("send", "interval_ms"), strict=False):
            told = np.asarray(part)
            if name == "send" and told.shape == (len(observations),):  # to all of them, or none
                told = told[:, None] & observations.reached
            method.note(f"updater.decide ({name})", observations.sn, observations, told)
        return answer

    @property
    def rides(self) -> bool:
        """Whether any of them wants to be asked before results leave."""
        return any(each.rides for each in self._made)

    def ride(self, results: ResultObservation, /) -> ArrayLike:
        """[row] whether a status rides on each result; it is noted."""
        answer: ArrayLike = self._answer(
            "ride",
            results,
            lambda told, rows: (checked_ride(self._method, told, len(rows)),),
        )
        self._method.note("ride", results.sn, results, answer)
        return answer

    def encode(self, states: SnStates, /) -> NDArray[Any]:
        """[row, d] the numbers of the watched updaters' statuses."""
        numbers: NDArray[Any] = self._answer(
            "encode", states, lambda told, rows: (self._numbers(told, rows),)
        )
        return numbers

    def _numbers(self, told: ArrayLike, rows: Any) -> NDArray[np.float64]:
        return checked_numbers(self._method, told, len(rows), self._method.carries)
