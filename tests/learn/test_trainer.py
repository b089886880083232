"""Training end to end, on short episodes."""

import subprocess
import sys

import numpy as np
import pytest

from cosmo import InputError, load, play
from cosmo.control.learned import Learned
from cosmo.learn.config import load_config
from cosmo.learn.coordinator import Intervals
from cosmo.learn.trainer import Run, Trainer
from cosmo.measure import task_utility
from cosmo.workload import episode

SHORT = ["episode.window_ms=1500", "episode.warmup_ms=0"]


def _config(episodes=3):
    config = load_config()
    encoder = config.encoder.model_copy(update={"collection_episodes": 3, "epochs": 5})
    return config.model_copy(update={"episodes": episodes, "validate_every": 1, "encoder": encoder})


def _runs(*seeds, rate=300):
    scenario = load("paper", [*SHORT, f"workload.rate={rate}"])
    return [Run(scenario, seed) for seed in seeds]


def _trained(runs, episodes=3):
    trainer = Trainer(runs, _config(episodes))
    trainer.pretrain()
    trainer.train(lambda episode, curves: None)
    return trainer


def test_same_seed_same_weights_bit_for_bit_in_another_process():
    code = (
        "import sys, hashlib; sys.path.insert(0, 'tests/learn')\n"
        "from test_trainer import _trained, _runs\n"
        "t = _trained(_runs(4, 5), 2)\n"
        "print(hashlib.sha256(t.en.tobytes() + t.sn.tobytes() + t.encoder.tobytes()).hexdigest())\n"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.strip()
        for _ in range(2)
    }
    assert len(digests) == 1


def test_a_stacked_and_a_lone_run_agree_to_rounding_at_the_start_of_training():
    together = Trainer(_runs(1, 2, 3), _config())
    together.pretrain()
    together._train_episode()
    alone = Trainer(_runs(2), _config())
    alone.pretrain()
    alone._train_episode()
    np.testing.assert_allclose(together.encoder[1], alone.encoder[0], atol=1e-5)
    assert together._en_steps[1] == alone._en_steps[0]
    assert together._en_updates[1] == alone._en_updates[0]
    assert together._sn_updates[1] == alone._sn_updates[0]
    np.testing.assert_allclose(together.en[1], alone.en[0], atol=2e-3)


def test_each_run_makes_one_update_for_so_many_transitions():
    trainer = _trained(_runs(0, 1))
    en, sn = trainer.config.en, trainer.config.sn
    assert (trainer._en_updates == trainer._en_replay.written // en.update_every).all()
    assert (trainer._sn_updates == trainer._sn_replay.written // sn.update_every).all()
    assert (trainer._en_steps >= trainer._en_replay.written).all()


def test_the_encoder_is_frozen_and_the_agents_are_not():
    trainer = Trainer(_runs(0), _config(1))
    trainer.pretrain()
    encoder, en, sn = trainer.encoder.copy(), trainer.en.copy(), trainer.sn.copy()
    trainer.train(lambda episode, curves: None)
    np.testing.assert_array_equal(trainer.encoder, encoder)
    assert not np.array_equal(trainer.en, en)
    assert not np.array_equal(trainer.sn, sn)


def test_every_utility_is_counted_once_in_exactly_one_interval():
    trainer = Trainer(_runs(0, 1, rate=200), _config())
    trainer.pretrain()
    from cosmo.learn.trainer import _Rollout

    rollout = _Rollout(trainer)
    turn = rollout.worlds.advance()
    while not turn.over:
        rollout.take_note(turn)
        rollout.act(turn)
        turn = rollout.worlds.advance()
    rollout.take_note(turn)
    done = rollout._intervals
    cost_weight = 4.0 * 0.5 * 2
    for run in range(2):
        outcome = rollout.worlds.outcome(run)
        scenario = trainer.runs[run].scenario
        gained = task_utility(scenario, outcome)
        assert done.reward[run].sum() == pytest.approx(
            gained.sum() - cost_weight * outcome.updates, rel=1e-9
        )
        assert (done.pending[run] == 0).all()
        # Interval by interval, from the decision times alone.
        count = int(done.count[run])
        starts = done.start_ms[run, :count]
        which = np.searchsorted(starts, outcome.decided_ms, side="right") - 1
        sums = np.bincount(which, weights=gained, minlength=count)
        sent = done.action[run, :count] < 9
        np.testing.assert_allclose(done.reward[run, :count], sums - cost_weight * sent, atol=1e-6)
        assert trainer._en_replay.written[run] == len(outcome.tasks)


def test_intervals_are_written_in_order_and_only_when_their_tasks_are_final():
    intervals = Intervals(1, window_ms=100.0, shortest_ms=20.0, inputs=1, hidden=1)
    run, one, zero = np.array([0]), np.ones((1, 1), np.float32), np.zeros(1)

    def decide(now):
        intervals.open(run, one, one, np.array([0]), np.array([now]), np.array([40.0]), zero)

    open_ = np.array([False])
    decide(0.0)
    first = intervals.join(run, np.array([10.0]))
    assert intervals.complete(open_) == []
    tie = intervals.join(run, np.array([40.0]))  # the EN decides before the SN at that instant
    assert (first[0], tie[0]) == (0, 1)
    decide(40.0)
    decide(80.0)
    late = intervals.join(run, np.array([130.0]))  # after the window: still the last interval
    assert late[0] == 2
    intervals.settle(run, tie, np.array([5.0]))
    assert intervals.complete(open_) == []  # the first is not final yet
    intervals.settle(run, first, np.array([3.0]))
    assert intervals.complete(open_) == [(0, 0, False), (0, 1, False)]
    intervals.settle(run, late, np.array([1.0]))
    assert intervals.complete(open_) == []
    assert intervals.complete(np.array([True])) == [(0, 2, True)]
    assert intervals.reward[0, :3].tolist() == [3.0, 5.0, 1.0]


def test_the_best_checkpoint_acts_like_the_networks_it_came_from():
    trainer = _trained(_runs(0, 1), 2)
    scenario = trainer.runs[0].scenario
    worlds = [episode(scenario, 9, number) for number in range(3)]
    first = play(scenario, Learned(trainer.best_agents(1, 3)), worlds)
    for number, world in enumerate(worlds):
        [alone] = play(scenario, Learned(trainer.best_agents(1, 1)), [world])
        np.testing.assert_array_equal(alone.action, first[number].action)
        assert alone.updates == first[number].updates


def test_scenarios_with_several_nodes_are_refused():
    with pytest.raises(InputError, match="one EN and one SN"):
        Trainer([Run(load("campus"), 0)], _config())
