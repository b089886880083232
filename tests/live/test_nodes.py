"""EN and SN over gRPC on loopback: what clients get, whatever happens."""

import asyncio
import math
import re
from pathlib import Path

import grpc
import grpc_tools
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_tools import protoc

from cosmo.live import Client, wire
from cosmo.live.client import AsyncClient
from cosmo.live.realtime import RealClock
from cosmo.live.sn_connection import SnConnection
from cosmo.live.tasks import Fate
from live.nodes import pair, play, started, until

LONG = 18000.0 * 60_000.0  # cycles that hold a slot of an EN for a minute
ONE = {"node.slots": 1}  # a process to start, not four
SLOW = {"deadline_ms": 60_000.0, "cycles": 100.0}


def test_no_node_looks_at_the_wall_clock():
    """A jump of it changes no decision: only log lines and decision logs are dated by it."""
    wall = re.compile(r"\btime\.(time|time_ns|gmtime|localtime)\(|\bdatetime\b|time_remaining\(")
    texts = {path.name: path.read_text() for path in Path(wire.__file__).parent.glob("*.py")}
    assert len(texts) > 20
    dated = sorted(name for name, text in texts.items() if wall.search(text))
    assert dated == ["decisions.py", "logs.py"]


@pytest.mark.parametrize(
    ("folder", "kept"), [(".", "cosmo_live.binpb"), ("protos", "protos.binpb")]
)
def test_the_messages_are_what_protoc_makes_of_the_files(tmp_path, folder, kept):
    live, out = Path(wire.__file__).parent, tmp_path / "out"
    root = live / folder
    files = [wire.FILE] if folder == "." else [str(each) for each in sorted(root.rglob("*.proto"))]
    google = Path(grpc_tools.__file__).parent / "_proto"
    options = ["--include_imports", f"--descriptor_set_out={out}"]
    assert protoc.main(["protoc", f"-I{root}", f"-I{google}", *options, *files]) == 0
    made, shipped = (
        {each.name: each for each in descriptor_pb2.FileDescriptorSet.FromString(data).file}
        for data in (out.read_bytes(), (live / kept).read_bytes())
    )
    assert made == shipped, "make proto"


def test_applications_may_have_these_messages_from_elsewhere():
    """The usual pool stays free of Envoy's names: an application may import its whole packages."""
    for name in (
        ("OrcaLoadReport", "xds.data.orca.v3"),
        ("ProcessingRequest", "envoy.service.ext_proc.v3"),
    ):
        wire.message_class(*name)
        with pytest.raises(KeyError):
            descriptor_pool.Default().FindMessageTypeByName(f"{name[1]}.{name[0]}")


def test_tasks_are_done_where_the_method_says():
    async def scene():
        for method, where, handler in (
            ("all-local", "local", {}),
            ("all-offload", "sn0", {}),
            ("all-offload", "sn0", {"handler.kind": "command", "handler.target": "wc -c"}),
            (
                "all-offload",
                "sn0",
                {"handler.kind": "python", "handler.target": "live.work:upper", **ONE},
            ),
        ):
            async with pair(sn=handler, method=method) as (here, _, client):
                answer = await client.submit(b"abc" * 100, kind="text", **SLOW)
                assert (answer.fate, answer.where, answer.in_time) == (Fate.DONE, where, True)
                if handler:
                    assert answer.output.strip() in (b"300", b"ABC" * 100)
                again = await asyncio.to_thread(_by_thread, here.address)
                assert again.fate == Fate.DONE
                assert here.node.counters.get("tasks_total", fate="DONE") == 2
                assert here.node.counters.get("decisions_total", action=where) == 2

    play(scene())


def _by_thread(address):
    with Client(address) as client:
        return client.submit(b"abc", **SLOW)


def test_a_handler_that_fails_says_why_and_does_not_take_the_node_along():
    async def scene():
        handler = {"handler.kind": "python", "handler.target": "live.work:picky", **ONE}
        async with pair(sn=handler, method="all-offload") as (_, _, client):
            answer = await client.submit(b"bad", **SLOW)
            assert (answer.fate, answer.reason) == (Fate.FAILED, "ValueError: not that")
            answer = await client.submit(b"die", **SLOW)
            assert (answer.fate, answer.reason) == (Fate.FAILED, "the worker process has died")
            assert (await client.submit(b"good", **SLOW)).output == b"good"

    play(scene())


def test_a_budget_that_is_gone_is_answered_at_once():
    async def scene():
        async with pair(method="all-local") as (here, _, client):
            gone = await client.submit(b"x", deadline_ms=10.0, elapsed_ms=10.0, cycles=LONG)
            assert gone.fate == Fate.EXPIRED
            assert here.node.core.station.requests == 0
            # Both slots are taken for a minute; the third task is not kept waiting for them.
            holders = [
                asyncio.create_task(client.submit(b"x", deadline_ms=120_000.0, cycles=LONG))
                for _ in range(2)
            ]
            await until(lambda: here.node.core.station.requests == 2, "slots are taken")
            waiting = await client.submit(b"x", deadline_ms=150.0, cycles=100.0)
            assert waiting.fate == Fate.EXPIRED
            assert here.node.core.station.requests == 2
            # Those who hang up give their slots back.
            for holder in holders:
                holder.cancel()
            await until(lambda: here.node.core.station.requests == 0, "slots are free")

    play(scene())


def test_cancelling_reaches_the_sn_and_its_handler():
    async def scene():
        handler = {"handler.kind": "python", "handler.target": "live.work:sleep", **ONE}
        async with pair(sn=handler, method="all-offload") as (_, there, client):
            station = there.node.core.station
            call = asyncio.create_task(client.submit(b"x", **SLOW))
            await until(lambda: station.requests == 1, "the SN is at work")
            [busy] = [each for each in there.node.worker._all if each.told is not None]
            call.cancel()
            await until(lambda: station.requests == 0, "the SN has dropped it")
            await until(lambda: not busy.process.is_alive(), "the handler has ended")
            late = await client.submit(b"x", deadline_ms=200.0, cycles=100.0)
            assert late.fate == Fate.EXPIRED
            await until(lambda: station.requests == 0, "the SN has dropped that, too")

    play(scene())


def test_an_offload_is_done_at_most_once():
    async def scene():
        async with pair(method="all-offload") as (here, there, _):
            peer = here.node.connections[0]
            task = wire.Task(id=7, cycles=1.0, deadline_us=10**7, boot=99)
            assert (await peer.execute(task, 10.0)).fate == Fate.DONE
            with pytest.raises(grpc.aio.AioRpcError) as error:
                await peer.execute(task, 10.0)
            assert error.value.code() == grpc.StatusCode.ALREADY_EXISTS
            task.boot = 100  # another life of the EN has numbers of its own
            assert (await peer.execute(task, 10.0)).fate == Fate.DONE
            assert there.node.counters.get("tasks_total", fate="DONE") == 2

    play(scene())


def test_garbage_is_refused_by_name_and_nothing_is_lost():
    async def scene():
        small = {"limits.input_bytes": 10_000}
        async with pair(en=small, method="all-local") as (here, _, client):
            raw = grpc.aio.insecure_channel(here.address)
            bytes_in = raw.unary_unary(wire.SUBMIT)
            submit = raw.unary_unary(wire.SUBMIT, wire.Task.SerializeToString)
            refused = grpc.StatusCode.INVALID_ARGUMENT
            for call, content, code in (
                (bytes_in, b"\xff" * 50, refused),
                (bytes_in, bytes(50_000), grpc.StatusCode.RESOURCE_EXHAUSTED),
                (submit, wire.Task(cycles=math.nan, deadline_us=5), refused),
                (submit, wire.Task(cycles=-1.0, deadline_us=5), refused),
                (submit, wire.Task(cycles=1.0), refused),
                (submit, wire.Task(cycles=1.0, deadline_us=5, elapsed_us=2**63), refused),
                (submit, wire.Task(deadline_us=5, kind="x" * 101), refused),
                (submit, wire.Task(deadline_us=5, kind="a\0b"), refused),
                (submit, wire.Task(deadline_us=5, input=bytes(10_001)), refused),
            ):
                with pytest.raises(grpc.aio.AioRpcError) as error:
                    await call(content)
                assert error.value.code() == code
            _, writer = await asyncio.open_connection(*here.address.split(":"))
            writer.write(b"GET / HTTP/1.1\r\n\r\n" * 20)
            await writer.drain()
            writer.close()  # half of something, and gone
            assert (await client.submit(b"x", **SLOW)).fate == Fate.DONE
            await raw.close()

    play(scene())


def test_a_client_that_calls_too_often_or_too_much_at_once_is_turned_away():
    async def scene():
        few = {"limits.calls_per_s": 1e-3, "limits.burst": 3, "limits.calls": 1}
        async with pair(en=few, method="all-local") as (here, _, client):
            holder = asyncio.create_task(client.submit(b"x", deadline_ms=60_000.0, cycles=LONG))
            await until(lambda: here.node.in_flight == 1, "a call is open")
            with pytest.raises(grpc.aio.AioRpcError) as error:  # one at a time
                await client.submit(b"x", **SLOW)
            assert error.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
            holder.cancel()
            await until(lambda: here.node.in_flight == 0, "it is not")
            codes = []
            for _ in range(3):
                try:
                    codes.append((await client.submit(b"x", **SLOW)).fate)
                except grpc.aio.AioRpcError as error:
                    codes.append(error.code())
            exhausted = grpc.StatusCode.RESOURCE_EXHAUSTED
            assert codes == [Fate.DONE, Fate.DONE, exhausted]

    play(scene())


def test_ten_times_too_much_is_turned_away_and_all_is_answered():
    async def scene():
        few = {"limits.calls": 8, "node.queue_capacity": 4}
        async with pair(en=few, method="all-local") as (here, _, client):
            core, most = here.node.core, 0
            silent = [await asyncio.open_connection(*here.address.split(":")) for _ in range(20)]

            async def submit():
                nonlocal most
                try:
                    task = {"deadline_ms": 60_000.0, "cycles": 18_000.0 * 5.0}
                    return (await client.submit(bytes(20_000), **task)).fate
                except grpc.aio.AioRpcError as error:
                    return error.code()
                finally:
                    most = max(most, here.node.in_flight, core.station.requests)

            ends = await asyncio.gather(*(submit() for _ in range(300)))
            exhausted = grpc.StatusCode.RESOURCE_EXHAUSTED
            assert set(ends) <= {Fate.DONE, Fate.REFUSED, exhausted}
            assert ends.count(Fate.DONE) >= 4
            assert most <= 8
            assert here.node.in_flight == core.in_flight == 0
            turned_away = here.node.counters.get("turned_away_total", status="grpc")
            assert turned_away == ends.count(exhausted)
            for _, writer in silent:
                writer.close()

    play(scene())


def test_an_sn_that_vanishes_costs_a_rerun_and_one_that_comes_back_is_used_again():
    async def scene():
        use = {"method.use": "all-offload"}
        slow_sn = {**use, "node.cycles_per_ms": 0.001}
        async with started("sn", slow_sn) as first:
            here = started("en", use, [first.address])
            async with here as en, AsyncClient(en.address) as client:
                connection, core = en.node.connections[0], en.node.core
                await until(lambda: connection.connected, "met")
                call = asyncio.create_task(client.submit(b"x", **SLOW))
                await until(lambda: first.node.core.station.requests == 1, "the SN has it")
                before = connection._boot
                await first.stop(None)
                answer = await call
                assert (answer.fate, answer.where, answer.rerun) == (Fate.DONE, "local", True)
                await until(lambda: core.caches[0].silent, "the EN knows")
                answer = await client.submit(b"x", **SLOW)  # not offloaded, whatever is said
                assert (answer.fate, answer.where, answer.rerun) == (Fate.DONE, "local", True)
                back = {**use, "listen": first.address}
                async with started("sn", back):
                    await until(lambda: not core.caches[0].silent, "the EN has heard of it")
                    assert connection._boot not in (0, before)
                    answer = await client.submit(b"x", **SLOW)
                    assert (answer.where, answer.rerun) == ("sn0", False)

    play(scene())


def test_what_a_node_logs_of_itself_are_numbers():
    async def scene():
        async with pair() as (here, there, client):
            await client.submit(b"1", **SLOW)
            told, sn = here.facts(), there.facts()
            assert (told["faults"], sn["updates_suppressed"]) == (0, 0)
            assert 0.0 <= told["decision_p99_ms"] < 60_000.0
            assert all(math.isfinite(value) for value in (*told.values(), *sn.values()))

    play(scene())


def test_statuses_arrive_are_dated_by_durations_and_an_idle_system_is_quiet():
    async def scene():
        method = "periodic:interval_ms=5"
        async with pair(method=method) as (here, there, _):
            core = here.node.core
            await until(lambda: core.caches[0].sequence >= 0, "there is a status")
            cache = core.caches[0]
            assert cache.numbers.tolist() == [4.0, 0.0, 0.0, 480000.0]
            assert 0.0 <= here.clock.now() - cache.source_ms < 60_000.0
            await until(lambda: there.node.core.suppressed > 20, "it has little to say")
            peer = there.node.core.peers[0]
            await until(lambda: not math.isnan(peer.acknowledged_ms), "the SN knows that")
            assert there.node.core.updates < there.node.core.suppressed

    play(scene())


RIDING = """
import numpy as np
from cosmo import Dispatcher, Method, Updater

class Riding(Method):
    "Statuses on results, and nowhere else."
    carries = 4
    def dispatcher(self, site):
        return Offload()
    def updater(self, site):
        return Ride()

class Offload(Dispatcher):
    def decide(self, tasks):
        return np.ones(len(tasks), int)

class Ride(Updater):
    def decide(self, seen):
        return np.zeros(len(seen), bool), np.full(len(seen), np.inf)
    def ride(self, results):
        return np.ones(len(results), bool)
"""


def test_a_status_rides_on_a_result(tmp_path):
    (tmp_path / "riding.py").write_text(RIDING)

    async def scene():
        async with pair(method=f"{tmp_path / 'riding.py'}:Riding") as (here, there, client):
            assert (await client.submit(b"x", **SLOW)).where == "sn0"
            cache = here.node.core.caches[0]
            assert cache.sequence == 0
            assert cache.numbers.tolist() == [4.0, 0.0, 0.0, 480000.0]
            peer = there.node.core.peers[0]
            await until(lambda: peer.sequence == 0, "it is acknowledged")
            assert there.node.core.updates == 1

    play(scene())


def test_health_metrics_and_the_shadow_tell_what_goes_on():
    async def scene():
        watched = {"admin": "127.0.0.1:0", "method.shadow": "all-local"}
        async with pair(en=watched, method="all-offload") as (here, _, client):
            for _ in range(3):
                await client.submit(b"x", **SLOW)
            counters = here.node.counters
            await until(lambda: counters.get("shadow_total", agrees="false") == 3, "compared")
            assert counters.get("shadow_differs_total", decided="offload", would="local") == 3
            text = await _get(here.admin.port, "/metrics")
            assert text.startswith("HTTP/1.1 200")
            assert 'cosmo_tasks_total{fate="DONE",node="en0"} 3.0' in text
            assert 'cosmo_sn_silent{node="en0",sn="sn0"} 0.0' in text
            assert "<h1>en0</h1>" in await _get(here.admin.port, "/")
            assert "404" in await _get(here.admin.port, "/secret")
            channel = grpc.aio.insecure_channel(here.address)
            check = health_pb2_grpc.HealthStub(channel).Check
            serving = health_pb2.HealthCheckResponse.SERVING
            assert (await check(health_pb2.HealthCheckRequest())).status == serving
            await here.drain()
            assert (await check(health_pb2.HealthCheckRequest())).status != serving
            assert "draining" in await _get(here.admin.port, "/healthz")
            with pytest.raises(grpc.aio.AioRpcError) as error:
                await client.submit(b"x", **SLOW)
            assert error.value.code() == grpc.StatusCode.UNAVAILABLE
            await channel.close()

    play(scene())


async def _get(port, path, host="localhost"):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    text = (await reader.read()).decode()
    writer.close()
    return text


def test_a_timer_that_fails_is_not_the_last_and_what_is_overdue_comes_at_once():
    async def scene():
        loop = asyncio.get_running_loop()
        failures, rung, done = [], [], asyncio.Event()
        loop.set_exception_handler(lambda loop, told: failures.append(told["exception"]))
        clock = RealClock(loop)
        clock.at(-5.0, 0, lambda: 1 / 0)
        clock.at(-4.0, 0, lambda: rung.append("overdue"))
        clock.at(clock.now() + 1.0, 0, lambda: rung.append("later"))
        clock.at(clock.now() + 2.0, 0, done.set)
        await done.wait()
        clock.close()
        assert rung == ["overdue", "later"]
        assert [type(each) for each in failures] == [ZeroDivisionError]
        assert clock.lateness_ms.most >= 5.0

    play(scene())


@pytest.mark.parametrize(
    ("host", "answered"),
    [
        ("127.0.0.1:9100", True),
        ("[::1]:9100", True),
        ("localhost", True),
        ("EN0:9100", True),
        ("scraped.example.:9100", True),
        ("attacker.example", False),
        ("127.0.0.1.attacker.example:9100", False),
        ("", False),
    ],
)
def test_the_admin_port_answers_only_to_names_of_the_node(host, answered):
    async def scene():
        fields = {"admin": "127.0.0.1:0", "admin_hosts": ["scraped.example"]}
        async with started("en", fields, ["127.0.0.1:1"]) as here:
            text = await _get(here.admin.port, "/metrics", host)
            assert ("cosmo_uptime_seconds" in text) == answered
            assert ("421 Misdirected Request" in text) == (not answered)

    play(scene())


def test_a_node_closes_even_if_a_call_swallows_the_cancellation(monkeypatch):
    begun = asyncio.Event()

    async def swallows(connection):
        begun.set()
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            return "CANCELLED: as gRPC may say it"

    monkeypatch.setattr(SnConnection, "_stream", swallows)

    async def scene():
        async with started("en", {}, ["127.0.0.1:1"]):
            await begun.wait()

    play(scene())  # within its limit
