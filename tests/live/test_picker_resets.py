"""What a peer had sent on a stream before it saw that the picker has reset it (RFC 9113, 5.1)."""

import hpack
import pytest

from cosmo.live.picker.frames import (
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    INITIAL_WINDOW,
    PREFACE,
    RESET,
    SETTING,
    SETTINGS,
    frame,
)
from cosmo.live.picker.grpc_calls import message
from live.test_picker_http2 import (
    CALM,
    CLOSED,
    OPENING,
    REFUSED,
    Peer,
    block,
    codes,
    in_loop,
    opening,
    works,
)

TRAILERS = block([(b"x-late", b"1")])


def late(number, ended=True):
    return frame(HEADERS, END_HEADERS | (END_STREAM if ended else 0), number, TRAILERS)


def reset_by_the_picker(peer):
    """Stream 9 is refused, as one too many."""
    found = peer.says(OPENING + b"".join(opening(number) for number in (1, 3, 5, 7, 9)))
    assert codes(found, RESET) == [(9, REFUSED)]


@pytest.mark.parametrize(
    "said",
    [
        late(9),
        late(9, ended=False) + late(9),
        frame(DATA, 0, 9, b"12345") + late(9),
        frame(HEADERS, END_STREAM, 9, TRAILERS[:2])
        + frame(CONTINUATION, END_HEADERS, 9, TRAILERS[2:]),
    ],
    ids=["trailers", "twice", "after data", "in two frames"],
)
def test_headers_on_a_stream_that_was_reset_are_ignored(said):
    def scene():
        peer = Peer(streams=4)
        reset_by_the_picker(peer)
        found = peer.says(said)
        assert codes(found, GOAWAY) == codes(found, RESET) == []
        peer.says(frame(RESET, 0, 1, bytes(4)))
        assert works(peer, 11)

    in_loop(scene)


def test_an_open_stream_that_the_picker_ends_is_such_a_stream_too():
    def scene():
        peer = Peer()
        peer.says(OPENING + opening(1))
        peer.calls[0].stream.reset()
        peer.taken()
        assert peer.says(late(1)) == []
        assert works(peer, 3)

    in_loop(scene)


def test_names_that_late_headers_add_to_the_table_stay_known():
    def scene():
        peer, encoder = Peer(streams=4), hpack.Encoder()
        reset_by_the_picker(peer)
        added = encoder.encode([(b"x-late", b"again and again")])
        peer.says(frame(HEADERS, END_HEADERS, 9, added))
        referred = encoder.encode([(b"x-late", b"again and again")])
        assert len(referred) < len(added)
        assert peer.says(frame(HEADERS, END_HEADERS | END_STREAM, 9, referred)) == []

    in_loop(scene)


def test_a_stream_that_both_have_ended_is_over():
    def scene():
        peer = Peer(streams=4)
        reset_by_the_picker(peer)
        peer.says(late(9))
        assert codes(peer.says(late(9)), GOAWAY) == [(0, CLOSED)]

    in_loop(scene)


def test_headers_that_go_on_after_their_stream_has_ended_open_none():
    def scene():
        peer = Peer()
        no_window = frame(SETTINGS, 0, 0, SETTING.pack(INITIAL_WINDOW, 0))
        peer.says(PREFACE + no_window + opening(1) + opening(3))
        peer.says(frame(DATA, END_STREAM, 1, message(b"which waits")))
        peer.says(opening(1, flags=0))
        peer.calls[0].stream.reset()  # the peer has ended it, too
        found = peer.says(frame(CONTINUATION, END_HEADERS, 1))
        assert codes(found, GOAWAY) == [(0, CLOSED)]
        assert len(peer.calls) == 2

    in_loop(scene)


def test_a_flood_on_a_stream_that_was_reset_ends_the_connection():
    def scene():
        peer = Peer(streams=4)
        reset_by_the_picker(peer)
        assert codes(peer.says(late(9, ended=False) * 2100), GOAWAY) == [(0, CALM)]

    in_loop(scene)
