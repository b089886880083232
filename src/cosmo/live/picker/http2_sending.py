"""What a server sends on an HTTP/2 connection: frames, as far as its peer has room for them."""

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from cosmo.live.picker import frames
from cosmo.live.picker.frames import (
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    USUAL_WINDOW,
    BrokenError,
    StreamError,
)

OWN_WINDOW = 262_144  # bytes of a stream that peers may send before they are read
CONNECTION_WINDOW = 1024 * 1024  # the same of all streams together
_MOST_PENDING = 1024 * 1024  # bytes of a stream that its peer has no window for
_MOST_CUT_OFF = 1000  # streams whose reset a peer may not have seen yet
_RESERVED = _SHARE = 0.25  # of all streams: what is left for peers that have less than a share


class Handler(Protocol):
    """What a stream is for."""

    def received(self, data: bytes, ended: bool) -> None:
        """The next bytes of the request's body; `ended`: the peer sends no more."""
        ...

    def closed(self) -> None:
        """The stream is over; said once, however it has ended."""
        ...


class OpenStreams:
    """How many streams are open, of all connections together and of each peer."""

    def __init__(self) -> None:
        self.total = 0
        self._of: dict[str, int] = {}

    def room_for(self, peer: str, most: int) -> bool:
        """Whether a peer may have the one that it has just opened: the last quarter of all is for
        those who have less than a quarter, so that nobody can hold all of them.
        """
        kept = int(_RESERVED * most) if self._of.get(peer, 0) > _SHARE * most else 0
        return self.total <= most - kept

    def add(self, peer: str, change: int) -> None:
        """One more, or one less."""
        self.total += change
        self._of[peer] = own = self._of.get(peer, 0) + change
        if not own:
            del self._of[peer]


class Stream:
    """One request, from its headers to the end of both directions."""

    __slots__ = ("connection", "credit", "handler", "here_ended", "id", "pending", "there_ended",
                 "trailers", "unread", "window")  # fmt: skip

    def __init__(self, connection: "Sending", number: int, window: int) -> None:
        self.connection, self.id, self.window = connection, number, window
        self.unread = OWN_WINDOW  # that the peer may still send
        self.credit = 0  # bytes that were read and not given back yet
        self.pending = bytearray()  # what waits for the peer's window
        self.trailers = b""  # what comes after that
        self.here_ended = self.there_ended = False
        self.handler: Handler | None = None

    def send(self, data: bytes) -> None:
        """More of the answer's body."""
        if not self.here_ended:
            self.connection.send_data(self, data)

    def start(self, block: bytes) -> None:
        """The answer's headers, as `header_block` makes them."""
        self.connection.write(frames.frame(HEADERS, END_HEADERS, self.id, block))

    def end(self, block: bytes) -> None:
        """The answer's last headers; nothing comes after them."""
        if not self.here_ended:
            self.connection.end(self, block)

    def reset(self, code: int = frames.CANCEL) -> None:
        """End the stream at once."""
        self.connection.reset(self, code)


class Sending:
    """The streams of a connection, and all that leaves it."""

    transport: Any
    heard_s: float  # when the peer was last heard of
    busy_s: float  # when it last had a stream
    peer = ""  # who it is, as far as limits go
    place = ""  # the same, with its port

    def __init__(self, open_streams: OpenStreams) -> None:
        self.open_streams = open_streams
        self.streams: dict[int, Stream] = {}
        self._window = self._initial = USUAL_WINDOW  # of the peer: the connection's, a new stream's
        self._frame_size = frames.USUAL_FRAME
        self._out: list[bytes] = []
        self._reading = self._closed = False
        self._unread, self._credit = CONNECTION_WINDOW, 0  # as those of a stream
        self._waiting_bytes = 0  # of all streams, that the peer has no window for
        self._cut_off: dict[int, None] = {}  # streams that were reset here, the latest of them

    def write(self, data: bytes) -> None:
        """Frames; those of one reading leave together."""
        self._out.append(data)
        if not self._reading:
            self._flush()

    def _flush(self) -> None:
        if self._out:
            out, self._out = self._out, []
            self.transport.write(b"".join(out))

    def send_data(self, stream: Stream, data: bytes) -> None:
        """DATA frames, as far as the peer has room for them."""
        size = len(data)
        if not size:
            return
        if not stream.pending and size <= min(stream.window, self._window, self._frame_size):
            stream.window -= size
            self._window -= size
            self.write(frames.frame(DATA, 0, stream.id, data))
            return
        stream.pending += data
        self._waiting_bytes += size
        if len(stream.pending) > _MOST_PENDING:
            self.reset(stream, frames.ENHANCE_YOUR_CALM)
            return
        self._send_pending(stream)

    def _send_pending(self, stream: Stream) -> None:
        while stream.pending:
            room = min(stream.window, self._window, self._frame_size)
            if room <= 0:
                return
            part = bytes(stream.pending[:room])
            del stream.pending[:room]
            stream.window -= len(part)
            self._window -= len(part)
            self._waiting_bytes -= len(part)
            self.write(frames.frame(DATA, 0, stream.id, part))
        if stream.trailers:
            self._finish(stream, stream.trailers)
        else:
            self._give_back(stream)

    def end(self, stream: Stream, block: bytes) -> None:
        """Trailers, after all that waits."""
        stream.here_ended = True
        if stream.pending:
            stream.trailers = block
        else:
            self._finish(stream, block)

    def _finish(self, stream: Stream, block: bytes) -> None:
        stream.here_ended = True
        self.write(frames.frame(HEADERS, END_HEADERS | END_STREAM, stream.id, block))
        if stream.there_ended:
            self._forget(stream)
        elif self.streams.get(stream.id) is stream:  # gRPC: the peer need not send the rest
            self.reset(stream, frames.NO_ERROR)

    def reset(self, stream: Stream, code: int) -> None:
        """End a stream at once."""
        stream.here_ended = True
        if self.streams.get(stream.id) is stream:
            if not self._closed:
                self._send_reset(stream.id, code, not stream.there_ended)
            self._forget(stream)

    def _send_reset(self, number: int, code: int, more: bool) -> None:
        """`more`: the peer may have sent more on that stream, before it knows."""
        self.write(frames.frame(frames.RESET, 0, number, frames.WORD.pack(code)))
        if more:
            self._cut_off[number] = None
            if len(self._cut_off) > _MOST_CUT_OFF:
                del self._cut_off[next(iter(self._cut_off))]

    def _forget(self, stream: Stream) -> None:
        """A stream is over: whoever has it hears so, and whatever it held is given back."""
        if self.streams.pop(stream.id, None) is None:
            return
        self.open_streams.add(self.peer, -1)
        self._waiting_bytes -= len(stream.pending)
        stream.pending.clear()
        self.busy_s = self.heard_s
        handler, stream.handler = stream.handler, None
        stream.here_ended = True
        if handler is not None:
            self._call(stream, handler.closed)

    def _call(self, stream: Stream, function: Callable[..., None], *given: Any) -> None:
        """Call a handler; what it raises ends its own stream, and no other of the connection."""
        try:
            function(*given)
        except Exception as error:
            told = {"message": "a call of a proxy has failed", "exception": error}
            asyncio.get_running_loop().call_exception_handler(told)
            self.reset(stream, frames.INTERNAL_ERROR)

    # Windows and settings of the peer.

    def _grow(self, grown: int) -> None:
        """The peer takes so many bytes more."""
        self._window += grown
        if not grown or self._window > frames.LARGEST_WINDOW:
            code = frames.FLOW_CONTROL_ERROR if grown else frames.PROTOCOL_ERROR
            raise BrokenError(code, "no such window")
        waiting = self.streams.values() if self._waiting_bytes else ()
        for stream in [each for each in waiting if each.pending]:
            self._send_pending(stream)
        self._give_back_to_all()

    def _grow_stream(self, stream: Stream, grown: int) -> None:
        stream.window += grown
        if stream.window > frames.LARGEST_WINDOW:
            raise StreamError(frames.FLOW_CONTROL_ERROR)
        self._send_pending(stream)
        self._give_back_to_all()

    def _settle(self, content: bytes) -> int:
        """Obey settings; the window that streams begin with from now on."""
        window = self._initial
        for name, value in frames.SETTING.iter_unpack(content):
            if name == frames.INITIAL_WINDOW:
                if value > frames.LARGEST_WINDOW:
                    raise BrokenError(frames.FLOW_CONTROL_ERROR, "no such window")
                window = value
            elif name == frames.FRAME_SIZE:
                if not frames.USUAL_FRAME <= value < 2**24:
                    raise BrokenError(frames.PROTOCOL_ERROR, "no such size of frames")
                self._frame_size = min(value, 2**20)
            elif name == frames.ENABLE_PUSH and value > 1:
                raise BrokenError(frames.PROTOCOL_ERROR, "push is on or off")
        return window

    def _change_initial(self, value: int) -> None:
        grown, self._initial = value - self._initial, value
        for stream in list(self.streams.values()):
            stream.window += grown
            if stream.window > frames.LARGEST_WINDOW:
                raise BrokenError(frames.FLOW_CONTROL_ERROR, "no such window")
            if grown > 0 and stream.pending:
                self._send_pending(stream)

    # This side's own windows.

    def _give_back(self, stream: Stream) -> None:
        """Let the peer send more, once what it has sent has gone on."""
        if stream.credit > OWN_WINDOW // 2 and not stream.there_ended:
            content = frames.WORD.pack(stream.credit)
            self.write(frames.frame(frames.WINDOW, 0, stream.id, content))
            stream.unread += stream.credit
            stream.credit = 0

    def _give_back_to_all(self) -> None:
        """The same for the connection. What comes goes back on full-duplex streams: a peer that
        does not take it sends no more.
        """
        if self._credit > CONNECTION_WINDOW // 2 and self._waiting_bytes < CONNECTION_WINDOW:
            self.write(frames.frame(frames.WINDOW, 0, 0, frames.WORD.pack(self._credit)))
            self._unread += self._credit
            self._credit = 0
