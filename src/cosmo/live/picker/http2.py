"""The server's side of an HTTP/2 connection: streams, flow control, and bounds on what peers hold.

Python's general libraries take 85 to 120 µs of processor time for the frames of one request of an
endpoint picker (`benchmarks/picker.py` measures them); this takes a fifth of that, because it knows
no client's side, no push and no priorities, and answers with headers that never change.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any

from cosmo.live.picker import frames
from cosmo.live.picker.frames import (
    ACK,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    PRIORITISED,
    PRIORITY,
    PROTOCOL_ERROR,
    SETTINGS,
    USUAL_WINDOW,
    BrokenError,
    HeaderDecoder,
    Request,
    StreamError,
)
from cosmo.live.picker.http2_sending import (
    CONNECTION_WINDOW,
    OWN_WINDOW,
    Handler,
    OpenStreams,
    Sending,
    Stream,
)

_MOST_HEADERS = 65_536  # bytes of a request's headers
_MOST_IDLE_FRAMES = 2000  # in a second: frames that ask for work and bring none
_STREAMS_PER_FRAME = 200  # whose windows cost as much as a frame
_TURN_S = 0.004  # of a connection, before others have theirs
_GOODBYE = 0.5  # s that a peer has to read why its connection ends


Opened = Callable[[Stream, Request], Handler | None]  # None: the stream has been answered


class Http2Connection(Sending, asyncio.Protocol):
    """One connection of a peer."""

    def __init__(
        self,
        opened: Opened,
        most_streams: int,
        made: Callable[["Http2Connection"], bool],
        lost: Callable[["Http2Connection"], None],
        open_streams: OpenStreams | None = None,
    ) -> None:
        """`made` and `lost` hear of the connection's begin, which may be refused, and its end;
        `open_streams` counts those of all connections.
        """
        super().__init__(open_streams or OpenStreams())
        self._opened, self._made, self._lost = opened, made, lost
        self._most_streams = most_streams
        self._decoder = HeaderDecoder(_MOST_HEADERS)
        self._last = 0  # the highest stream that the peer has opened
        self._buffer = bytearray()
        self._preface = self._settings_seen = False
        self._block: tuple[int, int, bytearray] | None = None  # headers that go on: stream, flags
        self._draining = self._resting = self._stuck = self._paused = False
        self._idle_frames, self._idle_since = 0, 0.0
        self.heard_s = self.busy_s = time.monotonic()
        self.pinged = False

    # The connection.

    def connection_made(self, transport: Any) -> None:
        """Say what this side allows."""
        self.transport = transport
        if not self._made(self):
            self._closed = True
            transport.abort()
            return
        values = [
            (frames.MOST_STREAMS, self._most_streams),
            (frames.INITIAL_WINDOW, OWN_WINDOW),
            (frames.HEADER_LIST, _MOST_HEADERS),
        ]
        content = b"".join(frames.SETTING.pack(*each) for each in values)
        grown = frames.WORD.pack(CONNECTION_WINDOW - USUAL_WINDOW)
        transport.write(
            frames.frame(SETTINGS, 0, 0, content) + frames.frame(frames.WINDOW, 0, 0, grown)
        )

    def connection_lost(self, exc: Exception | None) -> None:
        """End what is open."""
        self._closed = True
        for stream in list(self.streams.values()):
            self._forget(stream)
        self._lost(self)

    def pause_writing(self) -> None:
        """A peer that does not read is not read either."""
        self._stuck = True
        self._read_or_not()

    def resume_writing(self) -> None:
        """The peer reads again: go on reading from it."""
        self._stuck = False
        self._read_or_not()

    def _read_or_not(self) -> None:
        pause = self._stuck or self._resting
        if self._closed or pause == self._paused:
            return
        self._paused = pause
        if pause:
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()

    def eof_received(self) -> None:
        """The peer sends no more: a proxy that is gone."""

    def drain(self) -> None:
        """Take no more streams; those that are open go on."""
        if not self._draining and not self._closed:
            self._draining = True
            self._goaway(frames.NO_ERROR, b"")

    def ping(self) -> None:
        """Ask whether the peer is there; `heard_s` moves if it is."""
        self.pinged = True
        self.write(frames.frame(frames.PING, 0, 0, b"areyouok"))

    def close(self, code: int = frames.NO_ERROR, why: str = "") -> None:
        """Say why, and hang up."""
        if not self._closed:
            self._closed = True
            self._goaway(code, why.encode()[:100])
            asyncio.get_running_loop().call_later(_GOODBYE, self.transport.abort)
            self.transport.close()

    def _goaway(self, code: int, why: bytes) -> None:
        content = frames.WORD.pack(self._last) + frames.WORD.pack(code) + why
        self._out.append(frames.frame(frames.GOAWAY, 0, 0, content))
        self._flush()

    # What comes.

    def data_received(self, data: bytes) -> None:
        """Frames, whole or in part."""
        if self._closed:
            return
        self.heard_s, self.pinged = time.monotonic(), False
        if self._resting:
            self._buffer += data
        else:
            self._take_turn(data)

    def _take_turn(self, data: bytes) -> None:
        self._reading = True
        try:
            self._read(data)
        except BrokenError as error:
            self.close(error.code, str(error))
        finally:
            self._reading = False
            if not self._closed:
                self._flush()

    def _go_on(self) -> None:
        """The rest of what has been received, after the others had their turn."""
        self._resting = False
        if not self._closed:
            self._take_turn(b"")
            self._read_or_not()

    def _read(self, data: bytes) -> None:
        until_s = time.monotonic() + _TURN_S
        if self._buffer:
            self._buffer += data
            data = bytes(self._buffer)
            self._buffer.clear()
        at, size = 0, len(data)
        if not self._preface:
            start = data[:24]
            if start != frames.PREFACE[: len(start)]:
                raise BrokenError(PROTOCOL_ERROR, "this is not HTTP/2")
            if size < 24:
                self._buffer += data
                return
            self._preface, at = True, 24
        while size - at >= 9:
            high, low, kind, flags, number = frames.HEAD.unpack_from(data, at)
            length = high << 16 | low
            if length > frames.USUAL_FRAME:
                raise BrokenError(frames.FRAME_SIZE_ERROR, "a frame is too large")
            end = at + 9 + length
            if end > size:
                break
            self._take(kind, flags, number & 0x7FFFFFFF, data[at + 9 : end])
            at = end
            if self._closed:
                return
            if time.monotonic() > until_s and at < size:
                self._resting = True
                self._read_or_not()
                asyncio.get_running_loop().call_soon(self._go_on)
                break
        if at < size:
            self._buffer += data[at:]

    def _take(self, kind: int, flags: int, number: int, content: bytes) -> None:
        if self._block is not None and (kind != CONTINUATION or number != self._block[0]):
            raise BrokenError(PROTOCOL_ERROR, "headers must go on")
        if not self._settings_seen and (kind != SETTINGS or flags & ACK):
            raise BrokenError(PROTOCOL_ERROR, "the first frame must be SETTINGS")
        try:
            if kind == DATA:
                self._take_data(flags, number, content)
            elif kind == HEADERS:
                self._take_headers(flags, number, content)
            elif kind == CONTINUATION:
                self._take_continuation(flags, content)
            elif kind == frames.WINDOW:
                self._take_window(number, content)
            else:
                self._take_rest(kind, flags, number, content)
        except StreamError as error:
            if error.code != frames.REFUSED_STREAM:
                self._count_idle()
            broken = self.streams.get(number)
            if broken is not None:
                self.reset(broken, error.code)
            else:
                self._send_reset(number, error.code, kind in (HEADERS, CONTINUATION))

    def _take_data(self, flags: int, number: int, content: bytes) -> None:
        size = len(content)
        self._unread -= size
        self._credit += size
        if self._unread < 0:
            raise BrokenError(frames.FLOW_CONTROL_ERROR, "more than the window of the connection")
        self._give_back_to_all()
        stream = self._open_stream(number)
        data, ended = frames.without_padding(flags, content), bool(flags & END_STREAM)
        if not data and not ended:
            self._count_idle()
        if stream is None:
            return
        if stream.there_ended:
            raise StreamError(frames.STREAM_CLOSED)
        stream.unread -= size
        stream.credit += size
        if stream.unread < 0:
            raise StreamError(frames.FLOW_CONTROL_ERROR)
        self._deliver(stream, data, ended)
        if stream.credit > OWN_WINDOW // 2 and not stream.pending:
            self._give_back(stream)

    def _deliver(self, stream: Stream, data: bytes, ended: bool) -> None:
        stream.there_ended = ended
        if stream.handler is not None:
            self._call(stream, stream.handler.received, data, ended)

    def _open_stream(self, number: int) -> Stream | None:
        """A stream of a frame; None if it has ended here; BrokenError if there never was one."""
        stream = self.streams.get(number)
        if stream is None and (number > self._last or not number & 1):
            raise BrokenError(PROTOCOL_ERROR, f"stream {number} is not open")
        return stream

    def _take_headers(self, flags: int, number: int, content: bytes) -> None:
        if not number & 1:
            raise BrokenError(PROTOCOL_ERROR, "streams of clients have odd numbers")
        block = frames.without_padding(flags, content)
        if flags & PRIORITISED:
            if len(block) < 5:
                raise BrokenError(
                    frames.FRAME_SIZE_ERROR, "headers without the priority they announce"
                )
            block = block[5:]
        if flags & END_HEADERS:
            self._take_block(flags, number, block)
        else:
            self._block = number, flags, bytearray(block)

    def _take_continuation(self, flags: int, content: bytes) -> None:
        if self._block is None:
            raise BrokenError(PROTOCOL_ERROR, "nothing is to be continued")
        number, first_flags, block = self._block
        block += content
        if len(block) > _MOST_HEADERS:
            raise BrokenError(frames.ENHANCE_YOUR_CALM, "too many headers")
        if not content:
            self._count_idle()
        if flags & END_HEADERS:
            self._block = None
            self._take_block(first_flags, number, bytes(block))

    def _take_block(self, flags: int, number: int, block: bytes) -> None:
        known, ended = self.streams.get(number), bool(flags & END_STREAM)
        if known is not None:
            self._decoder.trailers(block)
            if known.there_ended:
                raise StreamError(frames.STREAM_CLOSED)
            if not ended:
                raise StreamError(PROTOCOL_ERROR)
            self._deliver(known, b"", True)
            return
        if number in self._cut_off:  # sent before the peer knew of the reset (RFC 9113, 5.1)
            self._count_idle()
            self._decoder.skip(block)
            if ended:
                del self._cut_off[number]
            return
        if number <= self._last:
            raise BrokenError(frames.STREAM_CLOSED, f"stream {number} has ended")
        self._last = number
        request = self._decoder.request(block)
        if self._draining or len(self.streams) >= self._most_streams:
            raise StreamError(frames.REFUSED_STREAM)
        stream = Stream(self, number, self._initial)
        self.streams[number] = stream
        self.open_streams.add(self.peer, 1)
        stream.there_ended = ended
        stream.handler = self._opened(stream, request)
        if ended:
            self._deliver(stream, b"", True)

    def _take_window(self, number: int, content: bytes) -> None:
        if len(content) != 4:
            raise BrokenError(frames.FRAME_SIZE_ERROR, "a window update has 4 bytes")
        grown = frames.WORD.unpack(content)[0] & 0x7FFFFFFF
        if number == 0:
            self._grow(grown)
            return
        found = self._open_stream(number)
        if not grown:
            raise StreamError(PROTOCOL_ERROR)
        if found is not None:
            self._grow_stream(found, grown)

    def _take_rest(self, kind: int, flags: int, number: int, content: bytes) -> None:
        if kind in (SETTINGS, frames.PING, frames.GOAWAY) and number:
            raise BrokenError(PROTOCOL_ERROR, "a frame of the connection names a stream")
        if kind == frames.RESET:
            if len(content) != 4:
                raise BrokenError(frames.FRAME_SIZE_ERROR, "a reset has 4 bytes")
            stream = self._open_stream(number)
            if stream is not None:
                if stream.unread == OWN_WINDOW:  # opened, and ended without a word
                    self._count_idle()
                self._forget(stream)
            return
        self._count_idle()
        if kind == SETTINGS:
            self._take_settings(flags, content)
        elif kind == frames.PING:
            if len(content) != 8:
                raise BrokenError(frames.FRAME_SIZE_ERROR, "a ping has 8 bytes")
            if not flags & ACK:
                self.write(frames.frame(frames.PING, ACK, 0, content))
        elif kind == PRIORITY:
            if not number:
                raise BrokenError(PROTOCOL_ERROR, "the connection has no priority")
            if len(content) != 5:
                raise StreamError(frames.FRAME_SIZE_ERROR)
        elif kind == frames.PUSH:
            raise BrokenError(PROTOCOL_ERROR, "clients do not push")

    def _take_settings(self, flags: int, content: bytes) -> None:
        if len(content) % 6 or (flags & ACK and content):
            raise BrokenError(frames.FRAME_SIZE_ERROR, "settings have 6 bytes each")
        self._settings_seen = True
        if flags & ACK:
            return
        window = self._settle(content)
        if window != self._initial:
            self._count_idle(len(self.streams) // _STREAMS_PER_FRAME)
            self._change_initial(window)
        self.write(frames.frame(SETTINGS, ACK, 0))

    def _count_idle(self, count: int = 1) -> None:
        """Frames without any request in them: a peer that sends little else is cut off."""
        if self.heard_s - self._idle_since >= 1.0:
            self._idle_frames, self._idle_since = 0, self.heard_s
        self._idle_frames += count
        if self._idle_frames > _MOST_IDLE_FRAMES:
            raise BrokenError(frames.ENHANCE_YOUR_CALM, "too many frames without a request")
