"""Proxies that mean harm: whatever one of them sends, others are served and nothing stays taken."""

import asyncio

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from cosmo.live.picker import ext_proc, frames
from cosmo.live.picker.frames import DATA, END_STREAM, RESET, SETTINGS, WINDOW, WORD, frame
from cosmo.live.picker.grpc_calls import message
from cosmo.live.picker.http2_sending import OpenStreams
from live.nodes import LIMIT_S, play, until
from live.picker_scenes import Proxy, headers, picker, quiet
from live.test_picker_http2 import (
    CALM,
    GOAWAY,
    OPENING,
    Peer,
    codes,
    in_loop,
    opening,
    works,
)
from slow import computing

ASKS = message(headers().SerializeToString())
PATH = (b":path", ext_proc.PROCESS)
CALL = [(b":method", b"POST"), (b":scheme", b"http"), PATH, (b"te", b"trailers"),
        (b"content-type", b"application/grpc")]  # fmt: skip


class Raw:
    """A connection on which anything can be said."""

    def __init__(self, serving, source="127.0.0.1"):
        self._place, self._source = ("127.0.0.1", serving.port), source

    async def __aenter__(self):
        self.reader, self.writer = await asyncio.open_connection(
            *self._place, local_addr=(self._source, 0)
        )
        self.says(OPENING)
        return self

    async def __aexit__(self, *_):
        self.writer.close()

    def says(self, data):
        self.writer.write(data)

    def asks(self, number):
        self.says(opening(number, CALL) + frame(DATA, 0, number, ASKS))


@pytest.mark.parametrize(
    "last",
    [
        b"\0\0",  # a message that is not whole
        message(b"\xff\xff\xff"),  # none at all
        ASKS,  # a second request
        b"\x01\0\0\0\0",  # compressed
    ],
)
@pytest.mark.parametrize("together", [True, False])
def test_a_request_that_ends_with_nonsense_gives_its_place_back(last, together):
    async def scene():
        async with picker() as serving, Raw(serving) as raw:
            node = serving.node
            parts = [ASKS + last] if together else [ASKS, last]
            sent = [frame(DATA, 0, 1, part) for part in parts[:-1]]
            raw.says(opening(1, CALL) + b"".join(sent) + frame(DATA, END_STREAM, 1, parts[-1]))
            await until(lambda: node.counters.get("cancelled_total") == 1, "it was given up")
            assert (node.in_flight, node.core.open, node.budget.held) == (0, [0, 0, 0], 0)

    play(scene())


def test_a_peer_without_windows_gives_back_what_it_asked_for():
    async def scene():
        async with picker() as serving, Raw(serving) as raw:
            node = serving.node
            raw.says(frame(SETTINGS, 0, 0, frames.SETTING.pack(frames.INITIAL_WINDOW, 0)))
            raw.asks(1)
            await until(lambda: node.in_flight == 1, "it was decided on")
            raw.says(frame(DATA, 0, 1, ASKS))  # a second request on the stream: its end
            await until(lambda: node.in_flight == 0, "its place is free")
            raw.says(frame(DATA, 0, 1, b"\0\0\x0f\xff\xff" + bytes(9000)))
            raw.asks(3)
            await until(lambda: node.in_flight == 1, "that was taken, too")
            assert node.budget.held == 0  # nothing is kept for a call that has its answer

    play(scene())


def test_one_address_cannot_hold_all_calls():
    async def scene():
        async with (
            picker(limits__calls=40) as serving,
            Raw(serving) as greedy,
            Raw(serving, "127.0.0.2") as other,
        ):
            for number in range(1, 101, 2):
                greedy.asks(number)
            await until(lambda: serving.node.counters.get("turned_away_total", status="grpc") == 20,
                        "some are turned away")  # fmt: skip
            assert serving.node.in_flight == 30
            for number in range(1, 21, 2):
                other.asks(number)
            await until(lambda: serving.node.in_flight == 40, "others have the rest")
            greedy.writer.close()
            await until(lambda: serving.node.in_flight == 10, "its places are free")

    play(scene())


def test_shares_of_streams_are_worked_out_by_peer():
    streams = OpenStreams()
    for number in range(1, 7):
        streams.add("a", 1)
        assert streams.room_for("a", 8)
        assert number == streams.total
    streams.add("a", 1)
    assert not streams.room_for("a", 8)  # the seventh and eighth are for others
    streams.add("a", -1)
    for _ in range(2):
        streams.add("b", 1)
        assert streams.room_for("b", 8)
    streams.add("c", 1)
    assert not streams.room_for("c", 8)  # there are no more than eight
    alone = OpenStreams()
    alone.add("a", 1)
    assert alone.room_for("a", 1)


def test_health_is_told_while_one_address_floods():
    async def scene():
        async with (
            picker(limits__calls=40) as serving,
            Raw(serving, "127.0.0.2") as greedy,
            Proxy(serving.address) as proxy,
        ):
            for number in range(1, 201, 2):
                greedy.says(opening(number, CALL))
            await until(lambda: serving.node.counters.get("turned_away_total", status="grpc"),
                        "some are turned away")  # fmt: skip
            check = health_pb2_grpc.HealthStub(proxy.channel).Check
            assert (await check(health_pb2.HealthCheckRequest())).status == 1
            assert len(await proxy.request()) == 3

    play(scene())


def test_a_flood_of_one_connection_leaves_turns_to_the_others():
    async def scene():
        async with picker() as serving, Raw(serving) as flood, Proxy(serving.address) as proxy:
            await proxy.request()
            said = b"".join(
                opening(number, CALL) + frame(DATA, END_STREAM, number, ASKS)
                for number in range(1, 6001, 2)
            )
            reading = asyncio.create_task(_read_all(flood.reader))
            flood.says(said)
            counters = serving.node.counters

            def decided():
                return sum(n for name, _, n in counters.samples() if name == "decisions_total")

            before, last = decided(), decided() + 3000
            most = 0  # requests of the flood between two turns of others
            while before < last:
                await asyncio.sleep(0)
                now = decided()
                most, before = max(most, now - before), now
            assert most < 1000  # a turn is 4 ms, and all of them take half a second
            assert len(await proxy.request()) == 3
            reading.cancel()
            await quiet(serving)

    play(scene())


async def _read_all(reader):
    while await reader.read(65_536):
        pass


def test_a_peer_that_does_not_read_is_not_read_until_it_does():
    def scene():
        peer, said = Peer(), []
        peer.pause_reading = lambda: said.append("pause")
        peer.resume_reading = lambda: said.append("resume")
        peer.says(OPENING)
        peer.end.pause_writing()
        peer.says(opening())  # was on its way
        peer.end.resume_writing()
        assert said == ["pause", "resume"]
        peer.end.pause_writing()
        peer.close()
        peer.end.resume_writing()  # of a connection that is gone
        assert said == ["pause", "resume", "pause"]

    in_loop(scene)


def test_a_peer_that_falls_silent_is_left(monkeypatch):
    monkeypatch.setattr("cosmo.live.picker.listener._LOOK_S", 0.02)
    monkeypatch.setattr("cosmo.live.picker.listener._PING_S", 0.1)
    monkeypatch.setattr("cosmo.live.picker.listener._GONE_S", 0.3)

    async def scene():
        async with picker() as serving, Raw(serving) as raw:
            raw.asks(1)
            await until(lambda: serving.node.in_flight == 1, "it was decided on")
            await until(lambda: not serving._listener._connections, "it was left")
            assert serving.node.in_flight == 0
            assert b"areyouok" in await raw.reader.read()  # it was asked before

    play(scene())


def test_a_connection_without_calls_ends_and_one_with_a_call_stays(monkeypatch):
    monkeypatch.setattr("cosmo.live.picker.listener._LOOK_S", 0.02)

    async def scene():
        async with picker(limits__idle_s=1.0) as serving, Raw(serving) as busy:
            busy.asks(1)
            await until(lambda: serving.node.in_flight == 1, "it was decided on")
            start = asyncio.get_running_loop().time()  # however long what follows takes
            async with Raw(serving) as idle, asyncio.timeout(LIMIT_S):
                await idle.reader.read()  # until the picker hangs up
            assert asyncio.get_running_loop().time() - start > 0.9
            assert serving.node.in_flight == len(serving._listener._connections) == 1

    play(scene())


FLOODS = {
    "streams that end without a word": b"".join(
        opening(number) + frame(RESET, 0, number, WORD.pack(8)) for number in range(1, 4101, 2)
    ),
    "streams that break the protocol": b"".join(
        opening(number) + frame(WINDOW, 0, number, WORD.pack(0)) for number in range(1, 4101, 2)
    ),
}


@pytest.mark.parametrize("name", FLOODS)
def test_a_peer_that_only_makes_work_is_cut_off(name):
    def scene():
        peer = Peer()
        assert (0, CALM) in codes(peer.says(OPENING + FLOODS[name]), GOAWAY)
        assert not peer.open

    in_loop(scene)


def test_streams_with_a_message_may_be_ended_as_often_as_one_likes():
    async def scene():
        peer = Peer()
        peer.says(OPENING)
        for number in range(1, 6001, 2):
            peer.says(opening(number) + frame(DATA, 0, number, message(b"hi")))
            peer.says(frame(RESET, 0, number, WORD.pack(8)))
        await asyncio.sleep(0)
        assert works(peer, 6001)

    asyncio.run(scene())


def test_settings_that_change_every_window_again_and_again_cost_little():
    def scene():
        peer = Peer(streams=4000)
        peer.says(OPENING + b"".join(opening(number) for number in range(1, 8001, 2)))
        sizes = [frames.SETTING.pack(frames.INITIAL_WINDOW, 1000 + k) for k in range(2000)]
        with computing() as taken:
            found = peer.says(frame(SETTINGS, 0, 0, b"".join(sizes)))
        assert taken.s < 0.5  # one after the other takes some seconds
        assert [each[:2] for each in found] == [(SETTINGS, frames.ACK)]
        assert {stream.window for stream in peer.end.streams.values()} == {2999}
        for size in sizes:
            peer.says(frame(SETTINGS, 0, 0, size))
        assert not peer.open

    in_loop(scene)


def test_many_small_answers_that_wait_leave_in_few_frames():
    def scene():
        peer = Peer()
        none = frame(SETTINGS, 0, 0, frames.SETTING.pack(frames.INITIAL_WINDOW, 0))
        peer.says(frames.PREFACE + none + opening())
        small = 2000 * message(b"x")
        for _ in range(20):
            peer.says(frame(DATA, 0, 1, small))
        found = peer.says(frame(WINDOW, 0, 0, WORD.pack(10**6)))
        found += peer.says(frame(WINDOW, 0, 1, WORD.pack(10**6)))
        parts = [content for kind, _, _, content in found if kind == DATA]
        assert b"".join(parts) == 20 * small
        assert len(parts) == 15  # of 16 384 bytes: not 40 000 of 6

    in_loop(scene)


def test_a_message_in_tiny_pieces_costs_no_more_than_its_pieces():
    def scene():
        peer = Peer(most_bytes=10**6)
        peer.budget.most = 10**7
        peer.says(OPENING + opening())
        big = message(bytes(200_000))
        pieces = b"".join(frame(DATA, 0, 1, big[at : at + 2]) for at in range(0, len(big), 2))
        with computing() as taken:
            for at in range(0, len(pieces), 65_536):
                peer.says(pieces[at : at + 65_536])
        assert taken.s < 4.0  # copying all of it for each takes far longer
        assert peer.end.streams[1].pending or peer.budget.held == 0

    in_loop(scene)


def test_a_call_that_fails_inside_ends_alone(caplog):
    def scene():
        peer = Peer()
        peer.says(OPENING + opening() + opening(3))

        def fails(content):
            raise ZeroDivisionError

        peer.calls[0].message = fails
        found = peer.says(frame(DATA, 0, 1, message(b"hi")))
        assert codes(found, RESET) == [(1, frames.INTERNAL_ERROR)]
        found = peer.says(frame(DATA, END_STREAM, 3, message(b"hi")))
        assert [each[0] for each in found] == [1, DATA, 1]

    in_loop(scene)
    assert "a call of a proxy has failed" in caplog.text


def many(phase, which):
    made = headers(phase)
    for _ in range(1001):
        if which == "headers":
            getattr(made, phase).headers.headers.add(key="a", value="b")
        elif which == "attributes":
            made.attributes.add(key="a")
        else:
            made.metadata_context.filter_metadata.add(key="a")
    return made


@pytest.mark.parametrize("phase", ["request_headers", "response_headers"])
@pytest.mark.parametrize("which", ["headers", "attributes", "metadata"])
def test_messages_with_thousands_of_headers_are_refused(phase, which):
    async def scene():
        async with picker() as serving, Proxy(serving.address) as proxy:
            stream = proxy.stream()
            if phase == "response_headers":
                await stream.write(headers())
                await stream.read()
            await stream.write(many(phase, which))
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await stream.read()
            assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT
            await quiet(serving)
            assert len(await proxy.request()) == 3

    play(scene())
