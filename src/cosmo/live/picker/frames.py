"""HTTP/2 as far as a server of gRPC needs it (RFC 9113): frames, errors, and requests from headers.

Header compression is that of the library `hpack`.
"""

import struct
from functools import lru_cache
from typing import NamedTuple

import hpack

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEAD = struct.Struct(">BHBBL")  # length in two parts, type, flags, stream
SETTING = struct.Struct(">HL")
WORD = struct.Struct(">L")

DATA, HEADERS, PRIORITY, RESET, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = range(10)
END_STREAM = ACK = 0x1
END_HEADERS, PADDED, PRIORITISED = 0x4, 0x8, 0x20

TABLE_SIZE, ENABLE_PUSH, MOST_STREAMS, INITIAL_WINDOW, FRAME_SIZE, HEADER_LIST = range(1, 7)

NO_ERROR, PROTOCOL_ERROR, INTERNAL_ERROR, FLOW_CONTROL_ERROR = 0, 1, 2, 3
STREAM_CLOSED, FRAME_SIZE_ERROR, REFUSED_STREAM, CANCEL = 5, 6, 7, 8
COMPRESSION_ERROR, ENHANCE_YOUR_CALM = 9, 11

LARGEST_WINDOW = 2**31 - 1
USUAL_WINDOW, USUAL_FRAME = 65_535, 16_384
_CONNECTION_FIELDS = {b"connection", b"proxy-connection", b"keep-alive", b"transfer-encoding",
                      b"upgrade"}  # fmt: skip
_PSEUDO = {b":method", b":scheme", b":path", b":authority"}
_NEEDED = {b":method", b":scheme", b":path"}
_UPPER = frozenset(range(ord("A"), ord("Z") + 1))


class BrokenError(Exception):
    """The peer breaks the protocol, so that its connection has to end."""

    def __init__(self, code: int, why: str) -> None:
        super().__init__(why)
        self.code = code


class StreamError(Exception):
    """The same for a single stream."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Request(NamedTuple):
    """The headers of a request."""

    path: bytes
    headers: dict[bytes, bytes]  # the last of a name; pseudo-headers among them


def frame(kind: int, flags: int, stream: int, content: bytes = b"") -> bytes:
    """The bytes of an HTTP/2 frame: its head of 9 bytes, then the content."""
    size = len(content)
    return HEAD.pack(size >> 16, size & 0xFFFF, kind, flags, stream) + content


def without_padding(flags: int, content: bytes) -> bytes:
    """The content of a DATA or HEADERS frame; BrokenError if it is all padding and more."""
    if not flags & PADDED:
        return content
    if not content or content[0] >= len(content):
        raise BrokenError(PROTOCOL_ERROR, "more padding than content")
    return content[1 : len(content) - content[0]]


class HeaderDecoder:
    """Header blocks of one connection as requests.

    Proxies repeat themselves: a block that consists of references into the table alone, each of one
    byte, means the same until another kind of block comes, and is decoded once.
    """

    def __init__(self, most_bytes: int) -> None:
        self._decoder = hpack.Decoder(max_header_list_size=most_bytes)
        self._known: dict[bytes, Request] = {}

    def request(self, block: bytes) -> Request:
        """The request of a header block; BrokenError or StreamError if there is none in it."""
        found = self._known.get(block)
        if found is None:
            repeats = bool(block) and min(block) > 0x80 and max(block) < 0xFF
            if not repeats:
                self._known.clear()
            found = _request(self.fields(block))
            if repeats and len(self._known) < 64:
                self._known[block] = found
        return found

    def fields(self, block: bytes) -> list[tuple[bytes, bytes]]:
        """Names and values; the table follows, so every block must go through here."""
        try:
            return list(self._decoder.decode(block, raw=True))
        except hpack.OversizedHeaderListError:
            raise BrokenError(ENHANCE_YOUR_CALM, "too many headers") from None
        except Exception as error:  # whatever the library finds wrong
            raise BrokenError(COMPRESSION_ERROR, f"headers ({type(error).__name__})") from None

    def skip(self, block: bytes) -> list[tuple[bytes, bytes]]:
        """A block that is no request: its fields, for the table alone."""
        self._known.clear()
        return self.fields(block)

    def trailers(self, block: bytes) -> None:
        """Headers at the end of a stream, which nobody reads."""
        for name, _ in self.skip(block):
            _check_name(name)
            if name.startswith(b":"):
                raise StreamError(PROTOCOL_ERROR)


def _check_name(name: bytes) -> None:
    if not name or not _UPPER.isdisjoint(name) or name in _CONNECTION_FIELDS:
        raise StreamError(PROTOCOL_ERROR)


def _request(fields: list[tuple[bytes, bytes]]) -> Request:
    """RFC 9113, 8.2 and 8.3."""
    found: dict[bytes, bytes] = {}
    regular = False
    for name, value in fields:
        _check_name(name)
        if name[0] == ord(":"):
            if regular or name in found or name not in _PSEUDO:
                raise StreamError(PROTOCOL_ERROR)
        else:
            regular = True
            if name == b"te" and value != b"trailers":
                raise StreamError(PROTOCOL_ERROR)
        found[name] = value
    if not found.keys() >= _NEEDED or not found[b":path"]:
        raise StreamError(PROTOCOL_ERROR)
    return Request(found[b":path"], found)


@lru_cache(maxsize=256)
def header_block(*fields: tuple[str, str]) -> bytes:
    """Headers in a form that uses no table, so that it is the same on every connection."""
    never = [hpack.NeverIndexedHeaderTuple(name.encode(), value.encode()) for name, value in fields]
    return bytes(hpack.Encoder().encode(never, huffman=False))
