"""Training end to end, on short episodes."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from short import played, played_episode, short_config, short_runs

from cosmo import InputError, SnStates, load, play
from cosmo.learn import en_agent, sn_agent
from cosmo.learn import trainer as trainer_module
from cosmo.learn.coordinator import Intervals
from cosmo.learn.run import Run
from cosmo.learn.stack import Layout
from cosmo.learn.trainer import Trainer
from cosmo.measure import task_utility
from cosmo.policy.learned import Learned, LearnedDispatcher, LearnedUpdater
from cosmo.policy.networks import encode, encoder_shapes
from cosmo.seeds import Purpose, stream
from cosmo.workload import episode
from cosmo.world import Worlds
from cosmo.world.records import FP
from observations import site


def _trained(runs, episodes=3):
    trainer = Trainer(runs, short_config(episodes))
    trainer.pretrain()
    trainer.train(lambda episode, curves: None)
    return trainer


def test_same_seed_same_weights_bit_for_bit_in_another_process():
    code = (
        "import sys, hashlib; sys.path[:0] = ['tests', 'tests/learn']\n"
        "from test_trainer import _trained, short_runs\n"
        "t = _trained(short_runs(4, 5), 2)\n"
        "all = [t.en.parameters, t.sn.parameters, t.encoder]\n"
        "print(hashlib.sha256(b''.join(x.tobytes() for x in all)).hexdigest())\n"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.strip()
        for _ in range(2)
    }
    assert len(digests) == 1


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


def test_every_utility_is_counted_once_in_exactly_one_interval():
    trainer, rollout = played_episode(short_runs(0, 1, rate=200), short_config())
    done = rollout.intervals
    cost_weight = 4.0 * 0.5 * 2
    for run in range(2):
        outcome = rollout.worlds.outcome(run)
        scenario = trainer.runs[run].scenario
        gained = task_utility(scenario, outcome)
        count = int(done.count[run])
        assert done.reward[run].sum() == pytest.approx(
            gained.sum() - cost_weight * (done.action[run, :count] < 9).sum(), rel=1e-9
        )
        assert (done.pending[run] == 0).all()
        # Interval by interval, from the decision times alone.
        starts = done.start_ms[run, :count]
        which = np.searchsorted(starts, outcome.decided_ms, side="right") - 1
        sums = np.bincount(which, weights=gained, minlength=count)
        sent = done.action[run, :count] < 9
        np.testing.assert_allclose(done.reward[run, :count], sums - cost_weight * sent, atol=1e-6)
        assert trainer.en.replay.written[run] == len(outcome.tasks)
        assert trainer.sn.replay.written[run] == count


def test_a_decision_on_the_very_end_may_send_but_has_no_transition():
    """R21: every 50 ms in 1500 ms, 31 decisions; the last one's update is in nobody's reward."""
    config = short_config(1, "sn.intervals_ms=[50.0]", "sn.may_skip=false")
    trainer, rollout = played_episode(short_runs(0, rate=600), config)
    outcome, done = rollout.worlds.outcome(0), rollout.intervals
    assert (outcome.updates, outcome.update_decisions) == (31, 31)
    assert int(done.count[0]) == trainer.sn.replay.written[0] == 30
    np.testing.assert_array_equal(done.start_ms[0, :30], 50.0 * np.arange(30))
    gained = task_utility(trainer.runs[0].scenario, outcome)
    assert done.reward[0].sum() == pytest.approx(gained.sum() - 4.0 * 30, rel=1e-9)
    rows = trainer.sn.replay._rows[0, :30]
    assert rows[:, sn_agent.TERMINAL].tolist() == [0.0] * 29 + [1.0]
    assert not rows[29, -11:].any()  # terminal: nothing is seen after it
    # The channel is swamped; tasks that are decided after the end are the last interval's.
    late = outcome.decided_ms >= 1500.0
    assert late.any()
    assert (rollout.notes.interval[0, : len(late)][late] == 29).all()


def test_transitions_hold_what_the_agents_saw_did_and_got():
    """Replayed with the controllers of `cosmo.policy`, which share no compiled code."""
    trainer, rollout = played_episode(short_runs(0, 1, rate=250), short_config())
    scenario, agents = trainer.runs[0].scenario, trainer.agents()
    where = site(scenario, 2)
    dispatcher, updater = LearnedDispatcher(where, agents), LearnedUpdater(where, agents)
    worlds = Worlds(scenario, rollout.worlds.episodes, status_dimensions=2)
    turn, decided = worlds.advance(), np.zeros(2, np.int64)
    while not turn.over:
        tasks, nodes = turn.dispatch, turn.update
        if len(tasks):
            rows = rollout.notes.rows[tasks.world, tasks.task]
            local, remote = dispatcher.observe_inputs(tasks)
            np.testing.assert_allclose(rows[:, :10], local, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(rows[:, 10:15], remote, rtol=1e-4, atol=1e-5)
            told = rows[:, 15:]
            truth = worlds.truth()
            feasible = truth.feasible
            np.testing.assert_array_equal(told[:, en_agent.ACCEPT_LABEL], feasible.any(axis=1))
            for row in np.flatnonzero(feasible.any(axis=1)):
                best = min(np.flatnonzero(feasible[row]), key=lambda r: truth.delay_ms[row, r])
                assert told[row, en_agent.ROUTE_LABEL] == best
            worlds.answer(action=told[:, en_agent.ACTION].astype(np.int64))
        if len(nodes):
            place = nodes.world, decided[nodes.world]
            before = updater.hidden[nodes.world, nodes.sn].copy()
            seen, _ = updater.values(nodes)
            intervals = rollout.intervals
            np.testing.assert_allclose(intervals.seen[place], seen, rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(intervals.before[place], before, rtol=1e-4, atol=1e-5)
            send, interval_ms = agents.sn_answer(intervals.action[place])
            told = updater.encode(nodes.states)
            worlds.answer(send=send, interval_ms=interval_ms, numbers=told)
            decided[nodes.world] += 1
        turn = worlds.advance()
    for run in range(2):
        np.testing.assert_array_equal(
            worlds.outcome(run).outcome, rollout.worlds.outcome(run).outcome
        )


@pytest.mark.parametrize(
    "settings", [(), ("en.hierarchical=false",), ("en.with_age=true", "encoder.semantic=false")]
)
def test_training_and_a_node_with_numpy_alone_decide_alike(settings):
    """Greedy episodes by the compiled networks and by `cosmo.policy`, hidden state included."""
    trainer, rollout = played_episode(
        short_runs(3, 4, rate=250), short_config(3, *settings), explore=False
    )
    outcomes = play(
        trainer.runs[0].scenario, Learned(trainer.agents()), list(rollout.worlds.episodes)
    )
    for run, outcome in enumerate(outcomes):
        same = rollout.worlds.outcome(run)
        np.testing.assert_array_equal(outcome.action, same.action)
        assert outcome.updates == same.updates
        assert outcome.update_decisions == same.update_decisions


def test_the_stale_loss_is_what_the_en_would_gain_by_a_fresh_status():
    trainer = Trainer(short_runs(0, rate=300), short_config(3, "encoder.semantic=false"))
    trainer.en.parameters = 3.0 * trainer.en.parameters  # large enough for the SN's state to matter
    shaped, plain = (
        played(trainer, short_config(3, "encoder.semantic=false", f"sn.stale_loss_weight={weight}"))
        for weight in (0.5, 0.0)
    )
    difference = plain.intervals.reward - shaped.intervals.reward
    assert (difference >= -1e-6).all()
    assert difference.max() > 0
    # By hand, from a replay of the same decisions.
    scenario, agents = trainer.runs[0].scenario, trainer.agents()
    dispatcher = LearnedDispatcher(site(scenario), agents)
    updater = LearnedUpdater(site(scenario), agents)
    worlds = Worlds(scenario, shaped.worlds.episodes, status_dimensions=4)
    turn, lost, n = worlds.advance(), np.zeros_like(difference), 0
    while not turn.over:
        tasks = turn.dispatch
        if len(tasks):
            local, remote = dispatcher.observe_inputs(tasks)
            stale = agents.en_actions(tasks.world, local, remote)
            now, state = tasks.time_ms, worlds.truth().sn_state[:, 0]
            told = updater.encode(SnStates(tasks.world, np.zeros(1, np.int64), now, state))
            fresh = replace(tasks, status=told[:, None], status_ms=now[:, None])
            values = agents.en_values(tasks.world, *dispatcher.observe_inputs(fresh))
            interval = shaped.notes.interval[0, tasks.task]
            lost[0, interval] += 80.0 * (values.max() - values[0, stale[0]])
            row = shaped.notes.rows[0, tasks.task]
            worlds.answer(action=row[:, 17 + en_agent.ACTION].astype(np.int64))
        if len(turn.update):
            send, interval_ms = agents.sn_answer(shaped.intervals.action[0, n : n + 1])
            told = updater.encode(turn.update.states)
            worlds.answer(send=send, interval_ms=interval_ms, numbers=told)
            n += 1
        turn = worlds.advance()
    np.testing.assert_allclose(difference, 0.5 * lost, atol=2e-2)


def test_without_no_send_every_decision_sends():
    trainer, rollout = played_episode(short_runs(0), short_config(3, "sn.may_skip=false"))
    outcome = rollout.worlds.outcome(0)
    assert trainer.config.sn.actions == 9
    assert outcome.updates == outcome.update_decisions > 0


def test_beta_scales_utilities_but_not_the_cost_of_updates():
    _, plain = played_episode(short_runs(0), short_config())
    _, scaled = played_episode(short_runs(0), short_config(3, "sn.utility_weight=2.0"))
    sent = plain.intervals.action < 9
    count = int(plain.intervals.count[0])
    cost = 4.0 * sent[0, :count]
    np.testing.assert_allclose(
        scaled.intervals.reward[0, :count] + cost,
        2.0 * (plain.intervals.reward[0, :count] + cost),
        atol=1e-6,
    )


def test_inside_an_interval_a_utility_is_discounted_to_the_start_by_its_tasks_own_time():
    """R33, by hand from the decision times alone; a constant is then worth the same everywhere."""
    settings = "sn.discount_within_interval=true", "sn.utility_shift=7.0"
    trainer, rollout = played_episode(short_runs(0, rate=250), short_config(3, *settings))
    outcome, done = rollout.worlds.outcome(0), rollout.intervals
    count = int(done.count[0])
    starts = done.start_ms[0, :count]
    which = np.searchsorted(starts, outcome.decided_ms, side="right") - 1
    elapsed_ms = outcome.decided_ms - starts[which]
    assert elapsed_ms.max() > 100.0
    worth = 0.99 ** (elapsed_ms / 20.0)
    gained = task_utility(trainer.runs[0].scenario, outcome) + 7.0
    sums = np.bincount(which, weights=gained * worth, minlength=count)
    sent = done.action[0, :count] < 9
    np.testing.assert_allclose(done.reward[0, :count], sums - 4.0 * sent, atol=1e-6)
    # Discounted on from interval to interval, it does not matter where these begin and end.
    between = 0.99 ** (starts / 20.0)
    whole = float((gained * 0.99 ** (outcome.decided_ms / 20.0)).sum())
    assert float((between * sums).sum()) == pytest.approx(whole, rel=1e-9)


def test_a_shift_of_utility_reaches_the_sn_and_not_the_en():
    trainer, plain = played_episode(short_runs(0), short_config())
    moved, shifted = played_episode(short_runs(0), short_config(3, "sn.utility_shift=-50.0"))
    count = int(plain.intervals.count[0])
    tasks = len(plain.worlds.outcome(0).tasks)
    number = np.bincount(plain.notes.interval[0, :tasks], minlength=count)
    np.testing.assert_allclose(
        shifted.intervals.reward[0, :count],
        plain.intervals.reward[0, :count] - 50.0 * number,
        atol=1e-6,
    )
    np.testing.assert_array_equal(trainer.en.replay._rows, moved.en.replay._rows)


def test_intervals_are_written_in_order_and_only_when_their_tasks_are_final():
    intervals = Intervals(1, 100.0, short_config())
    run, open_, over = np.array([0, 0]), np.array([False]), np.array([True])

    def written(done):
        _, numbers, terminal = intervals.complete(done)
        return list(zip(numbers.tolist(), terminal.tolist(), strict=True))

    assert written(open_) == []
    intervals.count[0] = 3
    intervals.pending[0, :3] = (1, 1, 1)
    assert written(open_) == []
    intervals.settle(run[:1], np.array([1]), np.array([5.0]))
    assert written(open_) == []  # the first is not final yet
    intervals.settle(run[:1], np.array([0]), np.array([3.0]))
    assert written(open_) == [(0, False), (1, False)]
    intervals.settle(run[:1], np.array([2]), np.array([1.0]))
    assert written(open_) == []  # the last one waits for the end of the episode
    assert written(over) == [(2, True)]
    assert written(over) == []
    assert intervals.reward[0, :3].tolist() == [3.0, 5.0, 1.0]


def test_the_best_checkpoint_acts_like_the_networks_it_came_from():
    trainer = _trained(short_runs(0, 1), 2)
    scenario = trainer.runs[0].scenario
    worlds = [episode(scenario, 9, number) for number in range(3)]
    first = play(scenario, Learned(trainer.best_agents(1, 3)), worlds)
    for number, world in enumerate(worlds):
        [alone] = play(scenario, Learned(trainer.best_agents(1, 1)), [world])
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


def test_exploration_decays_by_each_agents_own_decisions():
    """R24: the share of random actions follows ε from 1 to 0.05."""
    config = short_config(1, "exploration.steps=400", "exploration.end=0.0")
    trainer, rollout = played_episode(short_runs(0, rate=600), config)
    notes = rollout.notes
    count = len(rollout.worlds.outcome(0).tasks)
    actions = notes.rows[0, :count, 15 + en_agent.ACTION].astype(int)
    drawn = rollout._en_chance.choice[0, :count]
    chance = rollout._en_chance.chance[0, :count]
    epsilon = np.maximum(0.0, 1.0 - np.arange(count) / 400)  # tasks are decided in order here
    explored = chance < epsilon
    assert (actions[explored] == drawn[explored]).all()
    assert 0 < explored[400:].sum() + 1 == 1
    greedy = trainer.agents().en_actions(
        np.zeros(1, np.int64), notes.rows[0, 500:501, :10], notes.rows[0, 500:501, 10:15]
    )
    assert actions[500] == greedy[0]
    assert rollout._en_chance.steps[0] == count


def test_sn_transitions_in_the_replay_are_the_episodes_intervals():
    trainer, rollout = played_episode(short_runs(0), short_config())
    rows = trainer.sn.replay._rows[0, : trainer.sn.replay.written[0]]
    done, start = rollout.intervals, sn_agent.EXTRA_COLUMNS
    count = int(done.count[0])
    assert len(rows) == count
    np.testing.assert_array_equal(rows[:, sn_agent.ACTION], done.action[0, :count])
    np.testing.assert_allclose(
        rows[:, sn_agent.REWARD], done.reward[0, :count] / (10.0 * 80.0), rtol=1e-6
    )
    np.testing.assert_array_equal(rows[:, sn_agent.INTERVAL], done.length_ms[0, :count])
    assert rows[:, sn_agent.TERMINAL].tolist() == [0.0] * (count - 1) + [1.0]
    np.testing.assert_array_equal(rows[:, start : start + 11], done.seen[0, :count])
    np.testing.assert_array_equal(rows[:-1, -11:], done.seen[0, 1:count])


def test_en_transitions_in_the_replay_have_their_utility_and_their_failures():
    trainer, rollout = played_episode(short_runs(0), short_config())
    outcome = rollout.worlds.outcome(0)
    gained = task_utility(trainer.runs[0].scenario, outcome)
    rows = trainer.en.replay._rows[0, : trainer.en.replay.written[0]]
    found = sorted(map(tuple, rows[:, [15 + en_agent.UTILITY, 15 + en_agent.FAILED]].tolist()))
    expected = sorted(
        (float(np.float32(u / 80.0)), float(o == FP))
        for u, o in zip(gained, outcome.outcome, strict=True)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-6)


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


def test_scenarios_with_several_nodes_are_refused():
    with pytest.raises(InputError, match="one EN and one SN"):
        Trainer([Run(load("campus"), 0)], short_config())
