"""What an SN tells balancers of its load, read without any description of the messages."""

import asyncio
import math
import struct

import grpc
import pytest
from benchmarks import raw_http2 as raw
from virtual_clock import VirtualClock

from cosmo.live import orca as orca_room
from cosmo.live import wire
from cosmo.live.orca import SERVICE, TRAILER, Orca, OrcaLoadReportRequest
from cosmo.live.smoothed import SmoothedLevel, SmoothedRate
from cosmo.live.station import Station
from cosmo.live.tasks import Fate, Item
from live.nodes import config, play, started
from live.still_nodes import AbortedError, Context
from observations import site

# Numbers of fields in xds.data.orca.v3.OrcaLoadReport, as its specification has them.
CPU, MEMORY, RATE, ERRORS, NAMED, APPLICATION = 1, 2, 6, 7, 8, 9
STREAM = f"/{SERVICE}/StreamCoreMetrics"


def fields(data):
    """(number, content) of every field of a message: doubles, and bytes of what is inside."""
    found, place = [], 0
    while place < len(data):
        number, kind = data[place] >> 3, data[place] & 7  # all numbers here are below 16
        place += 1
        if kind == 1:
            found.append((number, struct.unpack_from("<d", data, place)[0]))
            place += 8
        else:
            assert kind == 2
            length = data[place]
            assert length < 128
            found.append((number, data[place + 1 : place + 1 + length]))
            place += 1 + length
    return found


def report_of(data):
    """{number: value}, and the named metrics."""
    plain = {number: value for number, value in fields(data) if number != NAMED}
    pairs = [dict(fields(value)) for number, value in fields(data) if number == NAMED]
    return plain, {each[1].decode(): each.get(2, 0.0) for each in pairs}


def test_means_forget():
    level, rate = SmoothedLevel(1000.0), SmoothedRate(1000.0)
    assert level.hold(1.0, 1000.0) == pytest.approx(1.0 - math.exp(-1.0))
    assert level.hold(0.0, 2000.0) == pytest.approx((1.0 - math.exp(-1.0)) * math.exp(-1.0))
    assert level.hold(9.0, 500.0) == level.hold(7.0, 2000.0)  # a clock that says less says nothing
    for moment in range(0, 20_000, 20):
        rate.count(float(moment))
    assert rate.per_s(20_000.0) == pytest.approx(50.0, rel=0.02)
    assert rate.per_s(21_000.0) == pytest.approx(50.0 / math.e, rel=0.02)


def test_a_report_mirrors_the_node():
    async def scene():
        here, clock = site_of_sn(), VirtualClock()
        station = Station(here.sn, 0, 0.0, 0.1, lambda slot, item, finish: None)
        orca = Orca(station, 480_000.0, clock, config("sn").tls)
        for number in range(6):  # four slots: two wait
            station.admit(Item(number, 0.0, 100.0, 48_000.0, 27_000.0), 0.0)
        orca.count(None, Fate.DONE)
        orca.count(None, Fate.REFUSED)
        clock.at(1000.0, 1, lambda: None)
        clock.run()
        plain, named = report_of(orca.report().SerializeToString())
        share, kept = 1.0 - math.exp(-1.0), math.exp(-1.0)
        assert plain == pytest.approx(
            {CPU: share, MEMORY: 0.6, RATE: 2 * kept, ERRORS: kept, APPLICATION: 1.5 * share}
        )
        assert named == pytest.approx(
            {
                "cosmo.idle_slots": 0.0,
                "cosmo.wait_ms": 1000.0,
                "cosmo.work_cycles": 54_000.0,
                "cosmo.free_bytes": 192_000.0,
                "cosmo.tasks": 6.0,
                "cosmo.latency_ms": 0.0,
            }
        )

    play(scene())


def site_of_sn():
    from cosmo import load

    return site(load("paper"))


@pytest.mark.parametrize(
    ("asked_s", "every_s"), [(0.0, 1.0), (0.05, 0.1), (2.5, 2.5), (3600.0, 3600.0), (9e3, 3600.0)]
)
def test_reports_of_a_stream_are_as_far_apart_as_is_asked_within_bounds(
    asked_s, every_s, monkeypatch
):
    pauses = []

    async def scene():
        station = Station(site_of_sn().sn, 0, 0.0, 0.1, lambda *_: None)
        orca = Orca(station, 480_000.0, VirtualClock(), config("sn").tls)

        async def wait_for(waiting, seconds):
            waiting.close()
            pauses.append(seconds)
            orca.close()

        request = OrcaLoadReportRequest()
        request.report_interval.seconds = int(asked_s)
        request.report_interval.nanos = round(asked_s % 1 * 1e9)
        with monkeypatch.context() as patched:
            patched.setattr(orca_room.asyncio, "wait_for", wait_for)
            told = [each async for each in orca.stream(request, Context())]
        assert len(told) == 1
        assert orca._streams == 0

    play(scene())
    assert pauses == [every_s]


def test_there_are_64_streams_of_reports_and_none_for_nonsense():
    async def scene():
        station = Station(site_of_sn().sn, 0, 0.0, 0.1, lambda *_: None)
        orca = Orca(station, 480_000.0, VirtualClock(), config("sn").tls)
        streams = [orca.stream(OrcaLoadReportRequest(), Context()) for _ in range(65)]
        for each in streams[:64]:
            await anext(each)
        with pytest.raises(AbortedError, match="RESOURCE_EXHAUSTED"):
            await anext(streams[64])
        with pytest.raises(AbortedError, match="INVALID_ARGUMENT"):
            await anext(orca.stream(None, Context()))
        for each in streams:
            await each.aclose()
        assert orca._streams == 0

    play(scene())


def test_reports_come_on_answers_and_over_a_stream_until_the_sn_drains():
    async def scene():
        async with started("sn", {"orca": True, "method.use": "all-offload"}) as there:
            task = wire.Task(id=1, cycles=27_000.0 * 5.0, deadline_us=10**8).SerializeToString()
            async with raw.Raw(there.address) as line:
                await line.send(
                    *(raw.PREFACE, raw.settings(**{f"id_{raw.TRUE_BINARY}": 1})),
                    raw.headers(1, wire.EXECUTE, cosmo_en="en0"),
                    raw.frame(raw.DATA, raw.END_STREAM, 1, raw.message(task)),
                )
                kind, block = (await line.until_end(1))[-1]
                value = raw.literal(block, TRAILER)
                assert (kind, value[0]) == (raw.HEADERS, 0)  # bytes as they are
                plain, named = report_of(value[1:])
                assert plain[RATE] > 0.0
                assert plain[APPLICATION] > 0.0
                assert ERRORS not in plain
                assert named["cosmo.idle_slots"] == 4.0
            async with grpc.aio.insecure_channel(there.address) as channel:
                # Every 150 ms: a duration of no seconds, and so many nanoseconds.
                asked = bytes([0x0A, 5, 0x10]) + _varint(150_000_000)
                stream = channel.unary_stream(STREAM)(asked)
                told = [report_of(await stream.read())[0] for _ in range(2)]
                assert 0.0 < told[1][RATE] < told[0][RATE]  # nothing happens, time goes by
                await there.drain()
                while await stream.read() is not grpc.aio.EOF:
                    pass  # what was sent before
                assert await stream.code() == grpc.StatusCode.OK

    play(scene())


def _varint(number):
    found = []
    while number >= 128:
        found.append(number % 128 + 128)
        number //= 128
    return bytes([*found, number])


def test_orca_is_off_unless_it_is_asked_for_and_not_for_ens(cosmo):
    async def scene():
        async with (
            started("sn", {"method.use": "all-offload"}) as there,
            grpc.aio.insecure_channel(there.address) as channel,
        ):
            with pytest.raises(grpc.aio.AioRpcError) as error:
                await asyncio.wait_for(channel.unary_stream(STREAM)(b"").read(), 60.0)
            assert error.value.code() == grpc.StatusCode.UNIMPLEMENTED

    play(scene())
    code, _, err = cosmo("serve", "en", "--set", "orca=true")
    assert (code, err) == (2, "cosmo: orca = true: must be false unless the node is an SN\n")
