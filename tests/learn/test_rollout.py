"""Episodes that train: what agents see, do and get, from compiled code and by hand."""

from dataclasses import replace

import numpy as np
import pytest
from short import OUTAGES, played, played_episode, short_config, short_runs

from cosmo import SnStates, play
from cosmo.learn import en_agent, sn_agent
from cosmo.learn.coordinator import Intervals
from cosmo.learn.trainer import Trainer
from cosmo.measure import task_utility
from cosmo.policy.learned import Learned, LearnedDispatcher, LearnedUpdater
from cosmo.workload.table import RETURNS
from cosmo.world import Worlds
from cosmo.world.records import FP
from observations import site


def test_intervals_are_written_in_order_and_only_when_their_tasks_are_final():
    intervals = Intervals(1, 100.0, short_config())
    assert intervals.most == 5 + 2  # every 20 ms, at the very end, and one to spare
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


@pytest.mark.parametrize(("window_ms", "more"), [(300, ()), (1500, ()), (1500, OUTAGES)])
def test_every_utility_is_counted_once_in_exactly_one_interval(window_ms, more):
    """Also where SNs fail: a return ends the interval that an outage has cut short (R38)."""
    trainer, rollout = played_episode(
        short_runs(0, 1, rate=200, window_ms=window_ms, more=more), short_config()
    )
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
        ends = starts + done.length_ms[run, :count]
        np.testing.assert_allclose(ends[:-1], starts[1:], atol=1e-9)
        returned = outcome.episode.events.time_ms[outcome.episode.events.what == RETURNS]
        assert set(returned[returned < window_ms]) <= set(starts)
        assert bool(len(returned)) == bool(more)
        which = np.searchsorted(starts, outcome.decided_ms, side="right") - 1
        sums = np.bincount(which, weights=gained, minlength=count)
        sent = done.action[run, :count] < 9
        np.testing.assert_allclose(done.reward[run, :count], sums - cost_weight * sent, atol=1e-6)
        assert trainer.en.replay.written[run] == len(outcome.tasks)
        assert trainer.sn.replay.written[run] == count


@pytest.mark.parametrize("window_ms", [300, 1500])
def test_transitions_hold_what_the_agents_saw_did_and_got(window_ms):
    """Replayed with the controllers of `cosmo.policy`, which share no compiled code."""
    trainer, rollout = played_episode(
        short_runs(0, 1, rate=250, window_ms=window_ms), short_config()
    )
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
            before = updater.hidden[nodes.world, nodes.sn, 0].copy()
            seen, _, due = updater.values(nodes)
            assert due.all()
            intervals = rollout.intervals
            np.testing.assert_allclose(intervals.seen[place], seen[:, 0], rtol=1e-4, atol=1e-5)
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


@pytest.mark.parametrize(("window_ms", "more"), [(300, ()), (1500, ()), (1500, OUTAGES)])
@pytest.mark.parametrize(
    "settings", [(), ("en.hierarchical=false",), ("en.with_age=true", "encoder.semantic=false")]
)
def test_training_and_a_node_with_numpy_alone_decide_alike(settings, window_ms, more):
    """Greedy episodes by the compiled networks and by `cosmo.policy`, hidden state included."""
    runs = short_runs(3, 4, rate=250, window_ms=window_ms, more=more)
    trainer, rollout = played_episode(runs, short_config(3, *settings), explore=False)
    outcomes = play(
        trainer.runs[0].scenario, Learned(trainer.agents()), list(rollout.worlds.episodes)
    )
    for run, outcome in enumerate(outcomes):
        same = rollout.worlds.outcome(run)
        np.testing.assert_array_equal(outcome.action, same.action)
        assert outcome.updates == same.updates
        assert outcome.update_decisions == same.update_decisions


@pytest.mark.parametrize(("window_ms", "weight"), [(300, 0.0125), (1500, 0.5)])
def test_the_stale_loss_is_what_the_en_would_gain_by_a_fresh_status(window_ms, weight):
    trainer = Trainer(
        short_runs(0, rate=300, window_ms=window_ms), short_config(3, "encoder.semantic=false")
    )
    trainer.en.parameters = 3.0 * trainer.en.parameters  # large enough for the SN's state to matter
    shaped, plain = (
        played(trainer, short_config(3, "encoder.semantic=false", f"sn.stale_loss_weight={given}"))
        for given in (weight, 0.0)
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
            interval = shaped.notes.interval[0, tasks.task, 0]
            lost[0, interval] += 80.0 * (values.max() - values[0, stale[0]])
            row = shaped.notes.rows[0, tasks.task]
            worlds.answer(action=row[:, 17 + en_agent.ACTION].astype(np.int64))
        if len(turn.update):
            send, interval_ms = agents.sn_answer(shaped.intervals.action[0, n : n + 1])
            told = updater.encode(turn.update.states)
            worlds.answer(send=send, interval_ms=interval_ms, numbers=told)
            n += 1
        turn = worlds.advance()
    np.testing.assert_allclose(difference, weight * lost, atol=2e-2)


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
    rows = trainer.sn.replay.saved()["rows"][0, :30]
    assert rows[:, sn_agent.TERMINAL].tolist() == [0.0] * 29 + [1.0]
    assert not rows[29, -11:].any()  # terminal: nothing is seen after it
    # The channel is swamped; tasks that are decided after the end are the last interval's.
    late = outcome.decided_ms >= 1500.0
    assert late.any()
    assert (rollout.notes.interval[0, : len(late), 0][late] == 29).all()


def test_of_equal_values_the_first_action_is_taken():
    config = short_config()
    trainer = Trainer(short_runs(0, window_ms=300), config)
    trainer.sn.parameters = 0.0 * trainer.sn.parameters
    done = played(trainer, config, explore=False).intervals
    assert done.count[0] == 300 / 20
    assert not done.action[0, : done.count[0]].any()  # send, and decide again after 20 ms


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
    number = np.bincount(plain.notes.interval[0, :tasks, 0], minlength=count)
    np.testing.assert_allclose(
        shifted.intervals.reward[0, :count],
        plain.intervals.reward[0, :count] - 50.0 * number,
        atol=1e-6,
    )
    kept, same = (each.en.replay.saved() for each in (trainer, moved))
    np.testing.assert_array_equal(kept["rows"], same["rows"])


def test_exploration_decays_by_each_agents_own_decisions():
    """R24: the share of random actions follows ε from 1 to 0.05."""
    config = short_config(1, "exploration.steps=400", "exploration.end=0.0")
    trainer, rollout = played_episode(short_runs(0, rate=600), config)
    notes = rollout.notes
    count = len(rollout.worlds.outcome(0).tasks)
    actions = notes.rows[0, :count, 15 + en_agent.ACTION].astype(int)
    local, remote = notes.rows[0, :count, :10], notes.rows[0, :count, 10:15]
    greedy = trainer.agents().en_actions(np.zeros(count, np.int64), local, remote)
    assert (actions[400:] == greedy[400:]).all()  # tasks are decided in order here
    # Of three actions, one in three random ones is the greedy one, too.
    epsilon = 1.0 - np.arange(400) / 400
    other = (actions != greedy)[:400]
    for part in (slice(0, 130), slice(130, 260), slice(260, 400)):
        chance = 2.0 / 3.0 * epsilon[part]
        spread = np.sqrt((chance * (1.0 - chance)).sum())
        assert abs(other[part].sum() - chance.sum()) < 4.0 * spread


def test_steps_of_exploration_go_on_in_the_next_episode():
    trainer = Trainer(short_runs(0, rate=600), short_config(2, "exploration.steps=400"))
    trainer.pretrain()
    trainer.train_episode()
    first = trainer.en_steps[0]
    assert first > 400  # one for each task
    trainer.train_episode()
    assert trainer.en_steps[0] > first + 400


def test_sn_transitions_in_the_replay_are_the_episodes_intervals():
    trainer, rollout = played_episode(short_runs(0), short_config())
    rows = trainer.sn.replay.saved()["rows"][0]
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
    rows = trainer.en.replay.saved()["rows"][0]
    found = sorted(map(tuple, rows[:, [15 + en_agent.UTILITY, 15 + en_agent.FAILED]].tolist()))
    expected = sorted(
        (float(np.float32(u / 80.0)), float(o == FP))
        for u, o in zip(gained, outcome.outcome, strict=True)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-6)
