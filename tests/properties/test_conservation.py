"""What must hold in every world, whatever the scenario and whoever decides."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cosmo import Worlds
from cosmo.world.records import FN, FP, TN, TP, UNDECIDED
from scenarios import worlds


def _within(states, slots, storage):
    idle, wait, cycles, free, requests, latency = states.T
    assert (requests >= slots - idle).all()
    assert (latency >= 0).all()
    assert (idle >= 0).all()
    assert (idle <= slots).all()
    assert (idle == np.floor(idle)).all()
    assert (wait >= 0).all()
    assert (wait[idle > 0] == 0).all(), "somebody waits beside an idle slot"
    assert (cycles >= -1e-3).all()
    assert (free >= -1e-6).all()
    assert (free <= storage + 1e-6).all()


def _forward(before, sources):
    """What is held, [node] when it was made, only gets newer."""
    assert not (np.isnan(sources) & ~np.isnan(before)).any(), "what was held is gone"
    assert not (sources < before).any(), "what is held went back in source time"
    return sources.copy()


def _play_and_watch(scenario, episode, salt):
    """Play scrambled decisions; check every observation on the way."""
    en_slots = np.array(scenario.en.each("slots"))
    sn_slots = np.array(scenario.sn.each("slots"))
    en_storage = np.array(scenario.en.each("storage_bytes"))
    sn_storage = np.array(scenario.sn.each("storage_bytes"))
    held = np.full((scenario.en.count, scenario.sn.count), np.nan)
    acknowledged = held.copy()
    clock, sent = 0.0, {}

    batch = Worlds(scenario, [episode], status_dimensions=2)
    turn = batch.advance()
    while not turn.over:
        see, look = turn.dispatch, turn.update
        if len(see):
            now, en = float(see.time_ms[0]), int(see.en[0])
            _within(see.en_state, en_slots[en], en_storage[en])
            reached = see.reached[0]
            sns, sources = see.sn[0, reached], see.status_ms[0, reached]
            _within(batch.truth().sn_state[0, reached], sn_slots[sns], sn_storage[sns])
            assert not (sources > now).any()
            held[en, sns] = _forward(held[en, sns], sources)
            for column, (sn, source) in enumerate(zip(sns.tolist(), sources, strict=True)):
                want = np.zeros(2) if np.isnan(source) else sent[sn, source]
                np.testing.assert_array_equal(see.status[0, column], want)
            age = now - np.nan_to_num(sources, nan=0.0)
            np.testing.assert_array_equal(see.age_ms[0, reached], age)
            assert see.throughput_mbps[0] > 0
            assert see.residual_ms[0] >= 0
            action = (int(see.task[0]) * 2654435761 + salt) % (len(sns) + 2)
            batch.answer(action=action if action <= len(sns) else see.reject)
        if len(look):
            now, sn = float(look.time_ms[0]), int(look.sn[0])
            _within(look.sn_state, sn_slots[sn], sn_storage[sn])
            ens, sources = look.en[0, look.reached[0]], look.acknowledged_ms[0, look.reached[0]]
            if look.returned[0]:  # R38: it knows nothing of before
                acknowledged[ens, sn] = np.nan
            assert not (sources < look.up_since_ms[0]).any()
            acknowledged[ens, sn] = _forward(acknowledged[ens, sn], sources)
            assert now <= episode.window_ms
            total = look.recent_success[0] + look.recent_failure[0]
            assert total in (0.0, 1.0)
            send = (round(now * 100) + salt) % 2 == 0
            sent[sn, now] = numbers = np.array([now, look.sn_state[0, 2]])
            batch.answer(send=send, interval_ms=7.0 + sn, numbers=numbers)
        assert now >= clock, "time went backwards"
        clock = now
        turn = batch.advance()
    return batch.outcome(0)


@settings(max_examples=60, deadline=None)
@given(worlds(lossy=True), st.integers(0, 100))
def test_every_task_ends_once_and_no_limit_is_broken(case, salt):
    scenario, episode = case
    outcome = _play_and_watch(scenario, episode, salt)
    tasks, label, action = outcome.tasks, outcome.outcome, outcome.action
    reject = scenario.links.most_sns + 1
    decided = label != UNDECIDED

    assert np.isin(label, (TP, FP, TN, FN, UNDECIDED)).all()
    assert ((action >= 0) == decided).all()
    assert (np.isin(label, (TN, FN)) == (action == reject)).all()
    assert np.isfinite(outcome.finished_ms).all()
    assert (outcome.decided_ms[decided] > tasks.time_ms[decided]).all()
    assert (outcome.finished_ms[decided] >= outcome.decided_ms[decided]).all()
    assert (label[outcome.refused] == FP).all()
    delay = outcome.finished_ms - tasks.time_ms
    assert (delay[label == TP] <= tasks.deadline_ms[label == TP]).all()
    late = (label == FP) & ~outcome.refused & ~outcome.lost
    assert (delay[late] > tasks.deadline_ms[late]).all()
    lost = outcome.lost
    assert (label[lost] == FP).all()
    assert not outcome.refused[lost].any()
    assert (delay[lost] >= tasks.deadline_ms[lost] - 1e-9).all()
    fate, heard_ms = outcome.heard()
    assert ((fate > 0) == decided).all(), "an EN hears of each of its tasks"
    assert (np.isnan(heard_ms) == ~decided).all()
    assert (heard_ms[decided] >= outcome.decided_ms[decided]).all()
    if episode.expires:  # and no later than at its deadline, or its decision
        offloaded = (action > 0) & (action < reject)
        due = np.maximum(tasks.time_ms + tasks.deadline_ms, outcome.decided_ms)
        assert (heard_ms[offloaded] <= due[offloaded]).all()
    assert outcome.any_feasible[label == FN].all()
    assert not outcome.any_feasible[label == TN].any()


def _begun(scenario, episode, en, end, cycles):
    """When tasks of an EN began that end then: its cycles since the start, and back (R37)."""
    speeds = episode.events
    own = speeds.node == en  # ENs never fail
    times = np.array([0.0, *speeds.time_ms[own], 1e7])
    factors = np.array([1.0, *speeds.factor[own]])
    done = np.concatenate([[0.0], np.cumsum(np.diff(times) * factors)])
    rate = scenario.en.each("cycles_per_ms")[en]
    return np.interp(np.interp(end, times, done) - cycles / rate, done, times)


@settings(max_examples=40, deadline=None)
@given(worlds(lossy=True), st.integers(0, 100))
def test_an_en_serves_in_order_within_its_slots_places_and_storage(case, salt):
    scenario, episode = case
    outcome = _play_and_watch(scenario, episode, salt)
    tasks = outcome.tasks
    for en in range(scenario.en.count):
        mine = (tasks.en == en) & (outcome.action == 0) & ~outcome.refused
        start = outcome.decided_ms[mine]
        end = outcome.finished_ms[mine]
        begin = _begun(scenario, episode, en, end, tasks.work_cycles[mine])
        order = np.argsort(start, kind="stable")
        assert (np.diff(begin[order]) >= -1e-6).all(), "not first come, first served"
        held = np.maximum(tasks.input_bytes[mine], scenario.storage.reservation_floor_bytes)
        slots = scenario.en.each("slots")[en]
        places = scenario.en.each("queue_capacity")[en]
        storage = scenario.en.each("storage_bytes")[en]
        for now in start:
            present = (start <= now) & (end > now)
            running = (begin <= now + 1e-9) & (end > now + 1e-9)
            assert present.sum() <= places
            assert running.sum() <= slots
            assert held[present].sum() <= storage + 1e-6
