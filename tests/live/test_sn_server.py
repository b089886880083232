"""What an SN behind gRPC makes of messages, with numbers that can be checked on paper.

A link of 96 Mbps takes 12 000 bytes a ms, two hops of 1 ms each, and 1500 bytes are forwarded once.
"""

import asyncio

import pytest

from cosmo import load
from cosmo.live import wire
from cosmo.live.config import load_config
from cosmo.live.scenario_files import configs_of
from live.nodes import play
from live.still_nodes import AbortedError, Context, made, turns

RESULT_MS = 1000 / 24_000 + 2.0 + 1000 / 24_000  # back, over 192 Mbps
EMULATE = {"links.emulate": True}


async def _submitted(node, clock, now=1000.0, **fields):
    """The call of an EN that has handed over a task."""
    clock.time_ms = now
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
        node, clock = made("sn")
        call = await _submitted(node, clock, input=b"abc", kind="k")
        # Until it is done, it is late after 69.5 ms, and done after 8.
        assert sorted(time for time, _ in clock.timers) == [1008.0, 1069.5]
        clock.time_ms = 1008.25
        min(clock.timers, key=lambda timer: timer[0])[1]()
        assert await call == wire.Result(id=7, fate=1, held_us=8250)
        empty = await _submitted(node, clock, id=8)
        assert node.core.station.requests == 1
        empty.cancel()
        await turns()
        assert node.core.station.requests == 0

    play(scene())


def test_a_task_is_taken_only_from_an_en_that_is_known():
    async def scene():
        node, _ = made("sn")
        with pytest.raises(AbortedError, match=r"PERMISSION_DENIED.*no EN of name 'en9' here"):
            await node.execute(wire.Task(), Context("en9"))

    play(scene())


def test_an_en_that_connects_is_told_of_the_work_that_its_books_do_not_know():
    async def scene():
        node, clock = made("sn", use="periodic")
        await _submitted(node, clock, input=bytes(10), now=0.0)
        clock.time_ms = 3.0

        async def requests():
            yield wire.FromEn(hello=wire.Hello(name="en0", version=1, carries=4))

        stream = node.watch(requests(), Context())
        welcome = wire.Welcome(
            boot=77, version=1, carries=4, slots=4, cycles_per_ms=27_000.0,
            work_cycles=5.0 * 27_000.0,
        )  # fmt: skip
        assert await anext(stream) == wire.FromSn(welcome=welcome)
        await stream.aclose()

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
        node, _ = made("sn", fields, "power-of-d:keep=1,interval_ms=10")
        assert (node.core.index, len(node.core.links), len(node.core.peers)) == (1, 3, 3)
        # A message of 6000 bytes takes 1 ms on such a link: not on one of others.
        assert [each.send(6000.0, 0.0) for each in node.core.links] == [1.0 + 2.0 + 0.25] * 3
        seen = node.core.observation(0.0)
        assert (seen.sn.tolist(), seen.en.tolist()) == ([1], [[0, 1, 2]])

    play(scene())


def test_a_task_is_done_once_though_its_en_s_boot_number_changes_and_comes_back():
    async def scene():
        node, clock = made("sn")
        first = [await _submitted(node, clock, boot=boot) for boot in (7, 8)]
        assert node.core.station.requests == 2
        again = [await _submitted(node, clock, boot=boot) for boot in (7, 8)]
        for call in again:
            with pytest.raises(AbortedError, match="ALREADY_EXISTS"):
                await call
        assert node.core.station.requests == 2
        for call in first:
            call.cancel()
        await turns()

    play(scene())
