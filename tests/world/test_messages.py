"""Status messages that are lost, late or overtake one another."""

import numpy as np
import pytest

from cosmo import Worlds, load
from cosmo.workload import episode


def _play(settings, seed=0):
    """Updates every 3 ms; returns what the cache and the acknowledgements went through."""
    scenario = load("paper", ["workload.rate=300", *settings])
    worlds = Worlds(scenario, [episode(scenario, seed, 0)], status_dimensions=4)
    held, acknowledged, sent = [], [], {}
    turn = worlds.advance()
    while not turn.over:
        if len(turn.dispatch):
            held.append((turn.dispatch.status_ms[0, 0], turn.dispatch.status[0, 0].copy()))
            worlds.answer(action=turn.dispatch.task % 3)
        if len(turn.update):
            look = turn.update
            acknowledged.append((look.acknowledged_ms[0, 0], look.acknowledged[0, 0].copy()))
            sent[float(look.time_ms[0])] = look.sn_state[0, :4].copy()
            worlds.answer(send=True, interval_ms=3.0, numbers=look.sn_state[:, :4])
        turn = worlds.advance()
    return held, acknowledged, sent, worlds.outcome(0)


@pytest.mark.parametrize("loss", [0.0, 0.2, 0.7])
@pytest.mark.parametrize("jitter", [0.0, 2.0, 40.0])
def test_what_is_held_and_acknowledged_was_sent_and_only_moves_forward(loss, jitter):
    held, acknowledged, sent, outcome = _play(
        [f"status.loss_probability={loss}", f"status.jitter_ms={jitter}"]
    )
    for history in (held, acknowledged):
        sources = np.array([source for source, _ in history])
        first = int(np.isnan(sources).sum())
        assert np.isnan(sources[:first]).all(), "what is held was forgotten"
        assert (np.diff(sources[first:]) >= 0).all()
        assert sources[-1] > 9000.0
        for _, numbers in history[:first]:
            assert not numbers.any()  # R14: an empty cache reads as zeros
        for source, numbers in history[first:]:
            np.testing.assert_array_equal(numbers, sent[source])
    # An EN is never behind what the SN knows it to hold: acknowledgements come after deliveries.
    assert outcome.updates == len(sent)


def test_about_as_many_are_lost_as_the_scenario_says():
    none_lost, _, sent, _ = _play([])
    arrivals = len({source for source, _ in none_lost})
    half_lost, _, _, _ = _play(["status.loss_probability=0.5"])
    assert len({source for source, _ in half_lost}) < 0.75 * arrivals
    assert len(sent) == 3334


def test_losses_repeat_with_the_seed_and_differ_between_seeds():
    settings = ["status.loss_probability=0.5", "status.jitter_ms=5"]
    held = (_play(settings, seed)[0] for seed in (0, 0, 1))
    first, again, other = (np.array([source for source, _ in history]) for history in held)
    assert np.array_equal(first, again, equal_nan=True)
    assert not np.array_equal(first, other, equal_nan=True)


def test_draws_are_uniform():
    """Jitter spreads deliveries evenly over its range: the mean age grows by half of it."""
    ages = []
    for jitter in (0.0, 20.0):
        settings = [f"status.jitter_ms={jitter}", "workload.rate=1", "episode.window_ms=400000"]
        scenario = load("paper", settings)
        worlds = Worlds(scenario, [episode(scenario, 0, 0)], status_dimensions=4)
        turn = worlds.advance()
        while not turn.over:
            worlds.answer(action=0, send=True, interval_ms=50.0, numbers=0.0)
            turn = worlds.advance()
        ages.append(worlds.outcome(0).status.aoi_ms)
    assert ages[1] - ages[0] == pytest.approx(10.0, abs=0.4)
