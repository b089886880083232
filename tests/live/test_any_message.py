"""Any message of the protocol's types, at an EN and an SN: it is refused, or its task ends.

When all calls are over, slots, storage and timers are what they were before, and every task that
was taken has been answered and counted once.
"""

import asyncio

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from virtual_clock import VirtualClock

from cosmo.live import wire
from cosmo.live.tasks import Fate
from cosmo.node import LATENCY
from cosmo.policy.registry import METHODS
from cosmo.policy.trained import TRAINED
from live.cores import task
from live.nodes import play
from live.still_nodes import AbortedError, Context, made, turns

UINT64, UINT32 = st.integers(0, 2**64 - 1), st.integers(0, 2**32 - 1)


class Clock(VirtualClock):
    """Like that of a node: what was due in the past is due now."""

    scale, latest_ms = 1.0, 0.0

    def at(self, time_ms, kind, call):
        self.latest_ms = max(self.latest_ms, time_ms)
        return super().at(max(time_ms, self._now), kind, call)

    def timers(self):
        return sum(event.call is not None for *_, event in self._events)


def _often(plausible, anything):
    return st.one_of(plausible, plausible, anything)


ANY_TASKS = st.builds(
    wire.Task,
    id=UINT64,
    kind=_often(st.just("k"), st.text(max_size=5)),
    cycles=_often(st.floats(1.0, 1e6), st.floats()),
    deadline_us=_often(st.integers(1, 10**6), UINT64),
    elapsed_us=_often(st.integers(0, 10**6), UINT64),
    input=st.binary(max_size=9),
    ue=UINT32,
    residual_us=UINT64,
    boot=st.integers(0, 3),
)
# Generated so long ago, by their callers' word, and not late yet.
OLD_TASKS = st.builds(
    lambda elapsed_us, left_us: wire.Task(
        cycles=1e5, elapsed_us=elapsed_us, deadline_us=elapsed_us + left_us
    ),
    _often(st.integers(0, 10**6), st.integers(0, 10**12 - 10**6)),
    st.integers(1, 10**6),
)
TASKS = st.one_of(ANY_TASKS, OLD_TASKS)
STATUSES = st.builds(
    wire.Status,
    sequence=UINT64,
    held_us=_often(st.integers(0, 10**5), UINT64),
    numbers=st.lists(st.floats(width=32), min_size=3, max_size=5),
)
RESULTS = st.builds(
    wire.Result,
    id=UINT64,
    fate=_often(st.integers(1, 6), st.integers(-(2**31), 2**31 - 1)),
    output=st.binary(max_size=9),
    held_us=UINT64,
    reason=st.text(max_size=5),
    status=st.one_of(st.none(), STATUSES),
)
HEARTBEATS = st.builds(wire.Heartbeat, stamp=UINT64, echo=UINT64, round_trip_us=UINT64)
FROM_SN = st.one_of(
    st.builds(
        wire.FromSn,
        welcome=st.builds(wire.Welcome, boot=UINT64, slots=UINT32, work_cycles=st.floats()),
    ),
    st.builds(wire.FromSn, status=STATUSES),
    st.builds(wire.FromSn, heartbeat=HEARTBEATS),
)
FROM_EN = st.one_of(
    st.builds(wire.FromEn, hello=st.builds(wire.Hello, boot=UINT64, version=UINT32)),
    st.builds(wire.FromEn, ack=st.builds(wire.Ack, sequence=UINT64)),
    st.builds(wire.FromEn, heartbeat=HEARTBEATS),
)


def _node(role, use="never", sns=1, **fields):
    """A node under a virtual clock, and how it is before anything has come."""
    node, _ = made(role, fields, use, [f"127.0.0.1:{1 + sn}" for sn in range(sns)])
    node.clock = node.core._clock = node.worker._clock = clock = Clock()
    return node, clock, _taken(node, clock)


def _taken(node, clock):
    """Slots, storage, requests and work at a node; timers; tasks elsewhere; calls."""
    state = np.delete(node.core.station.state(clock.now()), LATENCY).tolist()
    return state, clock.timers(), len(getattr(node.core, "_away", ())), node.in_flight


async def _ended(calls, clock):
    """Let time go by until there is nothing left to wait for; how many tasks were taken."""
    for _ in range(3):
        await turns(10)
        clock.run()
    await turns(10)
    assert all(call.done() for call in calls)
    wrong = [call.exception() for call in calls if call.exception() is not None]
    assert all(isinstance(each, AbortedError) for each in wrong), wrong
    assert clock.latest_ms < 1e12  # what a timer can be set for
    return len(calls) - len(wrong)


def _counted(node):
    """Tasks that have been answered, of all fates."""
    return sum(count for name, _, count in node.counters.samples() if name == "tasks_total")


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(TASKS, TASKS, FROM_EN), max_size=12), st.sampled_from(["drop", "finish"]))
def test_an_sn_is_as_it_was_after_any_messages(messages, late):
    async def scene():
        node, clock, before = _node("sn", **{"behaviour.late": late})
        calls, out = [], asyncio.Queue(100)
        for message in messages:
            if isinstance(message, wire.Task):
                calls.append(asyncio.create_task(node.execute(message, Context())))
                await turns()
            else:
                await node._read(0, _stream(message), out)
        taken = await _ended(calls, clock)
        assert _taken(node, clock) == before
        assert _counted(node) == taken

    play(scene())


async def _stream(message):
    yield message


@pytest.mark.parametrize("use", [*sorted(METHODS.keys() - TRAINED.keys()), "cosmo-next"])
@settings(max_examples=12, deadline=None)
@given(
    st.lists(st.tuples(TASKS, RESULTS, st.booleans()), max_size=8),
    st.sampled_from(["drop", "finish"]),
    st.integers(1, 2),
)
def test_an_en_is_as_it_was_after_any_messages(use, messages, late, sns):
    """And its method has met nothing that it cannot decide on."""

    async def scene():
        node, clock, before = _node("en", use, sns, **{"behaviour.late": late})
        answers = iter([result for _, result, _ in messages])

        async def execute(task, timeout_s):
            return next(answers)

        for sn, each in enumerate(node.connections):
            node.core.silence(sn, False)
            each.execute = execute
        calls = []
        for given_task, _, pause in messages:
            calls.append(asyncio.create_task(node.submit(given_task, Context())))
            await turns()
            if pause:
                clock.run()
        taken = await _ended(calls, clock)
        assert _taken(node, clock) == before
        assert _counted(node) == taken
        assert node.core.runner.faults == 0, node.log._stream.getvalue()
        await node.close()

    play(scene())


@settings(max_examples=60, deadline=None)
@given(st.lists(FROM_SN, max_size=12), st.sampled_from(["never", "prequal", "cosmo-next"]))
def test_no_method_sees_a_number_that_no_sn_could_have_sent(messages, use):
    async def scene():
        node, clock, before = _node("en", use)
        one = node.connections[0]
        for message in messages:
            one.take(message)
        seen = node.core.sight(task(0), clock.now()).arrays()
        assert np.isfinite(seen.status).all()
        assert (seen.status <= one._claims._most).all()
        assert (seen.status >= one._claims.least).all()
        assert np.isfinite(seen.up_backlog_ms).all()
        assert not (seen.status_ms > clock.now()).any()
        assert 0.0 <= one.round_trip_ms < 1e6
        assert _taken(node, clock) == before
        told = node.log._stream.getvalue().count("not believed")
        assert told <= node.counters.get("implausible_messages_total", sn="sn0")
        await node.close()

    play(scene())


@pytest.mark.parametrize("role", ["en", "sn"])
def test_work_that_cannot_begin_leaves_its_slot(role):
    """As where no process can be started, or a timer cannot be set."""

    async def scene():
        node, clock, before = _node(role, "all-local" if role == "en" else "never")

        def run(*told):
            raise OSError("no more processes")

        node.worker.run = run
        calls = []
        for number in range(8):  # more than slots
            call = node.submit if role == "en" else node.execute
            given_task = wire.Task(id=number, cycles=1e5, deadline_us=10**5)
            calls.append(asyncio.create_task(call(given_task, Context())))
        assert await _ended(calls, clock) == 8
        assert _taken(node, clock) == before
        failed = [call.result() for call in calls if call.result().fate == Fate.FAILED]
        assert {each.reason for each in failed} == {
            "the work cannot begin (OSError: no more processes)"
        }
        if role == "en":
            await node.close()

    play(scene())


@pytest.mark.parametrize("role", ["en", "sn"])
def test_what_fails_after_a_task_was_taken_gives_its_slot_back(role):
    async def scene():
        node, clock, before = _node(role, "all-local" if role == "en" else "never")
        arrive = node.core.arrive

        def fails(*told):
            arrive(*told)
            raise RuntimeError("after admission")

        node.core.arrive = fails
        call = node.submit if role == "en" else node.execute
        with pytest.raises(RuntimeError, match="after admission"):
            await call(wire.Task(id=1, cycles=1e5, deadline_us=10**5), Context())
        assert _taken(node, clock) == before
        if role == "en":
            await node.close()

    play(scene())
