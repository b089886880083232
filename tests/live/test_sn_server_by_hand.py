"""What an SN behind gRPC makes of messages, with numbers that can be checked on paper.

A link of 96 Mbps takes 12 000 bytes a ms, two hops of 1 ms each, and 1500 bytes are forwarded once.
"""

import asyncio
from types import SimpleNamespace

import numpy as np
import pytest

from cosmo import load
from cosmo.live import serve_sn, wire
from cosmo.live.config import load_config
from cosmo.live.items import Fate, Item
from cosmo.live.scenario_files import configs_of
from live.by_hand import AbortedError, Context, made, turns
from live.nodes import play

RESULT_MS = 1000 / 24_000 + 2.0 + 1000 / 24_000  # back, over 192 Mbps
EMULATE = {"links.emulate": True}


async def _submitted(node, host, now=1000.0, **fields):
    """The call of an EN that has handed over a task."""
    host.time_ms = now
    told = {
        "id": 7,
        "cycles": 27_000.0 * 8.0,
        "deadline_us": 90_000,
        "elapsed_us": 20_500,
        "boot": 1,
    }
    call = asyncio.create_task(node.execute(wire.Task(**told | fields), Context()))
    await turns()
    return call


def test_a_task_at_an_sn_is_dated_by_durations_and_its_reply_says_how_long_it_was_held():
    async def scene():
        node, host = made("sn")
        call = await _submitted(node, host, input=b"abc", kind="k")
        [item] = [each for each in node.core.station._running if each is not None]
        assert (item.generated_ms, item.deadline_ms) == (979.5, 90.0)
        assert (item.number, item.input_bytes, item.cycles, item.kind) == (7, 3.0, 216_000.0, "k")
        # Until it is done, it is late after 69.5 ms, and done after 8.
        assert sorted(time for time, _ in host.timers) == [1008.0, 1069.5]
        host.time_ms = 1008.25
        min(host.timers, key=lambda timer: timer[0])[1]()
        assert await call == wire.Result(id=7, fate=1, held_us=8250)
        empty = await _submitted(node, host, id=8)
        [item] = [each for each in node.core.station._running if each is not None]
        assert item.input_bytes == 1.0
        empty.cancel()
        await turns()
        assert node.core.station.requests == 0

    play(scene())


def test_a_task_is_taken_once_and_only_from_an_en_that_is_known():
    en = serve_sn._En()
    assert [en.fresh(1, number) for number in (0, 1, 0)] == [True, True, False]
    assert en.fresh(2, 0)  # another life of the EN
    for number in range(1, 4097):  # 4096 are remembered: the first of them goes
        assert en.fresh(2, number)
    assert [en.fresh(2, 1), en.fresh(2, 0), en.fresh(2, 2)] == [False, True, False]

    async def scene():
        node, _ = made("sn")
        with pytest.raises(AbortedError, match=r"PERMISSION_DENIED.*no EN of name 'en9' here"):
            await node.execute(wire.Task(), Context("en9"))

    play(scene())


def test_results_and_statuses_of_an_emulated_link_leave_half_a_round_trip_early():
    async def scene():
        node, host = made("sn", EMULATE, "periodic", scale=2.0)
        node._states[0].transit_ms = 0.75
        host.time_ms = 100.0
        node.answer(0, None, Fate.DONE, b"", 104.0, None)
        node.status(0, 1, np.zeros(4), 106.0)
        assert [time for time, _ in host.timers] == [103.25, 105.25]
        assert node.counters.get("updates_total", en="en0") == 1.0

    play(scene())


def test_a_status_says_how_long_it_was_held_in_the_node_s_time(monkeypatch):
    async def scene():
        node, host = made("sn", EMULATE, "periodic", scale=2.0)
        seconds = [50.0]
        monkeypatch.setattr(serve_sn, "time", SimpleNamespace(monotonic=lambda: seconds[0]))
        node._states[0].out = out = asyncio.Queue(1)
        for number in (3, 4):
            node.status(0, number, np.array([1.0, 2.0, 3.0, 4.0]), 0.0)
        seconds[0] = 50.5
        for _, send in host.timers:  # there is room for one: the other is given up
            send()
        told = out.get_nowait()
        status = wire.Status(sequence=3, held_us=250_000, numbers=[1.0, 2.0, 3.0, 4.0])
        assert told == wire.FromSn(status=status)
        assert out.empty()
        # The same on a result.
        answer = asyncio.get_running_loop().create_future()
        item = Item(7, 0.0, 90.0, 1.0, 1.0, context=(0, serve_sn._Call(95.0, answer)))
        host.time_ms = 101.5
        node._reply(item, Fate.DONE, b"out", (6, np.array([9.0])), 100.0)
        rider = wire.Status(sequence=6, held_us=1500, numbers=[9.0])
        assert answer.result() == wire.Result(
            id=7, fate=1, held_us=6500, output=b"out", status=rider
        )

    play(scene())


def test_failures_are_told_in_a_line_and_nobody_is_told_twice():
    async def scene():
        node, _ = made("sn")
        answer = asyncio.get_running_loop().create_future()
        item = Item(7, 0.0, 90.0, 1.0, 1.0, context=(0, serve_sn._Call(0.0, answer)))
        for reason in (b"w" * 201, b"again"):
            node._reply(item, Fate.FAILED, reason, None, 0.0)
        assert answer.result() == wire.Result(id=7, fate=6, reason="w" * 200)

    play(scene())


def test_an_en_that_connects_is_told_of_the_work_that_its_books_do_not_know():
    async def scene():
        node, host = made("sn", use="periodic")
        await _submitted(node, host, input=bytes(10), now=0.0)
        host.time_ms = 3.0
        assert node._welcome(4) == wire.Welcome(
            boot=77, version=1, carries=4, slots=4, cycles_per_ms=27_000.0,
            work_cycles=5.0 * 27_000.0,
        )  # fmt: skip

    play(scene())


def test_rules_of_an_sn_are_those_of_its_file():
    async def scene():
        given = {
            "behaviour.most_updates_per_s": 50.0, "behaviour.refresh_ms": 7.0,
            "behaviour.updates_per_task": 3.0, "behaviour.idle_ms": 11.0,
            "behaviour.update_burst": 13.0, "behaviour.late": "finish",
        }  # fmt: skip
        rules = made("sn", given)[0].core.rules
        assert (rules.least_gap_ms, rules.refresh_ms, rules.per_task) == (20.0, 7.0, 3.0)
        assert (rules.idle_ms, rules.burst, rules.drop_late) == (11.0, 13.0, False)

    play(scene())


def test_an_acknowledgement_and_a_round_trip_are_taken_from_an_en_s_stream():
    async def scene():
        node, host = made("sn", use="periodic", scale=2.0)
        node.core.met(0, True)
        host.time_ms = 40.0
        assert node.core._numbered(np.ones(4), 40.0) == 0
        out = asyncio.Queue(2)

        async def requests():
            yield wire.FromEn(ack=wire.Ack(sequence=0))
            yield wire.FromEn(heartbeat=wire.Heartbeat(stamp=123, round_trip_us=3000))
            yield wire.FromEn(heartbeat=wire.Heartbeat(stamp=124, round_trip_us=5000))
            yield None
            yield wire.FromEn(heartbeat=wire.Heartbeat(stamp=125, round_trip_us=9000))

        await node._read(0, requests(), out)
        assert node.core.peers[0].acknowledged_ms == 40.0
        assert node._states[0].transit_ms == 0.5 * 5.0 / 2.0
        # The stream ends, for which a full queue has given up its first message.
        echo = wire.FromSn(heartbeat=wire.Heartbeat(echo=124))
        assert [out.get_nowait() for _ in range(2)] == [echo, None]

    play(scene())


def test_an_sn_is_the_one_of_the_site_that_its_file_says():
    """Of two SNs, the second; en0 and en2 reach it alone, en1 both."""
    _, sns = configs_of(
        load("campus", ["backhaul.reach=[[1], [0, 1], [1]]", "backhaul.down_mbps=48"]),
        load_config("en"),
        load_config("sn"),
    )

    async def scene():
        fields = sns[1].model_dump(include={"number", "site", "peers", "node", "name"})
        node, host = made("sn", fields, "power-of-d:keep=1,interval_ms=10")
        assert (node.core.index, len(node.core.links), len(node.core.peers)) == (1, 3, 3)
        # A message of 6000 bytes takes 1 ms on such a link: not on one of others.
        assert [each.send(6000.0, 0.0) for each in node.core.links] == [1.0 + 2.0 + 0.25] * 3
        sent = []
        node.core._transport = SimpleNamespace(status=lambda en, *_: sent.append(en))
        for en in range(3):
            node.core.met(en, True)
        seen = node.core.observation(0.0)
        assert (seen.sn.tolist(), seen.en.tolist()) == ([1], [[0, 1, 2]])
        host.time_ms = 20.0
        node.core._look()
        assert sent == [0, 2]  # en1 keeps to the other, which has less to do

    play(scene())
