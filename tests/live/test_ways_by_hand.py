"""Ways between clients, ENs and SNs: what they are made of, how long they take, who is lost."""

import asyncio
import itertools
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import grpc
import pytest

from cosmo.live import client, peers, serving, watching, wire
from cosmo.live.bed.grounds import Ground
from cosmo.live.handlers import Commands
from cosmo.live.items import Fate, Item
from cosmo.live.logs import Log
from live.by_hand import AbortedError, Context, StillHost, made, turns
from live.nodes import config, play

# A client's requests.


def test_a_client_says_what_has_gone_of_the_deadline_when_the_task_is_there():
    requests = client._Requests(ue=3, scale=2.0)
    requests.one_way_ms = 5.0  # 2.5 of the nodes' ms
    told, timeout_s = requests.task(b"in", 10.0, 80.0, 20.0, "k", 1.5)
    assert told == wire.Task(
        id=0, kind="k", cycles=10.0, deadline_us=80_000, elapsed_us=22_500, input=b"in", ue=3,
        residual_us=1500,
    )  # fmt: skip
    assert timeout_s == 60.0 * 2.0 / 1000.0 + 1.0
    told, timeout_s = requests.task(b"", 10.0, 0.0, -9.0, "", 0.0)
    assert (told.id, told.deadline_us, told.elapsed_us) == (1, 1, 0)
    assert timeout_s == pytest.approx(1.018)
    assert requests.task(b"", 10.0, 5.0, 6.0, "", 0.0)[1] == 1.0


def test_a_client_learns_how_long_the_way_is(monkeypatch):
    seconds = iter([100.030, 100.050, 100.001])
    monkeypatch.setattr(client, "time", SimpleNamespace(monotonic=lambda: next(seconds)))
    requests = client._Requests(ue=0, scale=2.0)
    outcome = wire.Outcome(
        fate=2, where="sn0", output=b"out", held_us=10_000, reason="r", rerun=True
    )
    answer = requests.answer(outcome, 100.0, 7.0)
    # 30 ms, of which the EN had it for 10 ms at half the speed: 5 ms each way.
    assert requests.one_way_ms == pytest.approx(5.0)
    assert answer.delay_ms == pytest.approx(7.0 + 15.0)
    assert (answer.fate, answer.where, answer.output) == (Fate.LATE, "sn0", b"out")
    assert (answer.held_ms, answer.reason, answer.rerun, answer.in_time) == (10.0, "r", True, False)
    requests.answer(outcome, 100.0, 7.0)
    assert requests.one_way_ms == pytest.approx(5.0 + 0.1 * (15.0 - 5.0))
    requests.answer(outcome, 100.0, 7.0)  # sooner than the EN says: no way at all
    assert requests.one_way_ms == pytest.approx(0.9 * 6.0)


def test_what_a_client_does_not_say_is_nothing():
    given = []

    def submit(task, timeout):
        given.append((task, timeout))
        return wire.Outcome(fate=1)

    async def submitted(task, timeout):
        return submit(task, timeout)

    with client.Client("127.0.0.1:1") as plain:
        assert plain.one_way_ms == 0.0
        plain._submit = submit
        plain.submit(b"x", deadline_ms=50.0)

    async def scene():
        async with client.AsyncClient("127.0.0.1:1") as other:
            other._submit = submitted
            await other.submit(b"x", deadline_ms=50.0)

    play(scene())
    assert given == [(wire.Task(deadline_us=50_000, input=b"x"), pytest.approx(1.05))] * 2


# Channels.


def test_what_channels_and_servers_must_not_do_is_off():
    ours, server = dict(peers.CHANNEL_OPTIONS), dict(peers.SERVER_OPTIONS)
    for name in ("enable_retries", "enable_http_proxy", "http2.max_pings_without_data"):
        assert ours[f"grpc.{name}"] == 0
    for name in ("keepalive_permit_without_calls", "use_local_subchannel_pool"):
        assert ours[f"grpc.{name}"] == 1
    assert server["grpc.so_reuseport"] == server["grpc.http2.max_ping_strikes"] == 0
    for options in (ours, server):
        assert options["grpc.default_compression_algorithm"] == 0
    # Pings of a channel that asks as often as it may are no offence to a server.
    often = ours["grpc.keepalive_time_ms"], 100
    assert server["grpc.http2.min_recv_ping_interval_without_data_ms"] <= max(often)


def test_a_channel_is_as_patient_as_the_node_and_carries_what_it_may(monkeypatch):
    given = []
    monkeypatch.setattr(grpc.aio, "insecure_channel", lambda *told: given.append(told))
    for silent_ms, patience_ms in ((700.0, 700), (20.0, 100)):
        told = config("en", {"behaviour.silent_ms": silent_ms, "limits.input_bytes": 10}, ["a:1"])
        peers.channel_of(told, "a:1", "sn0")
        address, options = given.pop()
        last = dict(options)
        assert address == "a:1"
        assert last["grpc.keepalive_time_ms"] == last["grpc.keepalive_timeout_ms"] == patience_ms
        sizes = [last[f"grpc.max_{way}_message_length"] for way in ("receive", "send")]
        assert sizes == [10 + 4096] * 2
    own = dict(client._options(None))
    assert own["grpc.max_receive_message_length"] == 64_000_000
    assert own["grpc.min_reconnect_backoff_ms"] == 10_000
    certificates = client.Certificates(Path(), Path(), Path(), "en7")
    assert dict(client._options(certificates))["grpc.ssl_target_name_override"] == "en7"


def test_who_calls_is_a_certificate_s_name_or_an_address():
    def context(*names):
        held = {"x509_subject_alternative_name": [name.encode() for name in names]}
        return SimpleNamespace(auth_context=lambda: held, peer=lambda: "ipv4:10.0.0.1:5")

    signed = SimpleNamespace(certificate="c")
    assert peers.client_of(context("b", "a"), signed) == "a"
    assert peers.client_of(context(), signed) == "ipv4:10.0.0.1"
    assert peers.client_of(context("b"), SimpleNamespace(certificate="")) == "ipv4:10.0.0.1"


@pytest.mark.parametrize(
    ("certificate", "allowed", "names", "refused"),
    [
        ("", ["a"], [], False),
        ("c", [], ["b"], False),
        ("c", ["a", "b"], ["b"], False),
        ("c", ["a"], ["b"], True),
        ("c", ["a"], [], True),
    ],
)
def test_who_may_call(certificate, allowed, names, refused):
    held = {"x509_subject_alternative_name": [name.encode() for name in names]}
    context, tls = Context(), SimpleNamespace(certificate=certificate, allowed=allowed)
    context.auth_context = lambda: held
    why = "PERMISSION_DENIED.*this certificate may not call here"
    with pytest.raises(AbortedError, match=why) if refused else nullcontext():
        asyncio.run(peers.check_caller(context, tls))


@pytest.mark.parametrize(("calls", "streams"), [(1, 1000), (250, 1000), (251, 1004)])
def test_a_server_has_room_for_calls_that_it_turns_away(calls, streams, monkeypatch):
    given = []

    class Server:
        def add_generic_rpc_handlers(self, handlers):
            pass

        add_registered_method_handlers = add_generic_rpc_handlers

    monkeypatch.setattr(grpc.aio, "server", lambda options: given.append(dict(options)) or Server())
    monkeypatch.setattr(
        serving.health_pb2_grpc, "add_HealthServicer_to_server", lambda *given: None
    )

    async def scene():
        node, _ = made("sn")
        limits = {"limits.calls": calls, "limits.idle_s": 3.0, "limits.connections": 8}
        half = SimpleNamespace(config=config("sn", limits), node=node, _checks=None)
        serving.Serving._made_server(half)

    play(scene())
    [options] = given
    assert options["grpc.max_concurrent_streams"] == streams
    assert options["grpc.max_connection_idle_ms"] == 3000
    assert options["grpc.max_allowed_incoming_connections"] == 8


# An EN's view of an SN.


def test_a_round_trip_is_smoothed_and_statuses_are_dated_by_it(monkeypatch):
    now_ns = [10**9]
    monkeypatch.setattr(watching, "time", SimpleNamespace(monotonic_ns=lambda: now_ns[0]))

    async def scene():
        node, host = made("en", use="periodic", scale=2.0)
        host.time_ms, one = 100.0, node.watching[0]

        def beat(took_us):
            echo = now_ns[0] // 1000 - took_us
            one._take(wire.FromSn(heartbeat=wire.Heartbeat(echo=echo)))
            return one.round_trip_ms

        assert [beat(4000), beat(8000)] == pytest.approx([4.0, 4.4])
        assert one.transit_ms == pytest.approx(0.5 * 4.4 / 2.0)
        status = wire.Status(sequence=0, held_us=3000, numbers=[1.0, 2.0, 3.0, 4.0])
        one._take(wire.FromSn(status=status))
        cache = node.core.caches[0]
        assert cache.source_ms == pytest.approx(100.0 - 3.0 - 1.1)
        assert cache.numbers.tolist() == [1.0, 2.0, 3.0, 4.0]
        one.take_status(wire.Status(sequence=1, numbers=[1.0]))  # of another length
        assert (cache.sequence, node.counters.get("statuses_total", sn="sn0")) == (0, 1.0)
        await node.close()

    play(scene())


def test_a_welcome_is_the_start_of_new_books_and_odd_ones_are_said():
    async def scene():
        node, _ = made("en")
        one, log = node.watching[0], node.log._stream
        one.send("nobody is there")
        assert one._out.empty()
        right = {"boot": 5, "slots": 4, "cycles_per_ms": 27_000.0, "work_cycles": 108_000.0 * 2.0}
        for wrong, odd in (({}, 0), ({"slots": 5}, 1), ({"cycles_per_ms": 1.0}, 2)):
            one._take(wire.FromSn(welcome=wire.Welcome(**right | wrong)))
            assert log.getvalue().count("is not what the configuration says") == odd
        assert log.getvalue().count('"again": true') == 2
        assert one.connected
        assert not node.core.caches[0].silent
        assert node.core.caches[0].unbooked_ms == 2.0
        for _ in range(300):  # more than anybody reads
            one.send(wire.FromEn())
        assert one._out.qsize() == 256
        await node.close()

    play(scene())


def test_silence_is_counted_in_heartbeats(monkeypatch):
    monkeypatch.setattr(watching, "time", SimpleNamespace(monotonic_ns=lambda: 123_456_789))

    async def scene():
        quick = {"behaviour.heartbeat_ms": 1.0, "behaviour.silent_ms": 3.0}
        node, _ = made("en", quick)
        one, ended = node.watching[0], []
        one.round_trip_ms = 4.4
        await one._tick(SimpleNamespace(cancel=lambda: ended.append(one._out.qsize())))
        assert ended == [3]
        assert one._silent
        beat = wire.Heartbeat(stamp=123_456, round_trip_us=4400)
        assert one._out.get_nowait() == wire.FromEn(heartbeat=beat)
        await node.close()

    play(scene())


def test_an_sn_that_is_lost_is_tried_again_after_pauses_that_double(monkeypatch):
    async def scene():
        node, _ = made("en")
        one, pauses, lost, tries = node.watching[0], [], [], itertools.count()

        async def stream():
            number = next(tries)
            one.connected = number == 6  # for once it was there
            if number == 1:
                raise ZeroDivisionError("oh")
            if number == 8:
                raise asyncio.CancelledError
            return "why"

        async def sleep(seconds):
            pauses.append(seconds)

        monkeypatch.setattr(one, "_stream", stream)
        monkeypatch.setattr(one, "_lost", lost.append)
        monkeypatch.setattr(one, "_hang_up", lambda grace_s: None)
        dialled = iter([True, True, False, *[True] * 9])
        monkeypatch.setattr(one, "_dialled", lambda: next(dialled))
        with monkeypatch.context() as patched:
            patched.setattr(asyncio, "sleep", sleep)
            with pytest.raises(asyncio.CancelledError):
                await one._keep()
        # After the third it cannot dial at once.
        assert pauses == [0.02, 0.04, 0.08, 0.2, 0.16, 0.2, 0.2, 0.02, 0.04]
        assert lost == ["why", "ZeroDivisionError: oh", *["why"] * 6]
        await node.close()

    play(scene())


def test_tasks_are_given_up_with_an_sn_that_is_lost_but_not_with_one_that_drains():
    async def scene():
        node, _ = made("en")
        one, abandoned = node.watching[0], []
        node.abandon = abandoned.append
        for connected, why, given_up in (
            (False, "refused", []), (True, "ended", []), (True, "UNAVAILABLE: gone", [0]),
        ):  # fmt: skip
            one.connected = connected
            node.core.silence(0, False)
            one._lost(why)
            assert abandoned == given_up
            assert node.core.caches[0].silent
            assert not one.connected
        await node.close()

    play(scene())


# Who does the work, and where.


def test_a_command_that_cannot_be_started_or_fails_says_why():
    async def scene():
        ends = []
        for command in ("nowhere-at-all", "false", "echo 12345", "echo 1234"):
            worker = Commands(command, StillHost(), 5)
            worker.run(Item(0, 0.0, 50.0, 1.0, 1.0), 0.0, ends.append, ends.append)
            await asyncio.gather(*worker._running)
        assert ends == [
            "the command cannot be started (No such file or directory)",
            "the command ended with 1",
            "the output has 6 bytes, must have at most 5",
            b"1234\n",
        ]

    play(scene())


def test_a_command_is_told_of_its_task():
    async def scene():
        host, ends = StillHost(), []
        host.time_ms = 12.0
        worker = Commands("sh -c 'echo $COSMO_KIND $COSMO_CYCLES $COSMO_BUDGET_MS'", host, 99)
        worker.run(Item(0, 2.0, 50.0, 1.0, 1234.5, kind="k"), 0.0, ends.append, ends.append)
        await asyncio.gather(*worker._running)
        assert ends == [b"k 1234 40.000\n"]

    play(scene())


def test_the_generator_of_tasks_has_half_the_priority_of_nodes():
    def chosen(fifo, name):
        return Ground(fifo).command(name)[-3:]

    assert chosen(10, "en0") == ("chrt", "-f", "10")
    assert chosen(10, "ues") == ("chrt", "-f", "5")
    assert chosen(1, "ues") == ("chrt", "-f", "1")
    assert "chrt" not in chosen(0, "ues")


def test_a_log_has_lines_of_its_level_and_above_until_nobody_reads():
    class Stream:
        def __init__(self):
            self.lines, self.broken = [], False

        def write(self, text):
            if self.broken:
                self.broken = False  # it would work again, and nobody asks
                raise OSError
            self.lines.append(text)

        def flush(self):
            pass

    stream = Stream()
    log = Log("en0", "info", stream)
    for name in ("debug", "info", "warning"):
        getattr(log, name)(name)
    assert "".join(stream.lines).count("event") == 2
    log.level("warning")
    log.info("no")
    log.level("debug")
    log.debug("yes")
    assert "".join(stream.lines).count("event") == 3
    stream.broken = True
    for _ in range(2):
        log.warning("lost")
    assert "".join(stream.lines).count("event") == 3


def test_calls_that_are_left_end_with_the_watch():
    async def scene():
        node, _ = made("en")
        one, closed = node.watching[0], []

        async def close(grace_s=None):
            closed.append(grace_s)
            await asyncio.sleep(600.0)

        one._channel = SimpleNamespace(close=close)
        one._hang_up(60.0)
        await turns()
        assert closed == [60.0]
        one._dial()
        await node.close()
        await turns()
        assert not one._closing

    play(scene())
