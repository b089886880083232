"""The paper's agents with several ENs and SNs: shared weights, a decision for each EN and SN."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from short import OUTAGES, played_episode, short_config

from cosmo import check_method, load, play
from cosmo.learn import forward, session
from cosmo.learn.replay import SequenceReplay
from cosmo.learn.run import Run
from cosmo.learn.stack import Layout
from cosmo.learn.trainer import Trainer
from cosmo.measure import task_utility
from cosmo.policy import networks
from cosmo.policy.learned import Learned, LearnedUpdater
from cosmo.workload import episode
from cosmo.world import Worlds
from observations import site

UNEVEN = ("sn.count=3", "backhaul.reach=[[0, 2], [1], [0, 1, 2]]")
REMOTE = 5  # features of an SN


def _runs(*seeds, scenario="campus", window_ms=400, more=()):
    ways = [f"episode.window_ms={window_ms}", "episode.warmup_ms=0", *more]
    where = load(scenario, ways)
    return [Run(where, seed) for seed in seeds]


def _layout(hierarchical):
    return Layout(networks.shapes(10, REMOTE, hierarchical, 32, 64))


def _drawn(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def _values(hierarchical, p, local, remote, xp=np):
    """(gate or nothing, scores of routes or actions)."""
    if hierarchical:
        return networks.gate_and_route(p, local, remote, xp)
    return None, networks.flat_values(p, local, remote, xp)


@njit
def _scored(hierarchical, row, local, remote, sns, most, out, a, b, c):
    forward.en_scores(row, local, 10, remote, REMOTE, sns, most, 32, 64, hierarchical, out, a, b, c)


def _compiled(hierarchical, row, local, remote, sns, most):
    out, *room = (np.zeros(200, np.float32) for _ in range(4))
    _scored(hierarchical, row, local.copy(), remote.copy(), sns, most, out, *room)
    return out[: 3 + most] if hierarchical else out[: 2 + most]


@pytest.mark.parametrize("hierarchical", [True, False])
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000), sns=st.integers(2, 6), data=st.data())
def test_relabelling_sns_permutes_their_scores_and_leaves_the_others(hierarchical, seed, sns, data):
    order = data.draw(st.permutations(range(sns)))
    layout = _layout(hierarchical)
    p = layout.views(layout.initial(np.random.default_rng(seed)))
    local, remote = _drawn(seed, 1, 10), _drawn(seed + 1, sns, REMOTE)
    gate, scores = _values(hierarchical, p, local, remote.reshape(1, -1))
    gate_, scores_ = _values(hierarchical, p, local, remote[order].reshape(1, -1))
    np.testing.assert_allclose(scores_[0, 1 : 1 + sns], scores[0, 1 : 1 + sns][order], atol=1e-5)
    np.testing.assert_allclose(scores_[0, 0], scores[0, 0], atol=1e-5)
    if hierarchical:
        np.testing.assert_allclose(gate_, gate, atol=1e-5)
    else:
        np.testing.assert_allclose(scores_[0, -1], scores[0, -1], atol=1e-5)


def test_the_summary_is_half_mean_and_half_maximum_of_the_sns_that_are_there():
    h = np.array([[[1.0, 5.0, 2.0, 7.0]], [[3.0, 1.0, 4.0, 0.0]], [[9.0, 9.0, 9.0, 9.0]]])
    there = np.array([True, True, False])[:, None, None]
    assert networks.pooled(h, there).tolist() == [[2.0, 3.0, 4.0, 7.0]]
    assert networks.pooled(h[[1, 0, 2]], there).tolist() == [[2.0, 3.0, 4.0, 7.0]]
    only = np.array([True, False, False])[:, None, None]
    assert networks.pooled(h, only).tolist() == h[0].tolist()


@pytest.mark.parametrize("hierarchical", [True, False])
def test_beside_columns_without_an_sn_one_sn_has_the_bits_of_the_papers_network(hierarchical):
    layout = _layout(hierarchical)
    rows = np.stack([layout.initial(np.random.default_rng(seed)) for seed in range(3)])
    local, remote = _drawn(5, 3, 1, 10), _drawn(6, 3, 1, REMOTE)
    wider = np.concatenate([remote, np.zeros((3, 1, 2 * REMOTE), np.float32)], axis=2)
    gate, scores = _values(hierarchical, layout.views(rows), local, remote)
    gate_, scores_ = _values(hierarchical, layout.views(rows), local, wider)
    np.testing.assert_array_equal(scores_[..., :2], scores[..., :2])
    assert (scores_[..., 2:4] == -np.inf).all()
    if hierarchical:
        np.testing.assert_array_equal(gate_, gate)
    else:
        np.testing.assert_array_equal(scores_[..., 4], scores[..., 2])
    for run, row in enumerate(rows):  # and compiled
        alone = _compiled(hierarchical, row, local[run, 0], remote[run, 0], 1, 1)
        beside = _compiled(hierarchical, row, local[run, 0], wider[run, 0], 1, 3)
        there = beside[np.isfinite(beside)]
        np.testing.assert_array_equal(there, alone)


@pytest.mark.parametrize("hierarchical", [True, False])
@pytest.mark.parametrize("sns", [1, 2, 4])
def test_numpy_jax_and_compiled_networks_agree_on_several_sns(hierarchical, sns):
    layout, most = _layout(hierarchical), 4
    row = layout.initial(np.random.default_rng(2))
    local, remote = _drawn(7, 1, 10), _drawn(8, 1, most * REMOTE)
    remote[:, sns * REMOTE :] = 0.0  # the EN reaches fewer than others
    plain = _values(hierarchical, layout.views(row), local, remote)
    under_jax = _values(hierarchical, layout.views(jnp.asarray(row)), local, remote, jnp)
    want = np.concatenate([part[0] for part in plain if part is not None])
    found = np.concatenate([np.asarray(part)[0] for part in under_jax if part is not None])
    np.testing.assert_allclose(found, want, atol=1e-5)
    compiled = _compiled(hierarchical, row, local[0], remote[0], sns, most)
    np.testing.assert_allclose(compiled, want, atol=1e-5)


@pytest.mark.parametrize(
    ("world", "more"), [("campus", ()), ("campus", UNEVEN), ("campus", OUTAGES), ("volatile", ())]
)
@pytest.mark.parametrize(
    "options", [(), ("en.hierarchical=false",), ("en.with_age=true", "encoder.semantic=false")]
)
def test_training_and_a_node_with_numpy_alone_decide_alike(options, world, more):
    runs = _runs(3, 4, scenario=world, more=more)
    trainer, rollout = played_episode(runs, short_config(3, *options), explore=False)
    outcomes = play(runs[0].scenario, Learned(trainer.agents()), list(rollout.worlds.episodes))
    for run, outcome in enumerate(outcomes):
        same = rollout.worlds.outcome(run)
        np.testing.assert_array_equal(outcome.action, same.action)
        assert outcome.updates == same.updates
        assert outcome.update_decisions == same.update_decisions


@pytest.mark.parametrize("more", [(), UNEVEN, OUTAGES])
def test_every_utility_is_credited_once_to_each_sn_that_the_en_reaches(more):
    """And the price of an update to the pair that it was sent between, interval by interval."""
    trainer, rollout = played_episode(_runs(0, 1, window_ms=1000, more=more), short_config())
    done, links = rollout.intervals, site(trainer.runs[0].scenario).links
    pairs = [(en, int(sn)) for en, row in enumerate(links.reach) for sn in row if sn >= 0]
    price = 4.0 * 0.5 * 2
    assert (done.pending == 0).all()
    for run in range(2):
        outcome = rollout.worlds.outcome(run)
        gained = task_utility(trainer.runs[run].scenario, outcome)
        for place, (en, _) in enumerate(pairs):
            stream = run * len(pairs) + place
            count, own = int(done.count[stream]), outcome.tasks.en == en
            starts = done.start_ms[stream, :count]
            which = np.searchsorted(starts, outcome.decided_ms[own], side="right") - 1
            sums = np.bincount(which, weights=gained[own], minlength=count)
            sent = done.action[stream, :count] < 9
            np.testing.assert_allclose(done.reward[stream, :count], sums - price * sent, atol=1e-6)
            ends = starts + done.length_ms[stream, :count]
            np.testing.assert_allclose(ends[:-1], starts[1:], atol=1e-9)
        assert trainer.en.replay.written[run] == len(outcome.tasks)
    streams = done.count.reshape(2, len(pairs)).sum(axis=1)
    np.testing.assert_array_equal(trainer.sn.replay.written, streams)


def test_an_sn_decides_about_each_en_at_that_ens_own_times():
    """Every EN hears at its own interval what it would hear if it were alone with the SN."""
    [run] = _runs(0, scenario="campus", more=("sn.count=1",))
    trainer = Trainer([run], short_config())
    agents = trainer.agents()
    where = site(run.scenario)
    updater = LearnedUpdater(where, agents)
    choices = 0, 2, 4  # for the three ENs, whatever the networks say

    def values(worlds, seen, hidden):
        found = np.zeros((1, 3, 18), np.float32)
        for en, choice in enumerate(choices):
            found[0, en, choice] = 1.0
        return found, hidden

    updater.agents = replace(agents)
    object.__setattr__(updater.agents, "sn_values", values)
    worlds = Worlds(run.scenario, [episode(run.scenario, run.seed, 0)], status_dimensions=2)
    turn, told = worlds.advance(), []
    while not turn.over:
        if len(turn.dispatch):
            worlds.answer(action=np.zeros(len(turn.dispatch), np.int64))
        if len(turn.update):
            send, interval_ms = updater.decide(turn.update)
            told += [(float(turn.update.time_ms[0]), en) for en in np.flatnonzero(send[0])]
            worlds.answer(send=send, interval_ms=interval_ms, numbers=np.zeros((1, 2)))
        turn = worlds.advance()
    for en, choice in enumerate(choices):
        interval = agents.intervals_ms[choice]
        times = [time for time, who in told if who == en]
        np.testing.assert_allclose(times, np.arange(0.0, 400.0 + 1e-6, interval), atol=1e-6)


def test_random_actions_are_those_that_an_en_has_each_as_often():
    config = short_config(1, "exploration.end=1.0")
    _, rollout = played_episode(_runs(0, window_ms=3000, more=UNEVEN), config)
    outcome = rollout.worlds.outcome(0)
    decided = outcome.action >= 0
    for en, actions in enumerate(([0, 1, 2, 4], [0, 1, 4], [0, 1, 2, 3, 4])):
        own = outcome.action[decided & (outcome.tasks.en == en)]
        found, counts = np.unique(own, return_counts=True)
        assert found.tolist() == actions
        np.testing.assert_allclose(counts / len(own), 1 / len(actions), atol=0.08)


def test_a_method_of_these_agents_keeps_its_nodes_and_worlds_apart():
    trainer = Trainer(_runs(0, 1), short_config())
    check_method(Learned(trainer.agents().of([1, 1])), scenarios=["campus"], window_ms=400.0)


def test_sequences_of_several_streams_are_consecutive_in_their_own_stream():
    """Rows are (episode, stream, number in the stream), streams in turn, until the memory wraps."""
    replay, random = SequenceReplay(1, 50, 3, streams=3), np.random.default_rng(0)
    for number_of_episode in range(4):
        left, number = [20, 7, 1], [0, 0, 0]
        while any(left):
            stream = int(random.choice([k for k in range(3) if left[k]]))
            row = np.array([[number_of_episode, stream, number[stream]]], np.float32)
            replay.write(np.zeros(1, np.int64), row, np.array([stream]))
            left[stream] -= 1
            number[stream] += 1
    first, second = replay.sample(0, 2000, random).swapaxes(0, 1)
    np.testing.assert_array_equal(first[:, :2], second[:, :2])
    np.testing.assert_array_equal(first[:, 2] + 1, second[:, 2])
    assert set(first[:, 0]) == {2.0, 3.0}  # of 28 rows each, 50 are held
    assert set(first[:, 1]) == {0.0, 1.0}
    assert len({tuple(row) for row in second}) == replay.held()[0]


def test_a_run_has_the_same_bits_alone_and_in_a_stack_and_when_it_is_resumed(tmp_path):
    def trained(name, seeds, episodes, **more):
        session.train(tmp_path / name, "cosmo", _runs(*seeds), short_config(episodes), **more)
        with np.load(tmp_path / name / "state.npz") as file:
            return {key: file[key] for key in file.files}

    whole = trained("whole", (1, 2), 3)
    trained("parts", (1, 2), 1)
    resumed = trained("parts", (1, 2), 3, resume=True)
    assert whole.keys() == resumed.keys()
    for name, value in whole.items():
        np.testing.assert_array_equal(value, resumed[name], err_msg=name)
    alone = trained("alone", (2,), 3)
    assert whole["en/updates"][1] > 0
    assert whole["sn/updates"][1] > 0
    for part in ("en/parameters", "sn/parameters", "sn/target", "encoder"):
        np.testing.assert_array_equal(alone[part][0], whole[part][1])


def test_an_sn_that_no_en_reaches_changes_no_bit_of_a_training():
    """One EN with one SN is the paper's pair, whatever else is at the site."""

    def trained(*more):
        runs = _runs(0, scenario="paper", window_ms=1500, more=more)
        trainer = Trainer(runs, short_config(2))
        trainer.pretrain()
        trainer.train(lambda episode, curves: None)
        return trainer

    pair, beside = trained(), trained("sn.count=2", "backhaul.reach=[[0]]")
    assert pair.sn.updates[0] > 0
    np.testing.assert_array_equal(pair.en.parameters, beside.en.parameters)
    np.testing.assert_array_equal(pair.sn.parameters, beside.sn.parameters)
