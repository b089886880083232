"""The EN and the SN of `cosmo-next`: what they know and how they weigh it."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

from cosmo import load
from cosmo.learn.next import fit
from cosmo.learn.next.config import load_next_config
from cosmo.node import IDLE, STORAGE, WAIT, WORK
from cosmo.policy.controller_fields import Fields
from cosmo.policy.next import values
from cosmo.policy.next.agents import NextAgents
from cosmo.policy.next.backlog_estimate import BacklogEstimate
from cosmo.policy.next.en import Considered, NextDispatcher
from cosmo.policy.next.run_rows import RunRows
from cosmo.policy.next.settings import settings_at, settings_from
from cosmo.policy.next.sn import CHANGE_SIZE, NextUpdater, StateChange
from cosmo.workload import episode
from cosmo.world import Worlds
from observations import site, tasks

RNG = np.random.default_rng(5)
SETTINGS = settings_from(Fields(load_next_config().model_dump()))
SITE_SETTINGS = settings_at(SETTINGS, site(load("paper")))


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


def _played(scenario, episodes, period_ms=None, rules=SETTINGS):
    """Random decisions: the books' error of the delay at the SNs, at every decision."""
    worlds = Worlds(scenario, episodes, len(rules.carried) if period_ms else 0)
    books = BacklogEstimate(site(scenario, len(episodes)), rules)
    random, errors = np.random.default_rng(1), []
    turn = worlds.advance()
    while not turn.over:
        if len(turn.feedback):
            books.observe(turn.feedback)
        if len(turn.update):
            told = turn.update.sn_state[:, rules.carried]
            worlds.answer(send=np.ones(len(turn.update)), interval_ms=period_ms, numbers=told)
        if len(turn.dispatch):
            seen, delay = _delays(books, turn.dispatch)
            truth = worlds.truth()
            possible = truth.feasible
            errors.append((delay - truth.delay_ms)[possible])
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
    blind = np.abs(_played(scenario, episodes, rules=replace(SETTINGS, evidence=False))).mean()
    informed = np.abs(_played(scenario, episodes, period_ms=10.0)).mean()
    assert informed < 0.7 * told < 0.7 * blind


def test_a_status_of_an_sn_with_fewer_slots_than_others_is_taken():
    """Slots that it has not are never free, which is nothing to reckon with (a warning fails)."""
    unequal = ["sn.slots=[4, 8]", "episode.window_ms=1500", "episode.warmup_ms=0"]
    scenario = load("campus", unequal)
    errors = _played(scenario, [episode(scenario, 3, 0)], period_ms=20.0)
    assert np.isfinite(errors).all()


def test_without_books_only_a_status_tells():
    scenario = load("paper", ["workload.arrivals=poisson", "workload.rate=260"])
    episodes, forgets = [episode(scenario, 3, 0)], replace(SETTINGS, own_traffic=False)
    silent = np.abs(_played(scenario, episodes, rules=forgets)).mean()
    informed = np.abs(_played(scenario, episodes, period_ms=10.0, rules=forgets)).mean()
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
    here = values.weighed(p, before, task, places, SITE_SETTINGS)
    there = fit.weighed(p, before, task, places.astype(np.float32), SITE_SETTINGS)
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

    one, fate, _ = values.weighed(p, before, task, places, SITE_SETTINGS)
    other, turned_fate, _ = values.weighed(p, turn(before), turn(task), places, SITE_SETTINGS)
    np.testing.assert_allclose(fate[:, :, [1 + k for k in turned]], turned_fate[:, :, 1:])
    np.testing.assert_allclose(one[:, :, [1 + k for k in turned]], other[:, :, 1:], rtol=1e-4)
    np.testing.assert_allclose(one[:, :, 0], other[:, :, 0], rtol=1e-4)


def _with_the_task_at(before, task, route):
    """What the EN knows once the task is on its way to a route: the earliest slot is taken."""
    after = {name: np.array(part, np.float64) for name, part in before.items()}
    if route == 0:
        free, arrival, service = after["local"], 0.0, task["local_service"]
        after["local_taken"] = after["local_taken"] + after["local_share"]
    else:
        sn = route - 1
        free, service = after["remote"][:, :, sn], task["service"][:, :, sn]
        arrival = before["backlog"][:, :, sn] + task["transfer"][:, :, sn]
        after["count"][:, :, sn] += 1.0
        after["backlog"][:, :, sn] += task["sending"][:, :, sn]
    place = (*np.indices(free.shape[:2]), free.argmin(-1))
    free[place] = np.maximum(free[place], arrival) + service
    return after


def _certain(p, chance):
    """The same networks, which give every SN this chance."""
    logit = np.float32(np.log(chance / (1.0 - chance)))
    return p | {"chance.w": np.zeros_like(p["chance.w"]), "chance.b": p["chance.b"] * 0 + logit}


def test_an_advantage_is_the_own_fate_and_the_difference_of_values():
    before, task = _some(sns=2)
    p, places = _certain(_network(), 0.7), np.full(2, 9.0)
    measures = replace(SITE_SETTINGS, failure=0.5)

    def value_of(state):
        return values.weighed(p, state, task, places, measures)[2]

    advantage, _, rejected = values.weighed(p, before, task, places, measures)
    in_time = before["local"].min(-1) + task["local_service"] <= task["slack"]
    assert 0 < in_time.sum() < in_time.size
    left = value_of(_with_the_task_at(before, task, 0))
    expected = np.where(in_time, 1.0 + left - rejected, values.NEVER)
    np.testing.assert_allclose(advantage[:, :, 0], expected, rtol=1e-4, atol=1e-5)
    for sn in (1, 2):
        left = value_of(_with_the_task_at(before, task, sn))
        expected = 0.7 - 0.5 * 0.3 + left - rejected
        np.testing.assert_allclose(advantage[:, :, sn], expected, rtol=1e-3, atol=1e-4)


def test_a_route_that_is_hardly_ever_in_time_is_never_taken():
    before, task = _some()
    for chance, hopeful in ((0.19, False), (0.21, True)):
        p = _certain(_network(), chance)
        advantage, _, _ = values.weighed(p, before, task, np.array([9.0]), SITE_SETTINGS)
        assert ((advantage[:, :, 1] > values.NEVER) == hopeful).all()


def test_the_fate_of_a_task_is_its_chance_and_then_its_delay():
    before, task = _some()
    p, places = _certain(_network(), 0.6), np.array([9.0])
    _, fate, _ = values.weighed(p, before, task, places, replace(SITE_SETTINGS, failure=0.5))
    per_ms = 0.2 / 220.0  # a longest deadline's delay costs a fifth of a task
    delay = before["local"].min(-1) + task["local_service"]
    chance = np.where(delay <= task["slack"], 1.0, 0.0)
    np.testing.assert_allclose(fate[:, :, 0], 1.5 * chance - 0.5 - delay * per_ms, rtol=1e-5)
    upload = before["backlog"] + task["transfer"]
    delay = np.maximum(before["remote"].min(-1), upload) + task["service"] + task["back"]
    np.testing.assert_allclose(fate[:, :, 1:], 1.5 * 0.6 - 0.5 - delay * per_ms, rtol=1e-4)


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
    config = load_next_config()
    assert (SETTINGS.failure, SETTINGS.margin) == (config.en.failure, config.en.margin)
    assert (SETTINGS.own_traffic, SETTINGS.evidence, SETTINGS.semantic) == (True, True, True)
    assert SETTINGS.spans.slack == config.spans.slack
    assert (
        settings_from(Fields(config.model_dump(mode="json"))) == SETTINGS
    )  # as a controller's folder has them
    other = load_next_config(
        "next", ["en.failure=0.3", "sn.semantic=false", "en.own_traffic=false"]
    )
    changed = replace(SETTINGS, failure=0.3, semantic=False, own_traffic=False)
    assert settings_from(Fields(other.model_dump())) == changed
    assert SETTINGS.carried == (WORK, STORAGE)
    assert changed.carried == (IDLE, WAIT, WORK, STORAGE)


def test_lengths_of_time_are_in_the_longest_deadline_of_the_site():
    longer = site(load("paper", ["workload.deadline.clip_ms=[60, 440]"]))
    assert settings_at(SETTINGS, longer).wait_ms == 2 * SITE_SETTINGS.wait_ms == 2 * 0.15 * 220.0
    assert settings_at(SETTINGS, longer).delay_cost_per_ms == SITE_SETTINGS.delay_cost_per_ms / 2


def test_books_have_an_entry_for_every_task_that_an_sn_can_hold():
    """40 tasks fit into this SN, and all of them are in the books until the EN hears of them."""
    scenario = load("paper", ["sn.storage_bytes=2e6", "sn.queue_capacity=40"])
    books = BacklogEstimate(site(scenario), SETTINGS)
    for number in range(40):
        seen = tasks(scenario, task=number, carries=2, status_ms=np.nan)
        books.write(seen, books.see(seen), np.array([1]))
    last = books.see(tasks(scenario, task=40, carries=2, status_ms=np.nan))
    assert last.before["count"].tolist() == [[40.0]]


def test_a_raw_status_tells_how_many_slots_are_busy():
    scenario = load("paper")
    slots, storage = scenario.sn.slots, scenario.sn.storage_bytes
    # Room for one task is taken, but all slots but one are busy.
    told = {IDLE: 1.0, WAIT: 0.0, WORK: 1e6, STORAGE: storage - 50000.0}
    for semantic, free in ((True, slots - 1), (False, 1)):
        rules = replace(SETTINGS, semantic=semantic)
        status = [told[field] for field in rules.carried]
        seen = tasks(scenario, carries=len(status), status=status, status_ms=1003.0)
        left = BacklogEstimate(site(scenario), rules).see(seen).before["remote"]
        assert (left == 0).sum() == free


def test_runs_of_any_number_of_worlds_sit_in_their_rows():
    run_rows = RunRows([0, 1, 1, 0, 1], 2)
    rows = RNG.normal(size=(3, 4)).astype(np.float32)
    worlds = np.array([4, 0, 2])
    spread = run_rows.spread(worlds, rows)
    assert spread.shape == (2, 3, 4)
    np.testing.assert_array_equal(run_rows.gathered(worlds, spread), rows)


def test_an_empty_seat_counts_as_one_with_a_single_place():
    """Where SNs differ by EN, and the least of them holds one task."""
    uneven = load("campus", ["sn.queue_capacity=[1, 9]", "backhaul.reach=[[0, 1], [1], [0]]"])
    shown = []

    def weigh(layers, before, task, places, measures):
        shown.append(places)
        nothing = np.zeros((*places.shape[:2], 1 + places.shape[2]))
        return nothing, nothing, None

    rule = NextDispatcher(site(uneven, 3), {}, RunRows([0, 0, 1], 2), SETTINGS, weigh)
    rule.consider(tasks(uneven, 2, carries=2, status=0.0, en=[0, 1]))  # none of the third world
    [places] = shown
    assert places.tolist() == [[[1.0, 9.0], [9.0, 1.0]], [[1.0, 1.0], [1.0, 1.0]]]


@pytest.mark.parametrize(("group", "name"), [("sn", "near"), ("en", "least_chance")])
def test_shares_are_at_most_one(group, name):
    told = load_next_config().model_dump()
    told[group][name] = 1.0
    settings_from(Fields(told))
    told[group][name] = 1.001
    with pytest.raises(ValueError, match=name):
        settings_from(Fields(told))


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
    """Two numbers cost 4 of the 96 that a success is worth: 0.0417 tasks."""
    scenario = load("shared-sn")
    seen = _looked(scenario)
    told = StateChange(site(scenario), SETTINGS).of(seen)
    assert told.shape == (1, CHANGE_SIZE)
    assert told[0, 1] == pytest.approx(min(seen.sn_state[0, WORK] / 108_000.0 / 33.0, 2.0))
    for worth, sends, interval in (
        (0.0418, True, 11.0),
        (0.0416, False, 11.0),
        (0.0105, False, 11.0),  # a quarter of the price is near
        (0.0103, False, 44.0),
    ):
        send, again = _updater(scenario, worth).decide(seen)
        assert (bool(send[0]), float(again[0])) == (sends, pytest.approx(interval))
    assert not _updater(scenario, 0.05, doubt=0.02).decide(seen)[0][0]
    free = load("shared-sn", ["utility.update_weight=0.0"])
    assert _updater(free, 0.001).decide(seen)[0][0]


def test_news_is_what_the_ens_cannot_expect():
    """Told of 10 ms of work 4 ms ago, an EN expects 6; the SN has 20. Half the storage was taken,
    now a quarter is.
    """
    scenario = load("shared-sn")
    rate, storage = 108_000.0, scenario.sn.storage_bytes
    state = np.array([[0, 0, 20.0 * rate, 0.75 * storage, 0, 0]])
    seen = replace(
        _looked(scenario),
        time_ms=np.array([504.0]),
        sn_state=state,
        acknowledged=np.array([[[10.0 * rate, 0.5 * storage]]]),
        acknowledged_ms=np.array([[500.0]]),
    )
    told = StateChange(site(scenario), SETTINGS).of(seen)[0]
    np.testing.assert_allclose(told[1:7], [20 / 33, 14 / 33, 0.0, 0.25, 0.25, 4 / 200])
    # While nothing is acknowledged, an EN expects an idle SN.
    silent = replace(seen, acknowledged=np.zeros((1, 1, 2)), acknowledged_ms=np.array([[np.nan]]))
    told = StateChange(site(scenario), SETTINGS).of(silent)[0]
    np.testing.assert_allclose(told[1:7], [20 / 33, 20 / 33, 0.0, 0.25, 0.25, 2.0])


def test_a_status_carries_what_the_rules_say():
    scenario = load("shared-sn")
    seen = _looked(scenario)
    for rules in (SETTINGS, replace(SETTINGS, semantic=False)):
        numbers = _updater(scenario, 0.0, rules=rules).encode(seen.states)
        np.testing.assert_array_equal(numbers, seen.sn_state[:, rules.carried])


def test_a_raw_update_must_be_worth_twice_as_much():
    scenario = load("shared-sn")
    seen = _looked(scenario)
    raw = replace(seen, acknowledged=np.zeros((1, 1, 4)))
    for semantic, told, sends in ((True, seen, True), (False, raw, False)):
        agents = NextAgents({}, _layers(0.06), replace(SETTINGS, semantic=semantic))
        assert agents.at_work().updater(site(scenario)).decide(told)[0].tolist() == [sends]


def _layers(worth, doubt=0.0):
    layers = {"worth": np.zeros((1, CHANGE_SIZE)), "doubt": np.zeros((1, CHANGE_SIZE, CHANGE_SIZE))}
    layers["worth"][0, 0], layers["doubt"][0, 0, 0] = worth, doubt
    return layers


def _updater(scenario, worth, doubt=0.0, rules=SETTINGS):
    return NextUpdater(site(scenario), _layers(worth, doubt), RunRows([0], 1), rules)


def test_an_sn_that_no_task_fits_into_gets_none_and_spoils_nothing():
    scenario = load("campus", ["sn.storage_bytes=[40000.0, 480000.0]"])
    p, books = _network(), BacklogEstimate(site(scenario), SETTINGS)
    assert books.sn_places[0].tolist() == [0, 9]
    agents = NextAgents(
        p,
        {"worth": np.zeros((1, CHANGE_SIZE)), "doubt": np.zeros((1, CHANGE_SIZE, CHANGE_SIZE))},
        SETTINGS,
    )
    dispatcher = agents.of([0]).at_work().dispatcher(site(scenario))
    with np.errstate(all="raise"):
        considered = dispatcher.consider(tasks(scenario, carries=2, status_ms=np.nan))
    assert np.isfinite(considered.advantage).all()
    assert considered.advantage[0, 1] == values.NEVER


def test_books_grow_when_more_is_on_its_way_than_sns_hold():
    scenario = load("paper")
    books, count = BacklogEstimate(site(scenario), SETTINGS), 60
    for number in range(count):
        now = 1003.0 + 0.01 * number
        task = tasks(scenario, task=number, time_ms=now, carries=2, status_ms=np.nan)
        books.write(task, books.see(task), np.array([1]))
    seen = books.see(tasks(scenario, task=count, time_ms=1004.0, carries=2, status_ms=np.nan))
    assert seen.before["count"].tolist() == [[count]]  # none of them is forgotten
