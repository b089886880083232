"""HTTP/2 by hand, for what no client library would send, or would hide from who uses it."""

import asyncio
from collections.abc import AsyncIterator

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RESET, SETTINGS, PING = 0, 1, 3, 4, 6
END_STREAM, END_HEADERS, ACK = 1, 4, 1
TRUE_BINARY = 0xFE03  # gRPC's own setting: metadata that ends in -bin need not be text


def frame(kind: int, flags: int, stream: int, content: bytes = b"") -> bytes:
    """One frame."""
    head = len(content).to_bytes(3, "big") + bytes([kind, flags])
    return head + stream.to_bytes(4, "big") + content


def settings(**values: int) -> bytes:
    """`id_65027=1` sets what has that number."""
    pairs = [(int(name.removeprefix("id_")), value) for name, value in values.items()]
    content = b"".join(n.to_bytes(2, "big") + value.to_bytes(4, "big") for n, value in pairs)
    return frame(SETTINGS, 0, 0, content)


def _text(text: str) -> bytes:
    assert len(text) < 127
    return bytes([len(text)]) + text.encode()


def headers(stream: int, path: str, **metadata: str) -> bytes:
    """The headers of a gRPC call, all of them literal."""
    told = {
        ":method": "POST",
        ":scheme": "http",
        ":path": path,
        ":authority": "here",
        "te": "trailers",
        "content-type": "application/grpc",
        **{name.replace("_", "-"): value for name, value in metadata.items()},
    }
    block = b"".join(b"\0" + _text(name) + _text(value) for name, value in told.items())
    return frame(HEADERS, END_HEADERS, stream, block)


def message(content: bytes) -> bytes:
    """With the five bytes that gRPC puts before it."""
    return b"\0" + len(content).to_bytes(4, "big") + content


class Raw:
    """A connection that says whatever it is told to."""

    def __init__(self, address: str) -> None:
        self._host, _, self._port = address.rpartition(":")

    async def __aenter__(self) -> "Raw":
        self._reader, self._writer = await asyncio.open_connection(self._host, int(self._port))
        return self

    async def __aexit__(self, *_: object) -> None:
        self._writer.close()

    async def send(self, *pieces: bytes) -> None:
        """Frames, or anything else."""
        for piece in pieces:
            self._writer.write(piece)
        await self._writer.drain()

    async def frames(self) -> AsyncIterator[tuple[int, int, int, bytes]]:
        """(kind, flags, stream, content) of all that comes until the other end hangs up."""
        while True:
            try:
                head = await self._reader.readexactly(9)
                content = await self._reader.readexactly(int.from_bytes(head[:3], "big"))
                if (head[3], head[4] & ACK) == (SETTINGS, 0):
                    await self.send(frame(SETTINGS, ACK, 0))
                elif (head[3], head[4] & ACK) == (PING, 0):
                    await self.send(frame(PING, ACK, 0, content))
            except (asyncio.IncompleteReadError, ConnectionError):
                return
            yield head[3], head[4], int.from_bytes(head[5:], "big"), content

    async def until_end(self, stream: int) -> list[tuple[int, bytes]]:
        """(kind, content) of the frames of a stream until its end."""
        found = []
        async for kind, flags, number, content in self.frames():
            if number == stream:
                found.append((kind, content))
                if kind == RESET or (kind in (DATA, HEADERS) and flags & END_STREAM):
                    break
        return found


def literal(block: bytes, name: str) -> bytes | None:
    """The value of a header that was sent as it is, not compressed; None if there is none."""
    at = block.find(name.encode())
    if at < 0:
        return None
    at += len(name)
    length, at = block[at], at + 1
    assert length < 128, "Huffman's code is not read here"
    if length == 127:
        shift = 0
        while True:
            length += (block[at] & 127) << shift
            at, shift = at + 1, shift + 7
            if block[at - 1] < 128:
                break
    return block[at : at + length]
