"""What happens to clients when the network, the clock or other clients misbehave."""

import asyncio
import math
import os
import resource
import select
import socket
import time
from contextlib import AsyncExitStack, ExitStack
from itertools import count

import grpc
import numpy as np
import pytest
from benchmarks.partition import Proxy
from benchmarks.raw_http2 import (
    DATA,
    END_STREAM,
    HEADERS,
    PREFACE,
    RESET,
    Raw,
    frame,
    headers,
    literal,
    message,
    settings,
)
from virtual_nodes import VirtualWorld

from cosmo import load, method
from cosmo.live import admin, connections, wire
from cosmo.live.client import AsyncClient
from cosmo.live.serve_sn import SnServer
from cosmo.live.tasks import Fate
from cosmo.workload import episode
from live.nodes import LIMIT_S, pair, play, started, until

LONG = 18_000.0 * 60_000.0
SLOW = {"deadline_ms": 60_000.0, "cycles": 100.0}
BEGIN = PREFACE + settings()


def test_a_partition_is_noticed_bridged_and_overcome():
    async def scene():
        use = {"method.use": "all-offload"}
        quick = {**use, "behaviour.silent_ms": 300.0, "behaviour.heartbeat_ms": 50.0}
        slow_sn = {**use, "node.cycles_per_ms": 0.001}
        async with (
            started("sn", slow_sn) as there,
            Proxy(there.address) as network,
            started("en", quick, [network.address]) as here,
            AsyncClient(here.address) as client,
        ):
            connection, cache = here.node.connections[0], here.node.core.caches[0]
            await until(lambda: connection.connected, "met")
            call = asyncio.create_task(client.submit(b"x", **SLOW))
            await until(lambda: there.node.core.station.requests == 1, "the SN has it")
            network.cut()
            await until(lambda: cache.silent, "the EN has noticed")
            answer = await call
            assert (answer.fate, answer.where, answer.rerun) == (Fate.DONE, "local", True)
            assert not connection.connected
            assert (await client.submit(b"x", **SLOW)).where == "local"
            network.heal()
            await until(lambda: connection.connected and not cache.silent, "it is back")
            # Work of before the cut that nobody waits for any more has been dropped there.
            await until(lambda: there.node.core.station.requests == 0, "dropped")
            again = asyncio.create_task(client.submit(b"x", **SLOW))
            await until(lambda: there.node.core.station.requests == 1, "used again")
            again.cancel()

    play(scene())


def test_half_sent_oversized_and_torn_messages_cost_nobody_else_anything():
    task = message(wire.Task(cycles=1.0, deadline_us=10**8, input=bytes(1000)).SerializeToString())

    async def status(raw, stream):
        """gRPC's code, or the frame that ended the stream."""
        found = await raw.until_end(stream)
        if not found or found[-1][0] == RESET:
            return "reset"
        return literal(found[-1][1], "grpc-status").decode()

    async def scene():
        small = {"limits.input_bytes": 10_000}
        async with (
            pair(en=small, method="all-local") as (here, _, client),
            AsyncExitStack() as all_,
        ):

            async def raw():
                return await all_.enter_async_context(Raw(here.address))

            half = await raw()  # a part of a message, and then nothing
            await half.send(BEGIN, headers(1, wire.SUBMIT), frame(DATA, 0, 1, task[:500]))
            torn = await raw()  # said to be whole
            ends = frame(DATA, END_STREAM, 1, task[:500])
            await torn.send(BEGIN, headers(1, wire.SUBMIT), ends)
            assert await status(torn, 1) == "3"  # INVALID_ARGUMENT
            huge = await raw()  # five bytes that promise four GB
            await huge.send(
                BEGIN, headers(1, wire.SUBMIT), frame(DATA, 0, 1, b"\0\xff\xff\xff\xff")
            )
            assert await status(huge, 1) == "8"  # RESOURCE_EXHAUSTED
            empty = await raw()
            await empty.send(BEGIN, headers(1, wire.SUBMIT), frame(DATA, END_STREAM, 1))
            assert await status(empty, 1) == "3"
            unknown = await raw()
            await unknown.send(BEGIN, headers(1, "/cosmo.live.v1.En/Nothing"))
            assert await status(unknown, 1) == "12"  # UNIMPLEMENTED
            noise = await raw()
            await noise.send(BEGIN, bytes(range(256)) * 50)
            assert [kind async for kind, *_ in noise.frames() if kind == HEADERS] == []  # hung up
            reset = await raw()  # changes its mind while the task is being done
            long = message(wire.Task(cycles=LONG, deadline_us=10**8).SerializeToString())
            await reset.send(BEGIN, headers(1, wire.SUBMIT), frame(DATA, END_STREAM, 1, long))
            await until(lambda: here.node.in_flight == 1, "the task is there")
            await reset.send(frame(RESET, 0, 1, bytes([0, 0, 0, 8])))
            await until(lambda: here.node.in_flight == 0, "it has been given up")
            assert here.node.core.station.requests == 0
            assert (await client.submit(b"x", **SLOW)).fate == Fate.DONE
            # The rest of the first, after all that.
            await half.send(frame(DATA, END_STREAM, 1, task[500:]))
            assert await status(half, 1) == "0"
            assert here.node.counters.get("tasks_total", fate="DONE") == 2

    play(scene())


def test_two_hundred_slow_clients_do_not_keep_others_from_being_served():
    head = message(wire.Task(cycles=1.0, deadline_us=10**8, input=bytes(900)).SerializeToString())

    async def scene():
        room = {"limits.connections": 1000}  # so many that nobody has to be hung up on
        async with pair(room, method="all-local") as (here, _, client), AsyncExitStack() as all_:
            slow = [await all_.enter_async_context(Raw(here.address)) for _ in range(200)]
            for each in slow:
                await each.send(BEGIN, headers(1, wire.SUBMIT), frame(DATA, 0, 1, head[:-1]))
            for _ in range(20):
                assert (await client.submit(b"x", **SLOW)).fate == Fate.DONE
            assert here.node.in_flight == 0  # what is not whole takes no place
            await slow[0].send(frame(DATA, END_STREAM, 1, head[-1:]))
            found = await slow[0].until_end(1)
            assert literal(found[-1][1], "grpc-status") == b"0"

    play(scene())


def test_rejections_do_not_wait_for_what_is_under_way():
    async def scene():
        few = {"limits.calls": 4}
        async with pair(en=few, method="all-local") as (here, _, client):
            holders = []
            for taken in range(1, 5):  # one after the other: no caller may bring all inputs at once
                sent = client.submit(b"x", deadline_ms=60_000.0, cycles=LONG)
                holders.append(asyncio.create_task(sent))
                await until(lambda taken=taken: here.node.in_flight == taken, "a place is taken")
            for _ in range(40):
                with pytest.raises(grpc.aio.AioRpcError) as error:
                    await client.submit(bytes(20_000), **SLOW)
                assert error.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
            assert not any(holder.done() for holder in holders)
            assert here.node.counters.get("turned_away_total", status="grpc") == 40
            assert len(here.clock._heap) < 20  # and leave nothing behind
            for holder in holders:
                holder.cancel()

    play(scene())


def test_tasks_that_are_accepted_succeed_as_often_under_ten_times_the_load():
    def played(rate):
        scenario = load("paper", ["episode.window_ms=1500", "episode.warmup_ms=0", *rate])
        world = VirtualWorld(scenario, lambda: method("priced-books"), episode(scenario, 0, 0))
        most = []
        world.ens[0].on_choice = lambda seen, item: most.append(world.ens[0].in_flight)
        found = world.play()
        taken = (found.action >= 0) & (found.action <= 1)
        return (found.fate[taken] == Fate.DONE).mean(), taken.sum(), len(taken), max(most)

    usual, _, tasks, _ = played(["workload.rate=220"])
    loaded, taken, all_tasks, most = played(["workload.rate=2200", "access.rate_mbps=1300"])
    assert all_tasks > 9 * tasks
    assert taken < 0.5 * all_tasks
    assert loaded == pytest.approx(usual, abs=0.05)
    assert most <= 64 + 64  # no more than there is room for


def test_wall_clocks_that_jump_change_no_decision(monkeypatch):
    scenario = load("paper", ["episode.window_ms=300", "episode.warmup_ms=0"])

    def played():
        world = VirtualWorld(scenario, lambda: method("self-tracking"), episode(scenario, 0, 0))
        return world.play()

    before, looks, ticks = played(), [], count()
    real = time.time

    def jumping(*_):
        looks.append(real() + 3600.0 * (-1) ** next(ticks))
        return looks[-1]

    monkeypatch.setattr(time, "time", jumping)
    monkeypatch.setattr(time, "time_ns", lambda: int(jumping() * 1e9))
    after = played()
    assert np.array_equal(before.action, after.action)
    assert np.array_equal(before.finished_ms, after.finished_ms, equal_nan=True)
    assert time.time() != time.time()  # it does jump


def test_tasks_go_to_the_other_sn_while_one_is_not_believed():
    async def scene():
        use = {"method.use": "all-offload"}
        async with started("sn", use) as false, started("sn", use) as good:
            welcome = false.node._welcome
            false.node._welcome = lambda carries: _with(welcome(carries), work_cycles=math.inf)
            addresses = [false.address, good.address]
            async with started("en", use, addresses) as here, AsyncClient(here.address) as client:
                one, other = here.node.connections
                await until(lambda: other.connected and _implausible(here), "one is not believed")
                for _ in range(6):
                    told = await client.submit(b"", cycles=1e5, deadline_ms=20_000.0)
                    assert told.where != one.peer.name
                assert good.node.counters.get("tasks_total", fate="DONE") > 0
                assert false.node.counters.get("tasks_total", fate="DONE") == 0
                assert (_implausible(here), one.connected) == (
                    1.0,
                    False,
                )  # it was not called again at once

    play(scene())


def _implausible(here):
    return here.node.counters.get("implausible_messages_total", sn="sn0")


def _with(message, **fields):
    for name, value in fields.items():
        setattr(message, name, value)
    return message


def test_an_sn_that_was_held_up_for_many_heartbeats_is_believed():
    async def scene():
        often = {"behaviour.heartbeat_ms": 1.0, "behaviour.silent_ms": 60_000.0}
        async with (
            started("sn") as there,
            Proxy(there.address) as network,
            started("en", often, [network.address]) as here,
        ):
            one = here.node.connections[0]
            await until(lambda: one.connected and one.round_trip_ms > 0.0, "met")
            network.cut()
            await until(lambda: one._forgotten_us > 0, "more are on their way than remembered")
            missed = one._stamps[-1]
            network.heal()

            def answered():  # all that was on its way then, and nothing may be on its way now
                return not one._stamps or one._stamps[0] > missed

            await until(lambda: answered() or _implausible(here), "the last is answered")
            assert not _implausible(here)
            assert one.connected

    play(scene())


def test_an_sn_that_leaves_after_each_welcome_is_called_ever_more_seldom(monkeypatch):
    """Each welcome costs an EN's method what it knows of all SNs."""
    welcomed_s = []

    async def watch(node, requests, context):
        welcomed_s.append(time.monotonic())
        yield wire.FromSn(welcome=node._welcome(0))

    async def scene():
        monkeypatch.setattr(SnServer, "watch", watch)
        async with started("sn") as there, started("en", None, [there.address]):
            await until(lambda: len(welcomed_s) > 5, "some welcomes")
        assert welcomed_s[5] - welcomed_s[0] > 0.02 + 0.04 + 0.08 + 0.16 + 0.32

    play(scene())


@pytest.mark.parametrize(
    ("fields", "held"),
    [({"limits.calls": 8}, 6), ({"limits.calls_per_s": 1e-3, "limits.burst": 3}, 3)],
)
def test_inputs_that_never_come_lock_nobody_else_out(fields, held):
    """A share of what may be under way belongs to other addresses; each has its own bucket."""

    async def scene():
        some = {"method.use": "all-local", "limits.receive_s": 60.0, **fields}
        async with started("en", some, ["127.0.0.1:1"]) as here, AsyncExitStack() as opened:
            node, (host, _, port) = here.node, here.address.rpartition(":")
            other = {"local_addr": ("127.0.0.2", 0)}
            _, writer = await asyncio.open_connection(host, int(port), **other)
            opened.callback(writer.close)
            torn = b"".join(
                headers(number, wire.SUBMIT) + frame(DATA, 0, number, bytes(3))
                for number in range(1, 41, 2)
            )
            writer.write(BEGIN + torn)
            turned_away = 20 - held
            count = node.counters.get
            await until(
                lambda: count("turned_away_total", status="grpc") == turned_away, "some are not"
            )
            assert node._incoming.total == held
            client = await opened.enter_async_context(AsyncClient(here.address))
            assert (await client.submit(b"x", **SLOW)).fate == Fate.DONE
            writer.transport.abort()
            await until(lambda: node._incoming.total == 0, "all places are free")

    play(scene())


async def _served(client):
    """As soon as there is room: connections that were waiting may take what has become free."""
    while True:
        try:
            return await client.submit(b"", cycles=1.0, deadline_ms=500.0)
        except grpc.aio.AioRpcError as error:
            if error.code() != grpc.StatusCode.UNAVAILABLE:
                raise


def test_connections_of_one_address_do_not_lock_out_another():
    """Two calls of that address stay: those that are idle go first."""

    async def held(address):
        host, _, port = address.rpartition(":")
        return await asyncio.open_connection(host, int(port), local_addr=("127.0.0.2", 0))

    async def scene():
        fields = {"limits.connections": 24, "method.use": "all-local"}
        async with started("en", fields, ["127.0.0.1:1"]) as here, AsyncExitStack() as opened:
            working = []
            for _ in range(2):
                reader, writer = await held(here.address)
                opened.callback(writer.close)
                task = wire.Task(cycles=LONG, deadline_us=10**8).SerializeToString()
                call = headers(1, wire.SUBMIT) + frame(DATA, END_STREAM, 1, message(task))
                writer.write(BEGIN + call)
                working.append(reader)
            await until(lambda: here.node.in_flight == 2, "two calls")
            for _ in range(40):
                _, writer = await held(here.address)
                writer.write(BEGIN)
                opened.callback(writer.close)
            await until(lambda: here.node.counters.get("hung_up_total") >= 10, "some are gone")
            async with AsyncClient(here.address) as client, asyncio.timeout(LIMIT_S):
                told = await _served(client)
                assert told.fate == Fate.EXPIRED  # both slots are taken
            assert here.node.in_flight == 2
            assert not any(reader.at_eof() for reader in working)
            assert "too many connections of one address" in here.log._stream.getvalue()

    play(scene())


def test_callers_are_told_apart_by_what_belongs_to_them():
    assert connections._place("ipv4:10.0.0.1:5") == ("10.0.0.1", 5)
    assert connections._place("ipv6:%5B::1%5D:5") == ("::1", 5)
    assert connections._plain("::ffff:10.0.0.1") == "10.0.0.1"
    zone = "ipv6:%5Bfe80::1%25eth0%5D:5"
    assert connections._place(zone) == ("fe80::1", 5)  # sockets do not tell the zone
    of = connections.owner_of
    assert of("ipv4:10.0.0.1:5") == of("ipv6:%5B::ffff:10.0.0.1%5D:6") == "10.0.0.1"
    assert of("ipv6:%5B2001:db8::1%5D:5") == of("ipv6:%5B2001:db8::ffff%5D:6")
    assert of("ipv6:%5B2001:db8::1%5D:5") != of("ipv6:%5B2001:db8:0:1::1%5D:5")
    assert of("unix:") == "unix:"


def _held(busy, idle, first=0):
    """Connections of one owner: so many with calls, so many without."""
    return [
        connections._Connection(k < busy, -(first + k), ("10.0.0.1", k)) for k in range(busy + idle)
    ]


@pytest.mark.parametrize(
    ("held", "left"),
    [
        ({"a": (0, 17)}, {"a": 17}),  # fewer than three quarters of 24
        ({"a": (0, 18)}, {"a": 6}),  # a quarter
        ({"a": (8, 10)}, {"a": 6}),  # of these with calls
        ({"a": (0, 17), "b": (0, 1)}, {"a": 6, "b": 1}),
        # Four who keep to their share: all are left with the same, fewer than 18 together.
        ({"a": (0, 6), "b": (0, 6), "c": (0, 6), "d": (0, 6)}, dict.fromkeys("abcd", 4)),
        # Nobody who keeps to the share loses a connection with a call.
        ({"a": (0, 6), "b": (6, 0), "c": (6, 0), "d": (0, 6)}, {"a": 2, "b": 6, "c": 6, "d": 2}),
        ({str(k): (0, 1) for k in range(24)}, {str(k): 1 for k in range(24)}),
    ],
)
def test_how_many_connections_everybody_is_left(held, left):
    found = {owner: _held(*counts) for owner, counts in held.items()}
    gone = list(connections._beyond_share(found, 24))
    assert {owner: sum(counts) - sum(who == owner for who, _ in gone)
            for owner, counts in held.items()} == left  # fmt: skip
    for owner, (busy, _) in held.items():
        went = [each.busy for who, each in gone if who == owner]
        assert sum(went) == max(busy - left[owner], 0)  # idle ones first


def test_looking_for_connections_leaves_nothing_open(tmp_path):
    """Files, pipes, a socket that listens, one of datagrams and a connection are looked at."""
    with ExitStack() as opened:
        opened.enter_context((tmp_path / "file").open("w"))
        for end in os.pipe():
            opened.callback(os.close, end)
        listening = opened.enter_context(socket.create_server(("127.0.0.1", 0)))
        port = listening.getsockname()[1]
        datagrams = opened.enter_context(socket.socket(type=socket.SOCK_DGRAM))
        datagrams.bind(("127.0.0.1", port))
        datagrams.connect(("127.0.0.1", port))
        client = opened.enter_context(socket.create_connection(("127.0.0.1", port)))
        accepted = opened.enter_context(listening.accept()[0])
        before = sorted(os.listdir("/proc/self/fd"))
        found = connections.Connections(1)
        assert found.thin_out(port) == []  # one is a share
        second = opened.enter_context(socket.create_connection(("127.0.0.1", port)))
        other = opened.enter_context(listening.accept()[0])
        assert found.thin_out(port) == ["127.0.0.1"]
        ends = [each.recv(1, socket.MSG_DONTWAIT) for each in (client, second) if _readable(each)]
        assert ends == [b""]  # one of the two is over
        datagrams.send(b"x")  # and nothing else
        assert datagrams.recv(1) == b"x"
        other.close()
        second.close()
        assert sorted(os.listdir("/proc/self/fd")) == before
        assert accepted.fileno() >= 0


def _readable(connection):
    return bool(select.select([connection], [], [], 0.0)[0])


def test_a_process_that_may_open_little_shares_what_it_may(monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda which: (64, 64))
    assert connections.Connections(1000)._most == 32
    monkeypatch.setattr(resource, "getrlimit", lambda which: (resource.RLIM_INFINITY, 0))
    assert connections.Connections(1000)._most == 1000


def test_who_asks_the_admin_port_and_does_not_read_loses_its_place(monkeypatch):
    async def scene():
        monkeypatch.setattr(admin, "_LONGEST_S", 1.0)
        async with started("sn", {"admin": "127.0.0.1:0"}) as there:
            there.admin.text = lambda wanted: "x" * 50_000_000  # more than a socket holds
            reader, writer = await asyncio.open_connection("127.0.0.1", there.admin.port, limit=1)
            writer.write(b"GET /metrics HTTP/1.1\r\n\r\n")
            await reader.readexactly(1)
            await until(lambda: there.admin._open == 0, "its place is free")
            writer.transport.abort()

    play(scene())


def test_the_rest_of_a_short_answer_is_not_kept_for_who_does_not_read_it(monkeypatch):
    """One that is a little longer than what the kernel holds: it would keep its connection open."""

    async def scene():
        monkeypatch.setattr(admin, "_LONGEST_S", 1.0)
        async with started("sn", {"admin": "127.0.0.1:0"}) as there:
            there.admin.text = lambda wanted: "x" * 60_000
            [listening] = there.admin._server.sockets
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)  # of all it accepts
            loop = asyncio.get_running_loop()
            with socket.socket() as asking:
                asking.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                asking.setblocking(False)
                await loop.sock_connect(asking, ("127.0.0.1", there.admin.port))
                await loop.sock_sendall(asking, b"GET /metrics HTTP/1.1\r\n\r\n")
                assert len(await loop.sock_recv(asking, 1)) == 1
                await until(lambda: there.admin._open == 0, "its place is free")
                received = 1
                while part := await loop.sock_recv(asking, 1000):
                    received += len(part)
                assert received < 60_000

    play(scene())


def test_the_admin_port_answers_a_few_at_a_time():
    async def scene():
        async with started("sn", {"admin": "127.0.0.1:0"}) as there, AsyncExitStack() as opened:
            address = "127.0.0.1", there.admin.port
            for _ in range(40):
                _, writer = await asyncio.open_connection(*address)
                opened.callback(writer.close)
            reader, writer = await asyncio.open_connection(*address)
            opened.callback(writer.close)
            assert await reader.read() == b""  # hung up on
            await opened.aclose()
            await until(lambda: there.admin._open == 0, "the others have gone")
            reader, writer = await asyncio.open_connection(*address)
            writer.write(b"GET /healthz HTTP/1.1\r\n\r\n")
            assert b"serving" in await reader.read()
            writer.close()

    play(scene())
