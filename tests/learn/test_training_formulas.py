"""Formulas of training with numbers that can be checked on paper: a sign is a sign."""

import math

import numpy as np
import pytest

from cosmo import load
from cosmo.learn import encoder
from cosmo.learn.config import load_config
from cosmo.learn.next import fit
from cosmo.learn.next.config import load_next_config
from cosmo.learn.next.experience import (
    Chances,
    Experience,
    MakeDispatcher,
    run_rows_of,
)
from cosmo.learn.next.returns import baseline, earned_by
from cosmo.learn.next.worth import Worth
from cosmo.policy import networks
from cosmo.policy.controller_fields import Fields
from cosmo.policy.next import values
from cosmo.policy.next.settings import SiteSettings, settings_from
from cosmo.policy.next.sn import CHANGE_SIZE
from cosmo.workload import episode
from cosmo.world.records import FP, TP


def _nothing(runs=1):
    shapes = values.value_shapes(3, 2) | values.chance_shapes(2)
    return {name: np.zeros((runs, *shape), np.float32) for name, shape in shapes.items()}


def test_a_success_earns_one_a_failure_costs_and_a_rejection_is_free():
    succeeded, failed = np.array([True, False, False]), np.array([False, True, False])
    assert earned_by(succeeded, failed, 2.5).tolist() == [1.0, -2.5, 0.0]


@pytest.mark.parametrize("logit", [-1.5, 0.0, 2.0])
def test_the_loss_of_values_and_chances(logit):
    p = _nothing()
    p["chance.b"][:] = logit
    p["value.b"][:] = 0.5
    batch = {
        "local": np.zeros((1, 2, values.LOCAL), np.float32),
        "remote": np.zeros((1, 2, 1, values.REMOTE), np.float32),
        "load": np.zeros((1, 2, 5), np.float32),
        "chance": np.zeros((1, 2, 1, values.CHANCE), np.float32),
        "target": np.array([[1.5, -2.5]], np.float32),  # errors of 1 and 3
        "feasible": np.array([[[1.0], [0.0]]], np.float32),
    }
    likely = 1.0 / (1.0 + math.exp(-logit))
    entropy = -0.5 * (math.log(likely) + math.log(1.0 - likely))
    assert float(fit.loss(p, batch)) == pytest.approx(0.5 * (1.0 + 9.0) / 2 + entropy, rel=1e-5)
    sure = batch | {"feasible": np.ones((1, 2, 1), np.float32)}
    expected = 0.5 * (1.0 + 9.0) / 2 - math.log(likely)
    assert float(fit.loss(p, sure)) == pytest.approx(expected, rel=1e-5)


def test_what_has_passed_of_a_deadline_and_what_is_left_are_the_deadline():
    scenario = load("paper", ["episode.window_ms=300", "episode.warmup_ms=0"])
    rules = settings_from(Fields(load_next_config().model_dump()))
    act = MakeDispatcher(_nothing(), run_rows_of(1, 2), rules, values.weighed)
    random = [np.random.default_rng(seed) for seed in range(2)]
    chances = Chances(random, 0.3, np.array([0.2, 0.8]), 50.0)
    worlds = [episode(scenario, 3, number) for number in range(2)]
    played = Experience(scenario, worlds, act, rules, chances)
    played.play()
    rows = played.decisions()
    places = list(zip(rows["world"], rows["task"], strict=True))
    deadline = np.array([worlds[world].tasks.deadline_ms[task] for world, task in places])
    born = np.array([worlds[world].tasks.time_ms[task] for world, task in places])
    assert len(deadline) > 50
    fates = [played.outcomes[world].outcome[task] for world, task in places]
    assert rows["succeeded"].tolist() == [fate == TP for fate in fates]
    assert rows["failed"].tolist() == [fate == FP for fate in fates]
    assert {TP} < set(fates)  # some are neither
    np.testing.assert_allclose(rows["elapsed"], rows["time"] - born)
    assert (rows["elapsed"] > 0).all()  # the access channel takes its time
    np.testing.assert_allclose(rows["task/slack"] + rows["elapsed"], deadline, rtol=1e-5)
    # Who explores takes any action, with a draw for each.
    explores = rows["explores"].astype(bool)
    assert 0.15 < explores.mean() < 0.45
    assert set(rows["action"][explores].tolist()) == {0, 1, 2}


def test_the_encoder_s_first_step_goes_down_the_loss_of_its_predictions():
    """Adam's first step is the rate of learning, in every parameter, against its gradient."""
    sizes = {"hidden": (3, 3), "dimensions": 2, "head_hidden": 3, "epochs": 1, "batch": 5}
    config = load_config().encoder.model_copy(update={**sizes, "learning_rate": 1e-3})
    rows = np.random.default_rng(1).normal(size=(5, 9)).astype(np.float32)
    [moved] = encoder.pretrain(config, [rows], [np.random.default_rng(2)])
    layout = encoder._whole_layout(config)
    start = layout.initial(np.random.default_rng(2)).astype(np.float64)

    def loss(flat):
        p = layout.views(flat)
        seen = np.concatenate([networks.encode(p, rows[:, :4]), rows[:, 4:5]], axis=1)
        hidden = np.maximum(seen @ p["head1.w"] + p["head1.b"], 0.0)
        error = np.abs(hidden @ p["head2.w"] + p["head2.b"] - rows[:, 5:])
        return np.where(error < 1.0, 0.5 * error**2, error - 0.5).mean()

    steps = 1e-6 * np.eye(len(start))[: len(moved)]
    slope = np.array([(loss(start + step) - loss(start - step)) / 2e-6 for step in steps])
    clear = np.abs(slope) > 1e-4
    assert clear.sum() > 10
    down = start[: len(moved)] - 1e-3 * np.sign(slope)
    np.testing.assert_allclose(moved[clear], down[clear], atol=2e-6)


M = SiteSettings(
    failure=2.0, margin=0.1, delay_cost_per_ms=0.01, least_chance=0.2, slots_ms=10.0,
    backlog_ms=4.0,
    wait_ms=20.0, slack_ms=(5.0, 50.0, 100.0), far_ms=40.0, evidence_ms=8.0, oldest_ms=24.0,
)  # fmt: skip


def test_what_a_decision_found_is_a_mean_over_tasks_that_could_have_come():
    random, rows = np.random.default_rng(5), (1, 4)

    def drawn(*shape, most=1.0):
        return random.uniform(0.0, most, (*rows, *shape)).astype(np.float32)

    before = {
        "local": drawn(2, most=30), "local_taken": drawn(most=40), "local_share": drawn(),
        "local_room": np.ones(rows, np.float32), "remote": drawn(2, 2, most=30),
        "count": drawn(2, most=3), "backlog": drawn(2, most=9), "evidence": drawn(2, 4),
        "load": drawn(5),
    }  # fmt: skip
    task = {
        "local_service": drawn(most=30), "slack": 30 + drawn(most=60), "service": drawn(2, most=20),
        "sending": drawn(2), "transfer": drawn(2), "back": drawn(2),
    }  # fmt: skip
    elapsed, action = drawn(most=20), np.array([[0, 1, 2, 3]])
    shapes = values.value_shapes(3, 2) | values.chance_shapes(2)
    p = {
        name: random.normal(0, 0.5, (1, *shape)).astype(np.float32)
        for name, shape in shapes.items()
    }
    places, weights = np.array([6.0, 6.0]), random.normal(size=(1, 1, 15)).astype(np.float32)
    given = {f"before/{name}": each for name, each in before.items()}
    given |= {f"task/{name}": each for name, each in task.items()}
    given |= {"elapsed": elapsed, "action": action}
    got = fit.judged(p, given, places, weights, 2, 3, M)

    load = before["load"][0]
    terms = [np.ones((4, 1)), load, load**2, load[:, :1] * load[:, 1:2]]
    terms = np.concatenate([*terms, np.maximum(load[:, :3] - 1.0, 0.0)], axis=1)
    worths = np.zeros(4)
    for row in range(4):
        for other in (row, (row - 3) % 4):
            instead = {name: each[:, [other]] for name, each in task.items()}
            instead["slack"] = instead["slack"] + elapsed[:, [other]] - elapsed[:, [row]]
            here = {name: each[:, [row]] for name, each in before.items()}
            advantage, fate, rejected = values.weighed(p, here, instead, places, M)
            _, worth = values.best_route(advantage, fate, M.margin)
            worths[row] += max(float(worth[0, 0]), 0.0) / 2
        worths[row] += float(rejected[0, 0])
    np.testing.assert_allclose(
        got["found"][0], worths - terms @ weights[0, 0], rtol=1e-3, atol=1e-4
    )

    evidence = values.evidence_inputs(before["evidence"], places, M, np)
    own, others = values.states_after(before, task, evidence, places, M, np)
    taken = [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0]]  # by action: local, an SN, rejected
    for row, (here, *there) in enumerate(taken):
        np.testing.assert_allclose(got["local"][0, row], own[0, row, here], rtol=1e-4, atol=1e-5)
        for sn, used in enumerate(there):
            np.testing.assert_allclose(
                got["remote"][0, row, sn], others[0, row, used, sn], rtol=1e-4, atol=1e-5
            )


def test_the_baseline_s_weights_are_held_back_where_there_is_little_to_learn_from():
    load = np.zeros((4, 5))
    load[:, 0] = 1e-3, -1e-3, 1e-3, -1e-3
    weights = baseline(load, np.sign(load[:, 0]))
    # The sum of squares is 4e-6, and the ridge a millionth for each of four rows.
    assert weights[1] == pytest.approx(4e-3 / 8e-6)
    assert np.abs(np.delete(weights, 1)).max() < 1e-9


def test_who_has_learned_nothing_of_news_doubts_by_the_ridge_alone():
    doubt = Worth(2, ridge=16.0, confidence=3.0).doubt()
    np.testing.assert_allclose(doubt, np.tile(3.0 / 4.0 * np.eye(CHANGE_SIZE), (2, 1, 1)))


def test_doubt_is_in_the_deviation_of_what_news_do_not_explain():
    worth = Worth(1, ridge=16.0, confidence=3.0)
    worth.noise[0] = 50.0, 2.0
    np.testing.assert_allclose(worth.doubt()[0], 3.0 * 5.0 / 4.0 * np.eye(CHANGE_SIZE))
