"""An EN agent whose target goes on with its next decision: a reading of the flat head."""

import itertools

import numpy as np
import pytest
from short import played_episode, short_config, short_runs

from cosmo.learn import en_agent
from cosmo.learn.config import EN_EXTRA
from cosmo.learn.stack import Layout
from cosmo.learn.trainer import Trainer
from cosmo.policy import networks

FLAT = Layout(networks.shapes(10, 5, False, 32, 64))
ALONE = ("en.hierarchical=false", "en.auxiliary.enabled=false", "en.discount=0.9")


def test_the_target_is_double_dqns_and_a_last_task_has_none_after_it():
    random = np.random.default_rng(0)
    online, frozen = FLAT.initial(random), FLAT.initial(random)
    batch = random.normal(size=(12, 15 + EN_EXTRA + 1 + 15)).astype(np.float32)
    batch[:, 15 + en_agent.ACTION] = random.integers(0, 3, 12)
    batch[:, 15 + EN_EXTRA] = np.arange(12) % 2
    config = short_config(1, *ALONE).en
    got = float(en_agent.loss(config, (10, 5), FLAT.views(online), FLAT.views(frozen), batch))

    errors = []
    for row in batch:
        taken, after = row[None, :15], row[None, 15 + EN_EXTRA + 1 :]
        told, goes_on = row[15 : 15 + EN_EXTRA], row[15 + EN_EXTRA]
        goal = told[en_agent.UTILITY]
        if goes_on:
            best = networks.flat_values(FLAT.views(online), after[:, :10], after[:, 10:])[0]
            valued = networks.flat_values(FLAT.views(frozen), after[:, :10], after[:, 10:])[0]
            goal += 0.9 * valued[best.argmax()]
        values = networks.flat_values(FLAT.views(online), taken[:, :10], taken[:, 10:])[0]
        error = abs(values[int(told[en_agent.ACTION])] - goal)
        errors.append(0.5 * error**2 if error < 1 else error - 0.5)
    assert got == pytest.approx(np.mean(errors), rel=1e-4)


def test_a_transition_goes_on_with_the_decision_that_followed_it():
    trainer, rollout = played_episode(short_runs(0, 1), short_config(1, *ALONE))
    for run in range(2):
        decided = np.argsort(rollout.worlds.outcome(run).decided_ms, kind="stable")
        seen = rollout.notes.rows[run, :, :15]
        rows = trainer.en.replay._rows[run, : trainer.en.replay.written[run]]
        assert len(rows) == len(decided)
        expected = {
            tuple(seen[task]): tuple(seen[after]) for task, after in itertools.pairwise(decided)
        }
        assert len(expected) == len(decided) - 1  # no two observations are alike
        for row in rows:
            goes_on, after = row[15 + EN_EXTRA], tuple(row[15 + EN_EXTRA + 1 :])
            assert goes_on == (tuple(row[:15]) in expected)
            assert after == expected.get(tuple(row[:15]), (0.0,) * 15)


@pytest.mark.parametrize("settings", [ALONE, ALONE[:2]])
def test_the_network_that_values_the_future_follows_now_and_then(settings):
    trainer = Trainer(short_runs(0), short_config(1, *settings, "en.target_every=70"))
    start = trainer.en.target[0].copy()
    trainer.pretrain()
    trainer.train_episode()
    assert trainer.en.updates[0] > 70
    assert trainer.en.updates[0] % 70
    followed = not np.array_equal(trainer.en.target[0], start)
    assert followed == trainer.config.en.bootstraps  # else there is nothing to value
    assert not np.array_equal(trainer.en.target[0], trainer.en.parameters[0])
