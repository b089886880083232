"""The EN and the SN of `cosmo-next`: what they know and how they weigh it."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

from cosmo import load
from cosmo.control.dispatchers.nodes import KnownNodes
from cosmo.control.method import Setting
from cosmo.control.next import values
from cosmo.control.next.agents import NextAgents
from cosmo.control.next.books import Books
from cosmo.control.next.en import Considered
from cosmo.control.next.rules import NextRules, rules_from
from cosmo.control.next.seats import Seats
from cosmo.control.next.sn import NEWS, NextUpdater, news, price
from cosmo.learn.next import fit
from cosmo.learn.next.config import load_next_config
from cosmo.workload import episode
from cosmo.world import IDLE, STORAGE, WORK, Worlds

RNG = np.random.default_rng(5)
RULES = NextRules()


def _delays(books, tasks):
    """By the books: [row, route], and who has room."""
    seen = books.see(tasks)
    before, task = seen.before, seen.task
    used = tasks.time_ms - tasks.generated_ms
    local = used + before["local"].min(axis=1) + task["local_service"]
    upload = before["backlog"] + task["transfer"]
    start = np.maximum(before["remote"].min(axis=2), upload)
    remote = used[:, None] + start + task["service"] + task["back"]
    return seen, np.concatenate([local[:, None], remote], axis=1)


def _played(scenario, episodes, dimensions=0, period_ms=50.0, rules=RULES):
    """Random decisions: the books' error of the delay at the SNs, at every decision."""
    worlds = Worlds(scenario, episodes, dimensions)
    books = Books(scenario, len(episodes), rules)
    random, errors = np.random.default_rng(1), []
    turn = worlds.advance()
    while not turn.over:
        if len(turn.settled):
            books.observe(turn.settled)
        if len(turn.update):
            worlds.answer(send=np.ones(len(turn.update)), interval_ms=period_ms)
        if len(turn.dispatch):
            seen, delay = _delays(books, turn.dispatch)
            possible = turn.truth.feasible
            errors.append((delay - turn.truth.delay_ms)[possible])
            # Any route that is in time, or none at all.
            any_of = np.pad(possible, ((0, 0), (0, 1)), constant_values=True)
            action = np.where(any_of, random.random(any_of.shape), -1.0).argmax(axis=1)
            books.write(turn.dispatch, seen, action)
            worlds.answer(action=action)
        turn = worlds.advance()
    return np.concatenate(errors)


@pytest.mark.parametrize("process", ["deterministic", "poisson"])
def test_with_a_single_en_the_books_know_every_delay(process):
    scenario = load("paper", [f"workload.arrivals={process}", "workload.rate=260"])
    errors = _played(scenario, [episode(scenario, 3, k) for k in range(2)])
    assert np.quantile(np.abs(errors), 0.99) < 0.2


def test_a_status_tells_of_the_load_of_others_and_results_a_little():
    scenario = load("shared-sn", ["workload.rate=160"])
    episodes = [episode(scenario, 3, k) for k in range(4)]
    told = np.abs(_played(scenario, episodes)).mean()
    blind = np.abs(_played(scenario, episodes, rules=NextRules(evidence=False))).mean()
    informed = np.abs(_played(scenario, episodes, dimensions=2, period_ms=10.0)).mean()
    assert informed < 0.7 * told < 0.7 * blind


def test_without_books_only_a_status_tells():
    scenario = load("paper", ["workload.arrivals=poisson", "workload.rate=260"])
    episodes, forgets = [episode(scenario, 3, 0)], NextRules(books=False)
    silent = np.abs(_played(scenario, episodes, rules=forgets)).mean()
    informed = np.abs(_played(scenario, episodes, 2, period_ms=10.0, rules=forgets)).mean()
    knows = np.abs(_played(scenario, episodes)).mean()
    assert knows < 0.01 * informed
    assert informed < 0.95 * silent


def _some(runs=1, rows=7, sns=1, seed=0):
    random = np.random.default_rng(seed)

    def draw(*shape, high=60.0):
        return random.uniform(0.0, high, (runs, rows, *shape)).astype(np.float32)

    before = {
        "local": draw(2), "local_taken": draw(high=1.0), "local_room": np.ones((runs, rows)),
        "local_share": np.full((runs, rows), 0.2), "remote": draw(sns, 4),
        "count": np.round(draw(sns, high=8.0)), "backlog": draw(sns, high=5.0),
        "evidence": draw(sns, 4, high=2.0), "load": draw(5, high=1.5),
    }  # fmt: skip
    task = {
        "slack": draw(high=120.0), "local_service": draw(), "service": draw(sns, high=40.0),
        "sending": draw(sns, high=4.0), "transfer": draw(sns, high=6.0),
        "back": draw(sns, high=2.1),
    }  # fmt: skip
    return before, task


def _network(runs=1, seed=0):
    random = np.random.default_rng(seed)
    shapes = values.value_shapes(8, 12) | values.chance_shapes(6)
    return {
        name: random.normal(0.0, 0.4, (runs, *shape)).astype(np.float32)
        for name, shape in shapes.items()
    }


def test_nodes_and_training_see_the_same_values():
    before, task = _some(runs=2, sns=2)
    p, places = _network(runs=2), np.array([9.0, 9.0])
    here = values.weighed(p, before, task, places, RULES)
    there = fit.weighed(p, before, task, places.astype(np.float32), RULES)
    for one, other in zip(here, there, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-5)
    chosen = values.best_route(*here[:2], 0.1), values.best_route(*there[:2], 0.1, jnp)
    for one, other in zip(*chosen, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-5)


def test_sns_are_interchangeable():
    before, task = _some(sns=3)
    p, places = _network(), np.full(3, 9.0)
    turned = [2, 0, 1]
    per_sn = ("remote", "count", "backlog", "evidence", "service", "sending", "transfer", "back")

    def turn(parts):
        return {k: v[:, :, turned] if k in per_sn else v for k, v in parts.items()}

    one, fate, _ = values.weighed(p, before, task, places, RULES)
    other, turned_fate, _ = values.weighed(p, turn(before), turn(task), places, RULES)
    np.testing.assert_allclose(fate[:, :, [1 + k for k in turned]], turned_fate[:, :, 1:])
    np.testing.assert_allclose(one[:, :, [1 + k for k in turned]], other[:, :, 1:], rtol=1e-4)
    np.testing.assert_allclose(one[:, :, 0], other[:, :, 0], rtol=1e-4)


def test_an_advantage_is_the_own_fate_and_the_difference_of_values():
    before, task = _some()
    p, places = _network(), np.array([9.0])
    advantage, _, rejected = values.weighed(p, before, task, places, RULES)
    local0, remote0 = values.inputs_before(before, places, np)
    local1, remote1 = values.inputs_after(before, task, places, np)
    load_seen = before["load"]
    np.testing.assert_allclose(rejected, values.value(p, local0, remote0, load_seen), rtol=1e-5)
    taken = values.value(p, local1, remote0, load_seen)
    in_time = values.local_chance(before, task)
    expected = np.where(in_time, 1.0 + taken - rejected, values.NEVER)
    np.testing.assert_allclose(advantage[:, :, 0], expected, rtol=1e-4, atol=1e-5)
    logits = values.chance_logits(p, values.chance_inputs(before, task, places, np))
    chance = 1.0 / (1.0 + np.exp(-logits[:, :, 0]))
    sent = values.value(p, local0, remote1, load_seen)
    expected = 2.0 * chance - 1.0 + sent - rejected
    hopeful = advantage[:, :, 1] > values.NEVER
    np.testing.assert_allclose(advantage[:, :, 1][hopeful], expected[hopeful], rtol=1e-3, atol=1e-4)


def test_the_fate_of_a_task_is_its_chance_and_then_its_delay():
    before, task = _some()
    p, places = _network(), np.array([9.0])
    _, fate, _ = values.weighed(p, before, task, places, NextRules(failure=0.5))
    delay = before["local"].min(-1) + task["local_service"]
    chance = np.where(delay <= task["slack"], 1.0, 0.0)
    np.testing.assert_allclose(fate[:, :, 0], 1.5 * chance - 0.5 - delay / 1000.0, rtol=1e-5)
    upload = before["backlog"] + task["transfer"]
    delay = np.maximum(before["remote"].min(-1), upload) + task["service"] + task["back"]
    logits = values.chance_logits(p, values.chance_inputs(before, task, places, np))
    chance = 1.0 / (1.0 + np.exp(-logits))
    np.testing.assert_allclose(fate[:, :, 1:], 1.5 * chance - 0.5 - delay / 1000.0, rtol=1e-4)


def _considered(advantage, fate):
    rows = np.array(advantage, np.float32), np.array(fate, np.float32)
    return Considered(None, *rows)


def test_a_task_is_rejected_unless_its_route_is_worth_more():
    advantage = [[-0.1, -0.2], [0.1, 0.3], [0.2, -9.0], [0.05, -0.02]]
    fate = [[0.0, 0.9], [0.9, 0.0], [0.0, 0.9], [0.0, 0.9]]
    considered = _considered(advantage, fate)
    assert considered.actions(0.0).tolist() == [2, 1, 0, 0]
    # Within the margin the task's own fate decides, and the gate asks for that route.
    assert considered.actions(0.1).tolist() == [2, 1, 0, 2]
    assert considered.actions(0.25).tolist() == [2, 0, 0, 2]


def test_rules_come_from_the_training():
    assert rules_from(load_next_config().model_dump()) == NextRules()
    other = load_next_config("next", ["en.failure=0.3", "sn.semantic=false", "en.books=false"])
    assert rules_from(other.model_dump()) == NextRules(failure=0.3, semantic=False, books=False)
    assert (NextRules().dimensions, NextRules(semantic=False).dimensions) == (2, 4)
    before = load_next_config().model_dump()
    del before["en"]["margin"], before["en"]["books"], before["sn"]["semantic"]
    assert rules_from(before) == NextRules(margin=0.0)


def test_a_raw_status_tells_how_many_slots_are_busy():
    scenario = load("paper", ["workload.rate=160"])
    worlds = Worlds(scenario, [episode(scenario, 3, 0)], 4)
    while not len((turn := worlds.advance()).dispatch):
        worlds.answer(send=np.zeros(len(turn.update)), interval_ms=40.0)
    state = turn.dispatch.sn_state.copy()
    slots = int(state[0, 0, IDLE])
    # Room for one task is taken, but all slots but one are busy.
    largest = max(scenario.storage.reservation_floor_bytes, scenario.workload.input_bytes[1])
    state[:, :, IDLE], state[:, :, WORK] = 1, 1e6
    state[:, :, STORAGE] -= largest
    told = replace(turn.dispatch, sn_state=state, sn_source_ms=turn.dispatch.time_ms[:, None])
    for semantic, free in ((True, slots - 1), (False, 1)):
        left = Books(scenario, 1, NextRules(semantic=semantic)).see(told).before["remote"]
        assert (left == 0).sum() == free


def test_runs_of_any_number_of_worlds_sit_in_their_rows():
    seats = Seats([0, 1, 1, 0, 1], 2)
    rows = RNG.normal(size=(3, 4)).astype(np.float32)
    worlds = np.array([4, 0, 2])
    spread = seats.spread(worlds, rows)
    assert spread.shape == (2, 3, 4)
    np.testing.assert_array_equal(seats.gathered(worlds, spread), rows)


def _looked(scenario):
    worlds = Worlds(scenario, [episode(scenario, 0, 0)], 2)
    turn = worlds.advance()
    while not (len(turn.update) and turn.update.time_ms[0] > 500):
        if len(turn.dispatch):
            worlds.answer(action=np.ones(len(turn.dispatch), int))
        if len(turn.update):
            worlds.answer(send=np.zeros(1), interval_ms=40.0)
        turn = worlds.advance()
    return turn.update


def test_an_update_is_sent_if_it_is_worth_its_price():
    scenario = load("shared-sn")
    seen = _looked(scenario)
    told = news(KnownNodes(scenario), seen)
    assert told.shape == (1, NEWS)
    assert told[0, 1] == pytest.approx(min(seen.sn_state[0, WORK] / 108_000.0, 60.0) / 30.0)
    assert price(scenario, 2) == pytest.approx(4.0 / 96.0)
    assert price(scenario, 4) == pytest.approx(8.0 / 96.0)
    for worth, sends, interval in ((0.05, True, 10.0), (0.02, False, 10.0), (0.0, False, 40.0)):
        send, again = _updater(scenario, worth).decide(seen)
        assert (bool(send[0]), float(again[0])) == (sends, interval)
    assert not _updater(scenario, 0.05, doubt=0.02).decide(seen)[0][0]
    free = load("shared-sn", ["utility.update_weight=0.0"])
    assert _updater(free, 0.001).decide(seen)[0][0]


def test_a_raw_update_must_be_worth_twice_as_much():
    scenario = load("shared-sn")
    seen = _looked(scenario)
    setting = Setting(scenario, [0], [0], rate=120.0, window_ms=1000.0)
    for semantic, sends in ((True, True), (False, False)):
        agents = NextAgents({}, _layers(0.06), NextRules(semantic=semantic))
        assert agents.at_work().updater(setting).decide(seen)[0].tolist() == [sends]


def _layers(worth, doubt=0.0):
    layers = {"worth": np.zeros((1, NEWS)), "doubt": np.zeros((1, NEWS, NEWS))}
    layers["worth"][0, 0], layers["doubt"][0, 0, 0] = worth, doubt
    return layers


def _updater(scenario, worth, doubt=0.0):
    return NextUpdater(scenario, _layers(worth, doubt), Seats([0], 1), 2)
