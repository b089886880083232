"""Training end to end, on short episodes."""

import numpy as np
import pytest
from short import short_config, short_runs

from cosmo import InputError, load, play
from cosmo.learn import trainer as trainer_module
from cosmo.learn.run import Run
from cosmo.learn.stack import Layout
from cosmo.learn.trainer import Trainer
from cosmo.policy.learned import Learned
from cosmo.policy.networks import encode, encoder_shapes
from cosmo.seeds import Purpose, stream
from cosmo.workload import episode


def _trained(runs, episodes=3):
    trainer = Trainer(runs, short_config(episodes))
    trainer.pretrain()
    trainer.train(lambda episode, curves: None)
    return trainer


@pytest.mark.parametrize("others", [(3,), (1, 3), (1, 3, 4, 5, 6)])
def test_a_run_has_the_same_bits_alone_and_in_any_stack(others):
    seeds = tuple(sorted((2, *others)))
    together, alone = _trained(short_runs(*seeds), 2), _trained(short_runs(2), 2)
    place = seeds.index(2)
    assert alone.en.updates[0] > 0
    assert alone.sn.updates[0] > 0
    np.testing.assert_array_equal(together.encoder[place], alone.encoder[0])
    np.testing.assert_array_equal(together.en.parameters[place], alone.en.parameters[0])
    np.testing.assert_array_equal(together.sn.parameters[place], alone.sn.parameters[0])
    np.testing.assert_array_equal(together.sn.target[place], alone.sn.target[0])


def test_each_run_makes_one_update_for_so_many_transitions():
    trainer = _trained(short_runs(0, 1))
    en, sn = trainer.config.en, trainer.config.sn
    assert (trainer.en.updates == trainer.en.replay.written // en.update_every).all()
    assert (trainer.sn.updates == trainer.sn.replay.written // sn.update_every).all()
    assert (trainer.en_steps >= trainer.en.replay.written).all()
    # R21: a decision on an episode's very end is a step without a transition.
    ends = trainer.sn_steps - trainer.sn.replay.written
    assert ((ends >= 0) & (ends <= trainer.episode)).all()


def test_the_encoder_is_frozen_and_the_agents_are_not():
    trainer = Trainer(short_runs(0), short_config(1))
    trainer.pretrain()
    encoder, en, sn = (
        trainer.encoder.copy(),
        trainer.en.parameters.copy(),
        trainer.sn.parameters.copy(),
    )
    trainer.train(lambda episode, curves: None)
    np.testing.assert_array_equal(trainer.encoder, encoder)
    assert not np.array_equal(trainer.en.parameters, en)
    assert not np.array_equal(trainer.sn.parameters, sn)


def test_the_best_checkpoint_acts_like_the_networks_it_came_from():
    trainer = _trained(short_runs(0, 1), 2)
    scenario = trainer.runs[0].scenario
    worlds = [episode(scenario, 9, number) for number in range(3)]
    first = play(scenario, Learned(trainer.agents(*trainer.best()).of([1] * 3)), worlds)
    for number, world in enumerate(worlds):
        [alone] = play(scenario, Learned(trainer.agents(*trainer.best()).of([1])), [world])
        np.testing.assert_array_equal(alone.action, first[number].action)
        assert alone.updates == first[number].updates


def test_the_best_of_all_validations_is_kept(monkeypatch):
    """R25: not the first, not the last."""
    trainer = Trainer(short_runs(0, 1), short_config(4))
    trainer.pretrain()
    scores = iter([(1.0, 5.0), (7.0, 2.0), (3.0, 4.0), (6.0, 9.0)])

    def scored(scenario, outcome, dimensions, plan=[]):  # noqa: B006
        if not plan:
            plan += next(scores)
        return {"utility_per_task": plan.pop(0)}

    kept = []
    for _ in range(4):
        with monkeypatch.context() as patch:
            patch.setattr(trainer, "_curves", lambda rollout: [{}, {}])
            patch.setattr(trainer_module, "episode_metrics", scored)
            trainer.train_episode()
        kept.append(trainer.en.parameters.copy())
    assert trainer.best_episode.tolist() == [2, 4]
    assert trainer.best_utility.tolist() == [7.0, 9.0]
    np.testing.assert_array_equal(trainer.best_en[0], kept[1][0])
    np.testing.assert_array_equal(trainer.best_en[1], kept[3][1])


def test_pretraining_learns_to_predict():
    """The encoder's loss on its own data falls well below that of predicting no change."""
    runs, config = short_runs(0), short_config(1, "encoder.epochs=40")
    before, after = Trainer(runs, config), Trainer(runs, config)
    after.pretrain()
    assert not before.encoder.any()
    states = np.random.default_rng(0).uniform(0, 1, (200, 4)).astype(np.float32)
    layers = after.encoder_layout.views(after.encoder[0])
    start = Layout(encoder_shapes((32, 16), 2)).initial(stream(0, Purpose.NETWORKS, 0))
    moved = np.abs(after.encoder[0] - start).mean()
    spread = encode(layers, states).std(axis=0)
    assert moved > 0.01
    assert (spread > 0.02).all()  # the semantic tells states apart


def test_runs_that_differ_in_more_than_the_load_are_not_stacked():
    other = Run(load("shared-sn", ["episode.window_ms=1500", "episode.warmup_ms=0"]), 0)
    with pytest.raises(InputError, match="nothing but the load differs"):
        Trainer([*short_runs(0), other], short_config())
