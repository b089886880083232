"""HTTP/2 of a picker, frame by frame: what RFC 9113 demands of a server, and what peers hold."""

import asyncio

import hpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cosmo.live.picker import frames, grpc_calls
from cosmo.live.picker.frames import (
    ACK,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    PADDED,
    PING,
    PRIORITISED,
    PRIORITY,
    PUSH,
    RESET,
    SETTINGS,
    WINDOW,
    WORD,
    frame,
)
from cosmo.live.picker.grpc_calls import Budget, Call, message
from cosmo.live.picker.http2 import Http2Connection
from cosmo.live.picker.http2_sending import OpenStreams

PATH = b"/a.B/C"
GOOD = [
    (b":method", b"POST"), (b":scheme", b"http"), (b":path", PATH), (b":authority", b"x"),
    (b"te", b"trailers"), (b"content-type", b"application/grpc"),
]  # fmt: skip
OPENING = frames.PREFACE + frame(SETTINGS, 0, 0)
PROTOCOL, FLOW, CLOSED, SIZE, REFUSED, COMPRESSION, CALM = 1, 3, 5, 6, 7, 9, 11


def block(fields):
    return hpack.Encoder().encode(fields)


def opening(number=1, fields=None, flags=END_HEADERS):
    return frame(HEADERS, flags, number, block(GOOD if fields is None else fields))


class Echo(Call):
    """Sends every message back."""

    def message(self, content):
        self.send(message(content))


class Peer:
    """The other end of a connection, without a socket."""

    def __init__(self, most_bytes=100_000, streams=4):
        self.out, self.open, self.calls = b"", True, []
        self.budget, self.open_streams = Budget(150_000), OpenStreams()

        def opened(stream, _):
            self.calls.append(Echo(stream, most_bytes, self.budget))
            return self.calls[-1]

        open_call = grpc_calls.opened({PATH: opened})
        self.end = Http2Connection(
            open_call, streams, lambda _: True, lambda _: None, self.open_streams
        )
        self.end.connection_made(self)
        self.taken()

    # Of a transport.

    def write(self, data):
        self.out += data

    def close(self):
        if self.open:
            self.open = False
            self.end.connection_lost(None)

    abort = close

    def pause_reading(self):
        pass

    resume_reading = pause_reading

    # Of a peer.

    def says(self, data, piece=None):
        for at in range(0, len(data), piece or len(data) or 1):
            self.end.data_received(data[at : at + (piece or len(data))])
            while self.end._resting:  # what the loop does after the turns of others
                self.end._go_on()
        return self.taken()

    def taken(self):
        """(kind, flags, stream, content) of all frames that have come since."""
        found, at = [], 0
        while at < len(self.out):
            high, low, kind, flags, number = frames.HEAD.unpack_from(self.out, at)
            end = at + 9 + (high << 16 | low)
            found.append((kind, flags, number, self.out[at + 9 : end]))
            at = end
        self.out = b""
        return found


def in_loop(scene):
    async def run():
        scene()

    asyncio.run(run())


def codes(found, kind):
    """Error codes of GOAWAY or RESET frames, by stream."""
    place = 4 if kind == GOAWAY else 0
    return [
        (number, WORD.unpack_from(content, place)[0])
        for each, _, number, content in found
        if each == kind
    ]


CONNECTION_ERRORS = {
    "no preface": (b"GET / HTTP/1.1\r\n\r\n", PROTOCOL),
    "no settings first": (frames.PREFACE + frame(PING, 0, 0, b"12345678"), PROTOCOL),
    "large frame": (OPENING + (16_385).to_bytes(3, "big") + bytes([0, 0, 0, 0, 0, 1]), SIZE),
    "data of stream 0": (OPENING + frame(DATA, 0, 0, b"x"), PROTOCOL),
    "data of an idle stream": (OPENING + frame(DATA, 0, 5, b"x"), PROTOCOL),
    "reset of an idle stream": (OPENING + frame(RESET, 0, 5, WORD.pack(8)), PROTOCOL),
    "window of an idle stream": (OPENING + frame(WINDOW, 0, 5, WORD.pack(8)), PROTOCOL),
    "headers of an even stream": (OPENING + opening(2), PROTOCOL),
    "headers of stream 0": (OPENING + opening(0), PROTOCOL),
    "streams that go back": (OPENING + opening(3) + opening(1), CLOSED),
    "headers in between": (
        OPENING + opening(1, flags=0) + frame(PING, 0, 0, b"12345678"), PROTOCOL),
    "continuation of another": (
        OPENING + opening(1, flags=0) + frame(CONTINUATION, 4, 3), PROTOCOL),
    "continuation of nothing": (OPENING + frame(CONTINUATION, END_HEADERS, 1), PROTOCOL),
    "all padding": (OPENING + frame(HEADERS, END_HEADERS | PADDED, 1, b"\x05abc"), PROTOCOL),
    "padding without length": (OPENING + frame(HEADERS, END_HEADERS | PADDED, 1), PROTOCOL),
    "no priority": (OPENING + frame(HEADERS, END_HEADERS | PRIORITISED, 1, b"abc"), SIZE),
    "broken headers": (
        OPENING + frame(HEADERS, END_HEADERS, 1, b"\xff\xff\xff\xff\xff"), COMPRESSION),
    "settings of a stream": (OPENING + frame(SETTINGS, 0, 1), PROTOCOL),
    "settings of odd size": (OPENING + frame(SETTINGS, 0, 0, b"12345"), SIZE),
    "acknowledged settings with content": (OPENING + frame(SETTINGS, ACK, 0, b"123456"), SIZE),
    "push neither on nor off": (OPENING + frame(SETTINGS, 0, 0, b"\0\2\0\0\0\2"), PROTOCOL),
    "largest window": (OPENING + frame(SETTINGS, 0, 0, b"\0\4\x80\0\0\0"), FLOW),
    "small frames": (OPENING + frame(SETTINGS, 0, 0, b"\0\5\0\0\0\1"), PROTOCOL),
    "ping of a stream": (OPENING + frame(PING, 0, 1, b"12345678"), PROTOCOL),
    "short ping": (OPENING + frame(PING, 0, 0, b"1234567"), SIZE),
    "short reset": (OPENING + opening() + frame(RESET, 0, 1, b"123"), SIZE),
    "short window": (OPENING + frame(WINDOW, 0, 0, b"123"), SIZE),
    "window of 0": (OPENING + frame(WINDOW, 0, 0, WORD.pack(0)), PROTOCOL),
    "window overflow": (OPENING + frame(WINDOW, 0, 0, WORD.pack(2**31 - 1)), FLOW),
    "goaway of a stream": (OPENING + frame(GOAWAY, 0, 1, bytes(8)), PROTOCOL),
    "push of a client": (OPENING + opening() + frame(PUSH, 4, 1, bytes(4)), PROTOCOL),
    "priority of the connection": (OPENING + frame(PRIORITY, 0, 0, bytes(5)), PROTOCOL),
    "endless headers": (
        OPENING + opening(1, flags=0) + 5 * frame(CONTINUATION, 0, 1, bytes(16_000)), CALM),
    "many headers": (OPENING + opening(1, [*GOOD, *[(b"x", b"y" * 4000)] * 20]), CALM),
    "a flood of pings": (OPENING + 2001 * frame(PING, 0, 0, b"12345678"), CALM),
    "a flood of empty data": (OPENING + opening() + 2001 * frame(DATA, 0, 1), CALM),
}  # fmt: skip


@pytest.mark.parametrize("name", CONNECTION_ERRORS)
def test_a_connection_that_breaks_the_protocol_ends_with_the_right_code(name):
    said, code = CONNECTION_ERRORS[name]

    def scene():
        peer = Peer()
        assert (0, code) in codes(peer.says(said), GOAWAY)
        assert not peer.open
        assert peer.says(b"whatever comes after it") == []

    in_loop(scene)


def changed(name, value):
    return [(each, value if each == name else before) for each, before in GOOD]


STREAM_ERRORS = {
    "no path": (opening(1, [each for each in GOOD if each[0] != b":path"]), PROTOCOL),
    "empty path": (opening(1, changed(b":path", b"")), PROTOCOL),
    "two paths": (opening(1, [(b":path", b"/"), *GOOD]), PROTOCOL),
    "unknown pseudo-header": (opening(1, [(b":color", b"red"), *GOOD]), PROTOCOL),
    "pseudo-header after others": (opening(1, [(b"a", b"b"), *GOOD]), PROTOCOL),
    "answer's pseudo-header": (opening(1, [(b":status", b"200"), *GOOD]), PROTOCOL),
    "capital letters": (opening(1, [*GOOD, (b"X-A", b"b")]), PROTOCOL),
    "of the connection": (opening(1, [*GOOD, (b"connection", b"close")]), PROTOCOL),
    "other te": (opening(1, changed(b"te", b"gzip")), PROTOCOL),
    "headers twice": (opening() + opening(), PROTOCOL),
    "pseudo-header at the end": (
        opening() + opening(1, [(b":path", b"/")], END_HEADERS | END_STREAM), PROTOCOL),
    "window of 0": (opening() + frame(WINDOW, 0, 1, WORD.pack(0)), PROTOCOL),
    "window overflow": (opening() + frame(WINDOW, 0, 1, WORD.pack(2**31 - 1)), FLOW),
    "short priority": (opening() + frame(PRIORITY, 0, 1, b"1234"), SIZE),
}  # fmt: skip


@pytest.mark.parametrize("name", STREAM_ERRORS)
def test_a_stream_that_breaks_the_protocol_ends_alone(name):
    said, code = STREAM_ERRORS[name]

    def scene():
        peer = Peer()
        found = peer.says(OPENING + said)
        assert codes(found, RESET) == [(1, code)]
        assert codes(found, GOAWAY) == []
        assert works(peer, 3)

    in_loop(scene)


def works(peer, number):
    """Whether a call on a new stream is answered."""
    sent = opening(number) + frame(DATA, END_STREAM, number, message(b"hello"))
    found = [each for each in peer.says(sent) if each[2] == number]
    return [each[0] for each in found] == [HEADERS, DATA, HEADERS] and found[1][3].endswith(
        b"hello"
    )


def test_frames_may_come_in_any_pieces():
    def scene():
        sent = OPENING + opening() + frame(DATA, 0, 1, message(b"one")[:3])
        sent += frame(DATA, PADDED, 1, b"\x02" + message(b"one")[3:] + b"\0\0")
        sent += frame(77, 3, 99, b"nobody knows this kind") + frame(DATA, END_STREAM, 1)
        for piece in (None, 1, 7, 100):
            peer = Peer()
            found = [each for each in peer.says(sent, piece) if each[2] == 1]
            assert [each[0] for each in found] == [HEADERS, DATA, HEADERS]
            assert found[1][3] == message(b"one")
            assert peer.end.streams == {}

    in_loop(scene)


def test_repeated_headers_mean_the_same_until_the_table_changes():
    def scene():
        peer, encoder = Peer(), hpack.Encoder()
        peer.says(OPENING)
        number = 1
        for extra in ([], [], [], [(b"x-new", b"1")], [], [(b"x-new", b"2")], [], []):
            sent = encoder.encode([*GOOD, *extra])
            sent = frame(HEADERS, END_HEADERS, number, sent)
            sent += frame(DATA, END_STREAM, number, message(b"hi"))
            found = [each for each in peer.says(sent) if each[2] == number]
            assert [each[0] for each in found] == [HEADERS, DATA, HEADERS]
            number += 2

    in_loop(scene)


def test_answers_wait_for_the_peers_windows_and_arrive_whole():
    def scene():
        peer = Peer()
        small = frame(SETTINGS, 0, 0, frames.SETTING.pack(frames.INITIAL_WINDOW, 10))
        text = message(bytes(range(256)) * 300)
        found = peer.says(frames.PREFACE + small + opening())
        for at in range(0, len(text), 16_000):
            found += peer.says(frame(DATA, 0, 1, text[at : at + 16_000]))
        found += peer.says(frame(DATA, END_STREAM, 1))
        got = b"".join(each[3] for each in found if each[0] == DATA)
        assert got == text[:10]
        while len(got) < len(text):
            more = peer.says(frame(WINDOW, 0, 1, WORD.pack(9_999)))
            more += peer.says(frame(WINDOW, 0, 0, WORD.pack(9_999)))
            found += more
            got += b"".join(each[3] for each in more if each[0] == DATA)
        assert got == text
        assert found[-1][:2] == (HEADERS, END_HEADERS | END_STREAM)
        assert peer.end.streams == {}
        assert peer.end._waiting_bytes == 0

    in_loop(scene)


def test_a_connection_carries_any_number_of_bytes_within_its_windows():
    def scene():
        peer, room = Peer(), 1024 * 1024  # as its own settings and window say
        peer.says(OPENING)
        text, sent = message(bytes(16_000)), 0
        for number in range(1, 401, 2):
            assert room > len(text)
            found = peer.says(opening(number) + frame(DATA, END_STREAM, number, text))
            room += sum(WORD.unpack(c)[0] for kind, _, on, c in found if kind == WINDOW and not on)
            room -= len(text)
            sent += sum(len(content) for kind, _, _, content in found if kind == DATA)
            back = frame(WINDOW, 0, 0, WORD.pack(len(text)))
            assert codes(found + peer.says(back), GOAWAY) == []
        assert sent == 200 * len(text)
        assert peer.end.streams == {}

    in_loop(scene)


def test_a_peer_that_sends_more_than_its_window_is_stopped():
    def scene():
        peer = Peer(most_bytes=10**6)
        big = message(bytes(900_000))
        found = peer.says(OPENING + opening())
        for at in range(0, 400_000, 16_000):
            found += peer.says(frame(DATA, 0, 1, big[at : at + 16_000]))
        # The message is larger than what all calls together may hold.
        ended = [content for kind, flags, _, content in found if kind == HEADERS and flags & 1]
        assert len(ended) == 1
        assert hpack.Decoder().decode(ended[0])[2] == ("grpc-status", "8")
        assert peer.budget.held == 0
        assert works(peer, 3)

    in_loop(scene)


def test_streams_beyond_the_limit_are_refused_and_closed_ones_make_room():
    def scene():
        peer = Peer(streams=4)
        found = peer.says(OPENING + b"".join(opening(number) for number in (1, 3, 5, 7, 9)))
        assert codes(found, RESET) == [(9, REFUSED)]
        peer.says(frame(RESET, 0, 3, WORD.pack(8)))
        assert works(peer, 11)

    in_loop(scene)


def test_requests_that_are_no_calls_are_answered_with_a_status():
    def scene():
        peer = Peer()
        peer.says(OPENING)
        for number, fields, told in (
            (1, changed(b"content-type", b"text/plain"), (":status", "415")),
            (3, changed(b":method", b"GET"), (":status", "415")),
            (5, changed(b":path", b"/no.Such/Call"), ("grpc-status", "12")),
        ):
            found = peer.says(opening(number, fields, END_HEADERS | END_STREAM))
            [(kind, _, _, content)] = [each for each in found if each[2] == number]
            assert kind == HEADERS
            assert told in hpack.Decoder().decode(content)
        assert peer.end.streams == {}

    in_loop(scene)


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"\x01\0\0\0\x01x", "12"),  # compressed
        (b"\0\xff\xff\xff\xff", "8"),  # four gigabytes
        (b"\0\0\0\0\x09torn", "3"),
        (b"\0\0", "3"),
    ],
)
def test_messages_that_cannot_be_taken_end_their_call(sent, status):
    def scene():
        peer = Peer()
        found = peer.says(OPENING + opening() + frame(DATA, END_STREAM, 1, sent))
        last = [content for kind, flags, _, content in found if kind == HEADERS and flags & 1]
        assert ("grpc-status", status) in hpack.Decoder().decode(last[0])
        assert peer.end.streams == {}
        assert peer.budget.held == 0

    in_loop(scene)


NUMBERS = st.sampled_from([0, 1, 2, 3, 5, 7, 2**31 - 1])
CONTENT = st.one_of(
    st.binary(max_size=40),
    st.builds(block, st.lists(st.sampled_from([*GOOD, (b"X", b"1"), (b":x", b"")]), max_size=9)),
    st.sampled_from([message(b"hi"), WORD.pack(0), WORD.pack(2**31 - 1), WORD.pack(70_000), b""]),
)
FRAMES = st.one_of(
    st.builds(frame, st.integers(0, 12), st.integers(0, 255), NUMBERS, CONTENT),
    st.builds(opening, st.sampled_from([1, 3, 5, 7])),
    st.builds(frame, st.just(DATA), st.sampled_from([0, 1]), st.sampled_from([1, 3]), CONTENT),
    st.binary(max_size=30),
)


@settings(max_examples=400, deadline=None)
@given(st.lists(FRAMES, max_size=30), st.integers(1, 50))
def test_any_frames_leave_nothing_behind(said, piece):
    def scene():
        peer = Peer()
        peer.says(OPENING)
        peer.says(b"".join(said), piece)
        if peer.open:
            peer.end.connection_lost(None)
        assert peer.end.streams == {}
        assert peer.budget.held == 0
        assert all(call.stream.here_ended for call in peer.calls)

    in_loop(scene)
