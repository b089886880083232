"""What an EN behind gRPC makes of messages, with numbers that can be checked on paper.

A link of 96 Mbps takes 12 000 bytes a ms, two hops of 1 ms each, and 1500 bytes are forwarded once.
"""

import asyncio

import grpc
import pytest

from cosmo import load
from cosmo.live import serve_en, wire
from cosmo.live.config import load_config
from cosmo.live.scenario_files import configs_of
from cosmo.live.tasks import Fate, Item
from cosmo.node import NO_NODE
from live.nodes import play
from live.still_nodes import AbortedError, Context, made, turns

RESULT_MS = 1000 / 24_000 + 2.0 + 1000 / 24_000  # back, over 192 Mbps
EMULATE = {"links.emulate": True}


def _item(node, action=1, received_ms=490.0, **fields):
    """A task of 100 ms that was generated at 480, and its client's call."""
    told = {"input_bytes": 24_000.0, "cycles": 100.0, **fields}
    item = Item(5, told.pop("generated_ms", 480.0), told.pop("deadline_ms", 100.0), **told)
    item.action = action
    call = serve_en._Call(9, received_ms, asyncio.get_running_loop().create_future())
    call.sent_ms, call.path_ms, item.context = 499.0, 4.0, call
    return item, call.answer


def test_a_client_s_task_is_dated_by_durations_and_completed():
    async def scene():
        node, _ = made("en")
        node.estimates.learn("k", 1234.0)
        told = {"deadline_us": 70_500, "elapsed_us": 12_250, "residual_us": 4500, "ue": 3}
        item = node._item(wire.Task(id=9, kind="k", input=b"abc", **told), 500.0, None)
        assert (item.generated_ms, item.deadline_ms, item.residual_ms) == (487.75, 70.5, 4.5)
        assert (item.number, item.input_bytes, item.cycles, item.ue) == (0, 3.0, 1234.0, 3)
        bare = node._item(wire.Task(cycles=5.0, deadline_us=1000), 500.0, None)
        assert (bare.generated_ms, bare.residual_ms) == (500.0, 15_000.0)
        assert (bare.number, bare.input_bytes, bare.cycles) == (1, 1.0, 5.0)
        await node.close()

    play(scene())


def test_an_en_is_the_one_of_several_that_its_file_says():
    """Of four that share three SNs."""
    sns = tuple(f"127.0.0.1:{port}" for port in (1, 2, 3))

    async def scene():
        for number in range(4):
            node, _ = made("en", {"neighbours": 3, "number": number}, sns=sns)
            item = node._item(wire.Task(cycles=5.0, deadline_us=1000), 500.0, None)
            assert node.core.sight(item, 500.0).arrays().en.tolist() == [number]
            await node.close()

    play(scene())


def test_an_en_of_a_site_reaches_its_own_sns():
    """Of three SNs, en1 reaches the last: its columns are as many as others', its SNs are not."""
    scenario = load(
        "campus", ["sn.count=3", "sn.slots=[4, 2, 3]", "backhaul.reach=[[0, 1], [2], [1]]"]
    )
    ens, _ = configs_of(scenario, load_config("en"), load_config("sn"))

    async def scene():
        fields = ens[1].model_dump(include={"number", "neighbours", "site", "node"})
        node, _ = made("en", fields)
        assert (node.core.index, node.core.sns) == (1, 1)
        item = node._item(wire.Task(cycles=5.0, deadline_us=1000), 500.0, None)
        seen = node.core.sight(item, 500.0).arrays()
        assert (seen.en.tolist(), seen.sn.tolist()) == ([1], [[2, NO_NODE]])
        node.core.arrive(item)
        assert item.action == 1
        await node.close()

    play(scene())


@pytest.mark.parametrize(
    ("action", "rerun", "where"),
    [(0, False, "local"), (1, False, "sn0"), (1, True, "local"), (2, False, ""), (-1, False, "")],
)
def test_a_client_is_told_where_and_how_long(action, rerun, where):
    async def scene():
        node, clock = made("en")
        clock.time_ms = 500.0
        item, answer = _item(node, action)
        item.rerun = rerun
        node.answer(item, Fate.LATE, b"out")
        node.answer(item, Fate.DONE, b"once is enough")
        assert answer.result() == wire.Outcome(
            id=9, fate=2, where=where, output=b"out", held_us=10_000, delay_us=20_000, rerun=rerun
        )
        young, answer = _item(node, action, generated_ms=501.0)
        node.answer(young, Fate.FAILED, b"w" * 201)
        assert answer.result() == wire.Outcome(
            id=9, fate=6, where="local" if action == 0 else where if not rerun else "sn0",
            held_us=10_000, delay_us=0, reason="w" * 200,
        )  # fmt: skip
        await node.close()

    play(scene())


def test_an_emulated_link_holds_messages_back_less_what_the_real_way_takes():
    async def scene():
        for fields, offloaded, acknowledged in (
            # Books say 512 and 509; 1.5 ms and half a round trip are on the real way.
            (EMULATE, 512.0 - 1.5, 509.0 - 0.25),
            # Where the network is as slow as the link, hops alone are left to add.
            (
                {**EMULATE, "links.emulate_rate": False},
                500.0 + 2.0 + 1500 / 12_000 - 1.5,
                500.0 + 2.0 + 64 / 12_000 - 0.25,
            ),
        ):
            node, clock = made("en", fields, scale=2.0)
            clock.time_ms, node.lead.ms, node.connections[0].round_trip_ms = 500.0, 1.5, 1.0
            item, _ = _item(node)
            node.offload(0, item, 512.0)
            assert (item.context.sent_ms, item.context.path_ms) == (500.0, 12.0)
            node.acknowledge(0, 3, 509.0)
            assert [time for time, _ in clock.timers] == pytest.approx([offloaded, acknowledged])
            await node.close()

    play(scene())


class _Sn:
    """An SN that answers at once, at a time of its own."""

    transit_ms = 0.25

    def __init__(self, clock, result, at_ms=520.0):
        self._clock, self._result, self._at_ms = clock, result, at_ms
        self.calls, self.statuses = [], []

    async def execute(self, task, timeout_s):
        self.calls.append((task, timeout_s))
        self._clock.time_ms = self._at_ms
        if isinstance(self._result, Exception):
            raise self._result
        return self._result

    def take_status(self, status):
        self.statuses.append(list(status.numbers))

    async def close(self):
        pass


async def _executed(result, fields=None, scale=1.0, now=500.0, **of_item):
    """(server, SN, answer) of a task that was handed to the SN at 500 ms."""
    node, clock = made("en", fields, scale=scale)
    await node.connections[0].close()
    clock.time_ms = now
    node.connections[0] = there = _Sn(clock, result)
    item, answer = _item(node, **of_item)
    node.core._away[item.number] = item
    node._send(0, item)
    await item.context.working
    await node.close()
    return node, there, answer


def test_an_sn_is_told_what_has_gone_of_the_budget_and_called_for_as_long_as_is_left():
    async def scene():
        done = wire.Result(fate=1)
        for fields, scale, now, timeout_s, elapsed_us in (
            ({}, 2.0, 500.0, 0.16, 20_250),
            ({}, 1.0, 579.5, 0.001, 99_750),  # at least a ms
            ({"behaviour.late": "finish"}, 1.0, 500.0, 30.08, 20_250),
            ({}, 1.0, 479.5, 0.1005, 0),  # clocks that differ a little
        ):
            _, there, _ = await _executed(done, fields, scale, now, kind="k", input=b"xy")
            [(task, given_s)] = there.calls
            assert given_s == pytest.approx(timeout_s)
            assert task == wire.Task(
                id=5, kind="k", cycles=100.0, deadline_us=100_000, elapsed_us=elapsed_us,
                input=b"xy", boot=77,
            )  # fmt: skip

    play(scene())


def test_what_the_way_takes_beyond_the_books_is_guarded_against_and_led():
    async def scene():
        status = wire.Status(sequence=1, numbers=[4.0])
        result = wire.Result(fate=1, held_us=6000, output=b"out", status=status)
        # From 499 to 520, of which books know 4 ms and the SN had it for 6; and the way back.
        for fields, extra in (({}, 21.0 - 4.0 - 6.0 - RESULT_MS), (EMULATE, 11.0)):
            node, there, answer = await _executed(result, fields)
            assert node.overhead.window.quantile(0.5) == pytest.approx(extra)
            assert node.lead.ms == pytest.approx(0.05 * extra)
            assert there.statuses == [[4.0]]
            assert (answer.result().fate, answer.result().output) == (Fate.DONE, b"out")
            assert node.core.in_flight == 0
        node, there, answer = await _executed(wire.Result(fate=1), deadline_ms=39.9)
        assert (answer.result().fate, there.statuses) == (Fate.LATE, [])

    play(scene())


@pytest.mark.parametrize(
    ("result", "fate", "reason"),
    [
        (wire.Result(fate=3), Fate.REFUSED, ""),
        (wire.Result(fate=5), Fate.EXPIRED, ""),
        (wire.Result(fate=6, reason="broken"), Fate.FAILED, "broken"),
        (ValueError("odd"), Fate.FAILED, "the SN's answer cannot be read (odd)"),
    ],
)
def test_what_an_sn_could_not_do_is_told_as_such(result, fate, reason):
    async def scene():
        _, _, answer = await _executed(result)
        assert (answer.result().fate, answer.result().reason) == (fate, reason)

    play(scene())


@pytest.mark.parametrize(
    ("code", "fate", "reason"),
    [
        ("UNAVAILABLE", None, ""),  # done here instead
        ("CANCELLED", None, ""),
        ("RESOURCE_EXHAUSTED", Fate.REFUSED, ""),
        ("DEADLINE_EXCEEDED", Fate.EXPIRED, ""),
        ("INTERNAL", Fate.FAILED, f"INTERNAL: {'w' * 190}"),
    ],
)
def test_a_call_that_fails_as_a_call_is_one_of_four_things(code, fate, reason):
    async def scene():
        failed = grpc.aio.AioRpcError(grpc.StatusCode[code], None, None, details="w" * 300)
        node, _, answer = await _executed(failed)
        assert node.counters.get("execute_errors_total", code=code) == 1.0
        if fate is None:
            assert node.core.station.requests == 1
        else:
            assert (answer.result().fate, answer.result().reason) == (fate, reason)

    play(scene())


def test_calls_are_counted_from_their_task_to_their_answer():
    async def scene():
        node, clock = made("en", {"limits.calls": 1}, "all-local")
        task = wire.Task(id=4, cycles=18_000.0 * 8.0, deadline_us=90_000)
        call = asyncio.create_task(node.submit(task, Context()))
        await turns()
        assert node.in_flight == 1
        with pytest.raises(AbortedError, match="RESOURCE_EXHAUSTED"):
            await node.submit(task, Context())
        turned_away = node.counters.get("turned_away_total", status="grpc")
        assert (node.in_flight, turned_away) == (1, 1.0)
        clock.time_ms = 8.0
        min(clock.timers, key=lambda timer: timer[0])[1]()
        assert (await call).fate == Fate.DONE
        assert node.in_flight == 0
        again = asyncio.create_task(node.submit(task, Context()))
        await turns()
        again.cancel()
        await turns()
        assert (node.in_flight, node.counters.get("cancelled_total")) == (0, 1.0)
        assert node.core.in_flight == 0
        await node.close()

    play(scene())
