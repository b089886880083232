"""Ways between clients, ENs and SNs: what they are made of, how long they take, who is lost."""

import asyncio
import math
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from cosmo.live import client, peers, sn_connection, wire
from cosmo.live.handlers import Commands
from cosmo.live.logs import Log
from cosmo.live.tasks import Fate, Item
from live.nodes import play
from live.still_nodes import AbortedError, Context, StillClock, made

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


# Channels.


def test_who_calls_is_a_certificate_s_name_or_an_address():
    def context(*names):
        held = {"x509_subject_alternative_name": [name.encode() for name in names]}
        return SimpleNamespace(auth_context=lambda: held, peer=lambda: "ipv4:10.0.0.1:5")

    signed = SimpleNamespace(certificate="c")
    assert peers.client_of(context("b", "a"), signed) == "a"
    assert peers.client_of(context(), signed) == "10.0.0.1"
    assert peers.client_of(context("b"), SimpleNamespace(certificate="")) == "10.0.0.1"


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


# An EN's view of an SN.


def test_a_round_trip_is_smoothed_and_statuses_are_dated_by_it(monkeypatch):
    now_ns = [10**9]
    monkeypatch.setattr(sn_connection, "time", SimpleNamespace(monotonic_ns=lambda: now_ns[0]))

    async def scene():
        node, clock = made("en", use="periodic", scale=2.0)
        clock.time_ms, one = 100.0, node.connections[0]

        def beat(took_us):
            stamp = one.heartbeat().heartbeat.stamp
            now_ns[0] += 1000 * took_us
            one.take(wire.FromSn(heartbeat=wire.Heartbeat(echo=stamp)))
            return one.round_trip_ms

        assert [beat(4000), beat(8000)] == pytest.approx([4.0, 4.4])
        assert one.transit_ms == pytest.approx(0.5 * 4.4 / 2.0)
        status = wire.Status(sequence=0, held_us=3000, numbers=[1.0, 2.0, 3.0, 4.0])
        one.take(wire.FromSn(status=status))
        cache = node.core.caches[0]
        assert cache.source_ms == pytest.approx(100.0 - 3.0 - 1.1)
        assert cache.numbers.tolist() == [1.0, 2.0, 3.0, 4.0]
        assert node.counters.get("statuses_total", sn="sn0") == 1.0
        await node.close()

    play(scene())


RAW = [1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"status": {"numbers": [1.0]}}, "1 numbers in a status: must be 4"),
        ({"status": {"numbers": [1.0, math.nan, 0.0, 0.0]}}, "number 1 of a status = nan"),
        ({"status": {"numbers": [1.0, 0.0, math.inf, 0.0]}}, "number 2 of a status = inf"),
        ({"status": {"numbers": [1.0, 0.0, -9.0, 0.0]}}, "number 2 of a status = -9"),
        ({"status": {"numbers": RAW, "held_us": 1_101_000}}, "held_us = 1101000: must be at most"),
        ({"status": {"numbers": RAW, "sequence": 2**48 + 1}}, "sequence = 281474976710657: must"),
        ({"welcome": {"work_cycles": math.inf}}, "work_cycles = inf: must be a number from 0"),
        ({"welcome": {"cycles_per_ms": math.nan}}, "cycles_per_ms = nan: must be a number from 0"),
        ({"welcome": {"boot": 6}}, "a second welcome"),
        ({"welcome": {"work_cycles": -1.0}}, "work_cycles = -1: must be a number from 0"),
        ({"heartbeat": {"echo": 2**64 - 1}}, "echo = 18446744073709551615: must be the stamp"),
        ({"heartbeat": {"echo": 41}}, "echo = 41: must be the stamp of a heartbeat"),
    ],
)
def test_an_sn_that_sends_implausible_messages_is_silent_counted_and_logged_once(said, why):
    async def scene():
        node, clock = made("en", use="periodic")
        clock.time_ms, one = 100.0, node.connections[0]
        one.heartbeat()
        one.take(wire.FromSn(welcome=wire.Welcome(boot=5)))
        cache = node.core.caches[0]
        assert not cache.silent
        kept = cache.sequence, cache.source_ms, cache.unknown_work_ms, one.round_trip_ms
        for _ in range(3):
            one.take(wire.FromSn(**said))
        assert cache.silent
        assert str(
            (cache.sequence, cache.source_ms, cache.unknown_work_ms, one.round_trip_ms)
        ) == str(kept)
        assert node.counters.get("implausible_messages_total", sn="sn0") == 3.0
        lines = [line for line in node.log._stream.getvalue().splitlines() if "believed" in line]
        assert len(lines) == 1
        assert why in lines[0]
        await node.close()

    play(scene())


def test_welcomes_without_end_cost_a_method_its_memory_once_and_a_log_a_few_lines():
    async def scene():
        node, _ = made("en", use="periodic")
        forgotten, start_over = [], node.core.runner.start_over
        node.core.runner.start_over = lambda: forgotten.append(start_over())
        for boot in range(200):
            node.connections[0].take(wire.FromSn(welcome=wire.Welcome(boot=boot)))
        assert len(forgotten) == 1
        assert len(node.log._stream.getvalue().splitlines()) <= 3
        await node.close()

    play(scene())


@pytest.mark.parametrize("kind", ["plausible statuses", "old heartbeats", "nothing at all"])
def test_an_sn_that_sends_more_messages_than_it_may_is_not_believed_whatever_they_are(kind):
    async def scene():
        node, clock = made("en", use="periodic")
        clock.time_ms, one = 100.0, node.connections[0]
        first, *_ = [one.heartbeat().heartbeat.stamp for _ in range(300)]
        said = {
            "plausible statuses": {"status": {"numbers": RAW}},
            "old heartbeats": {"heartbeat": {"echo": first}},
            "nothing at all": {},
        }[kind]
        for _ in range(4000):  # as much may have gathered while this node was held up
            one.take(wire.FromSn(**said))
        assert not one.implausible
        for _ in range(100_000):
            if not one.implausible:
                one.take(wire.FromSn(**said))
        assert one.implausible == "more messages than an SN may send"
        await node.close()

    play(scene())


def test_an_en_that_sends_more_messages_than_it_may_is_not_believed():
    async def scene():
        node, _ = made("sn", use="periodic")
        said = []

        async def requests():
            for _ in range(100_000):
                said.append(0)
                yield wire.FromEn(ack=wire.Ack(sequence=1))

        await node._read(0, requests(), asyncio.Queue(9))
        assert 4000 < len(said) < 100_000
        assert node.counters.get("implausible_messages_total", en="en0") == 1.0

    play(scene())


def test_more_than_an_sn_has_is_cut_and_a_leap_of_sequences_is_no_status():
    async def scene():
        node, clock = made("en", use="periodic")
        clock.time_ms, one = 100.0, node.connections[0]
        one.take(wire.FromSn(status=wire.Status(sequence=7, numbers=[9.0, 1.0, 5.0, 1e6])))
        cache = node.core.caches[0]
        assert cache.numbers.tolist() == [4.0, 1.0, 5.0, 480_000.0]
        for sequence, kept in ((1_000_007, 1_000_007), (2_000_008, 1_000_007)):
            one.take_status(wire.Status(sequence=sequence, numbers=RAW))
            assert cache.sequence == kept
        await node.close()

    play(scene())


def test_an_en_that_waits_for_a_minute_is_not_believed():
    async def scene():
        node, _ = made("sn", use="periodic")
        out = asyncio.Queue(9)

        async def requests():
            for _ in range(2):
                yield wire.FromEn(heartbeat=wire.Heartbeat(round_trip_us=2**64 - 1))

        for _ in range(2):
            await node._read(0, requests(), out)
            assert (out.qsize(), out.get_nowait()) == (1, None)  # the end of its stream
        assert node._states[0].transit_ms == 0.0
        assert node.counters.get("implausible_messages_total", en="en0") == 2.0
        assert node.log._stream.getvalue().count("not believed") == 1

    play(scene())


def test_a_welcome_is_the_start_of_new_books_and_odd_ones_are_said():
    async def scene():
        node, _ = made("en")
        one, log = node.connections[0], node.log._stream
        one.send("no SN is connected")
        assert one.unsent == 0
        right = {"boot": 5, "slots": 4, "cycles_per_ms": 27_000.0, "work_cycles": 108_000.0 * 2.0}
        for wrong, odd in (({}, 0), ({"slots": 5}, 1), ({"cycles_per_ms": 1.0}, 2)):
            one.connected = False  # on a stream of its own, each
            one.take(wire.FromSn(welcome=wire.Welcome(**right | wrong)))
            assert log.getvalue().count("is not what the configuration says") == odd
        assert log.getvalue().count('"again": true') == 2
        assert one.connected
        assert not node.core.caches[0].silent
        assert node.core.caches[0].unknown_work_ms == 2.0
        for _ in range(300):  # more than anybody reads
            one.send(wire.FromEn())
        assert one.unsent == 256
        await node.close()

    play(scene())


# Who does the work, and where.


def test_a_command_that_cannot_be_started_or_fails_says_why():
    async def scene():
        ends = []
        for command in ("nowhere-at-all", "false", "echo 12345", "yes", "echo 1234"):
            worker = Commands(command, StillClock(), 5)
            worker.run(Item(0, 0.0, 50.0, 1.0, 1.0), 0.0, ends.append, ends.append)
            await asyncio.gather(*worker._running)
        assert ends == [
            "the command cannot be started (No such file or directory)",
            "the command ended with 1",
            "the output has more than 5 bytes",
            "the output has more than 5 bytes",  # of a program that would write for ever
            b"1234\n",
        ]

    play(scene())


def test_a_command_need_not_read_its_input_and_may_answer_before_it_has_read_it():
    async def scene():
        ends, content = [], bytes(10**6)
        for command in ("true", "cat"):
            worker = Commands(command, StillClock(), 10**6)
            item = Item(0, 0.0, 50.0, 1.0, 1.0, input=content)
            worker.run(item, 0.0, ends.append, ends.append)
            await asyncio.gather(*worker._running)
        assert ends == [b"", content]

    play(scene())


def test_a_command_is_told_of_its_task():
    async def scene():
        clock, ends = StillClock(), []
        clock.time_ms = 12.0
        worker = Commands("sh -c 'echo $COSMO_KIND $COSMO_CYCLES $COSMO_BUDGET_MS'", clock, 99)
        worker.run(Item(0, 2.0, 50.0, 1.0, 1234.5, kind="k"), 0.0, ends.append, ends.append)
        await asyncio.gather(*worker._running)
        assert ends == [b"k 1234 40.000\n"]

    play(scene())


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
