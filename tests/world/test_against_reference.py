"""The engine and an independent, plain implementation of the model agree on every task."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cosmo import Worlds, load, method, play
from cosmo.node import DONE, EXPIRED, GIVEN_UP, REFUSED
from cosmo.workload import episode
from reference.world import run, whole_run
from replay import assert_same, reference_parameters, reference_tasks
from scenarios import worlds

RATES = (120, 160, 200, 220, 240, 280, 320)


def full_information(view):
    routes = [route for route, good in enumerate(view.feasible) if good]
    return min(routes, key=lambda route: view.estimates[route]) if routes else len(view.feasible)


RULES = {
    "all-local": lambda view: 0,
    "all-offload": lambda view: 1,
    "local-until-full": lambda view: 0 if view.local_room else 1,
    "full-information": full_information,
}


@pytest.mark.parametrize("arrivals", ["deterministic", "poisson", "bursty"])
@pytest.mark.parametrize("rate", RATES)
def test_fixed_methods_agree_on_every_task(rate, arrivals):
    scenario = load("paper", [f"workload.rate={rate}", f"workload.arrivals={arrivals}"])
    world = episode(scenario, seed=rate, number=1)
    tasks, _ = reference_tasks(world)
    for name, rule in RULES.items():
        [outcome] = play(scenario, method(name), [world])
        results, _ = run(reference_parameters(scenario, world), tasks, rule)
        assert_same(outcome, results)


@pytest.mark.parametrize("preset", ["shared-sn", "campus", "fading-backhaul"])
def test_full_information_agrees_on_the_other_presets(preset):
    scenario = load(preset, ["workload.rate=200"])
    world = episode(scenario, seed=5, number=0)
    tasks, background = reference_tasks(world)
    [outcome] = play(scenario, method("full-information"), [world])
    parameters = reference_parameters(scenario, world)
    results, _ = run(parameters, tasks, full_information, background=background)
    assert_same(outcome, results)


def test_random_actions_replay_to_the_same_outcomes():
    scenario = load("paper", ["workload.rate=320"])
    world = episode(scenario, seed=3, number=0)
    tasks, _ = reference_tasks(world)
    [outcome] = play(scenario, method("random"), [world])
    actions = outcome.action
    results, _ = run(
        reference_parameters(scenario, world), tasks, lambda view: int(actions[view.index])
    )
    assert_same(outcome, results)


def _scramble(*numbers):
    """A pure function of the situation that both sides can compute."""
    total = 0
    for number in numbers:
        total = (total * 1_000_003 + int(number) + 12345) % 2_147_483_647
    return total


SALTS, INTERVALS = st.integers(0, 1000), st.sampled_from([3.0, 11.0, 45.0])


@settings(max_examples=60, deadline=None)
@given(worlds(), SALTS, INTERVALS)
def test_any_world_with_updates_agrees(case, salt, interval):
    assert_agreement(*case, salt, interval)


def assert_agreement(scenario, world, salt, interval):
    """Several nodes, changing rates, tenants, leaving UEs, speeds, outages: tasks, states, caches
    and ACKs.
    """
    reach = scenario.links.reach
    seen_tasks, seen_updates, heard = {}, [], []
    # R41: ENs count their own tasks; [EN][number] is the number in the episode.
    numbers = [np.flatnonzero(world.tasks.en == en) for en in range(scenario.en.count)]

    def decide(index, en):
        """Any SN that the EN reaches (R30), local or reject."""
        count = int((reach[en] >= 0).sum())
        action = _scramble(salt, index) % (count + 2)
        return action if action <= count else reach.shape[1] + 1

    def update(sn, now, ens):
        """Told are all ENs, none, or some of them (R31)."""
        drawn = _scramble(salt, sn, round(now * 1000))
        some = [(drawn >> en) % 2 == 0 for en in range(ens)]
        return (True, False, some)[drawn % 3], interval + sn

    def ride(sn, en, now):
        return _scramble(salt, sn, en, round(now * 1000)) % 2 == 0

    rides = salt % 2 == 0
    batch = Worlds(scenario, [world], status_dimensions=4, rides=rides)
    turn = batch.advance()
    while not turn.over:
        see, told = turn.dispatch, turn.feedback
        heard += _heard(told, numbers)
        if len(see):
            index = int(numbers[see.en[0]][see.task[0]])
            truth = batch.truth()
            assert truth.place[0] == index
            seen_tasks[index] = (
                see.time_ms[0], see.en_state[0].copy(), bool(see.local_room[0]),
                see.status_ms[0].copy(), see.status[0].copy(),
                truth.delay_ms[0].copy(), truth.feasible[0].copy(),
                see.cycles[0], see.local_wait_ms[0], see.en_speed[0],
            )  # fmt: skip
            batch.answer(action=decide(index, int(see.en[0])))
        look = turn.update
        if len(look):
            ens = int(look.reached[0].sum())
            send, wait = update(int(look.sn[0]), float(look.time_ms[0]), ens)
            told_whom = np.zeros((1, look.ens), bool)
            told_whom[0, :ens] = send
            seen_updates.append(
                (int(look.sn[0]), look.time_ms[0], look.sn_state[0].copy(),
                 look.acknowledged_ms[0].copy(), look.acknowledged[0].copy(),
                 (look.recent_delay_ms[0], look.recent_success[0], look.recent_failure[0]),
                 look.sn_speed[0], look.up_since_ms[0])
            )  # fmt: skip
            batch.answer(send=told_whom, interval_ms=wait, numbers=look.sn_state[:, :4])
        leaving = turn.result
        if len(leaving):
            wanted = ride(int(leaving.sn[0]), int(leaving.en[0]), float(leaving.time_ms[0]))
            batch.answer(ride=[wanted], ride_numbers=leaving.sn_state[:, :4])
        turn = batch.advance()

    want_tasks, want_updates = {}, []

    def reference_decide(view):
        want_tasks[view.index] = view
        return decide(view.index, view.en)

    def reference_update(view):
        want_updates.append(view)
        return update(view.sn, view.now, len(view.acknowledged))

    # What is told after the last decision is in the turn that says that all is over.
    told = turn.feedback
    heard += _heard(told, numbers)

    tasks, background = reference_tasks(world)
    reference = whole_run(
        reference_parameters(scenario, world),
        tasks,
        reference_decide,
        reference_update,
        background,
        ride if rides else None,
    )
    outcome = batch.outcome(0)
    assert_same(outcome, reference.results)
    assert (outcome.updates, outcome.status_bytes) == (reference.messages, reference.status_bytes)
    fates = {"done": DONE, "refused": REFUSED, "given up": GIVEN_UP, "expired": EXPIRED}
    assert [(task, fate, in_time) for task, fate, in_time, _ in heard] == [
        (want.index, fates[want.fate], want.in_time) for want in reference.heard
    ]
    np.testing.assert_allclose(
        [time for *_, time in heard], [want.time for want in reference.heard], atol=1e-6
    )
    decided = outcome.action >= 0  # of each of these its EN hears exactly once
    assert sorted(task for task, *_ in heard) == np.flatnonzero(decided).tolist()
    fate_of, heard_ms = outcome.heard()
    assert ((fate_of > 0) == decided).all()
    for task, fate, _, time in heard:
        assert (fate_of[task], heard_ms[task]) == (fate, time)
    assert seen_tasks.keys() == want_tasks.keys()
    for index, (now, en_state, room, sources, states, delays, feasible, *own) in seen_tasks.items():
        want = want_tasks[index]
        assert own == pytest.approx([want.cycles, want.local_wait, want.speed], abs=1e-6)
        assert now == pytest.approx(want.now, abs=1e-6)
        assert room == want.local_room
        np.testing.assert_allclose(en_state[:4], want.en_state, atol=1e-3)
        assert_readings(want.cache, sources, states)
        routes = len(want.feasible)
        assert list(feasible[:routes]) == want.feasible
        assert not feasible[routes:].any()
        assert np.isinf(delays[routes:]).all()
        deadline = world.tasks.deadline_ms[index]
        for got, exact in zip(delays[:routes], want.estimates, strict=True):
            # Beyond the deadline the engine may stop at a lower bound.
            assert got == pytest.approx(exact, abs=1e-6) or deadline < got <= exact + 1e-6
    assert len(seen_updates) == len(want_updates)
    for (sn, now, state, sources, states, recent, speed, since), want in zip(
        seen_updates, want_updates, strict=True
    ):
        assert (sn, now) == (want.sn, pytest.approx(want.now, abs=1e-6))
        np.testing.assert_allclose(state[:4], want.state, atol=1e-3)
        assert_readings(want.acknowledged, sources, states)
        np.testing.assert_allclose(recent, want.recent, atol=1e-6)
        assert (speed, since) == (want.speed, want.up_since)


def _heard(told, numbers):
    """Task, fate, in time and when, of what ENs were told in a turn."""
    own = zip(told.en, told.task, strict=True)
    tasks = [int(numbers[en][task]) for en, task in own]
    rest = told.fate.tolist(), told.in_time.tolist(), told.time_ms.tolist()
    return zip(tasks, *rest, strict=True)


def assert_readings(wanted, sources, states):
    """What a status says and when it was made; nothing yet is no time, and zeros (R14, R28)."""
    known = len(wanted)  # of nodes that are reached
    assert np.isnan(sources[known:]).all()
    assert not states[known:].any()
    rows = zip(wanted, sources[:known], states[:known], strict=True)
    for (source, values), got_source, got in rows:
        if source is None:
            assert np.isnan(got_source)
            assert not got.any()
        else:
            assert got_source == pytest.approx(source, abs=1e-6)
            np.testing.assert_allclose(got, values, atol=1e-3)
