"""Pages of HTTP/1.1 servers: how an answer is framed, and one page asked for again and again.

Everything that a server sends is bounded: its head by the reader's limit, its body by the caller.
"""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncGenerator
from urllib.parse import urlsplit

_PIECE = 65_536


class PageError(OSError):
    """A server cannot be asked, says no, or sends what is no HTTP."""


async def headers_of(reader: asyncio.StreamReader) -> dict[str, str]:
    """The headers of an answer with status 200, by their names in lower case.

    Raises PageError for another answer.
    """
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        raise PageError("the connection was closed") from None
    except asyncio.LimitOverrunError:
        raise PageError("the headers are too long") from None
    first, *lines = head.split("\r\n")
    words = first.split(maxsplit=2)
    if len(words) < 2 or not words[0].startswith("HTTP/1."):
        raise PageError("this is no HTTP/1.1")
    if words[1] != "200":
        raise PageError(f"status {words[1][:20]}")
    found = (line.partition(":") for line in lines)
    return {name.lower(): value.strip().lower() for name, _, value in found}


async def body_of(
    reader: asyncio.StreamReader, headers: dict[str, str]
) -> AsyncGenerator[bytes, None]:
    """The body that follows such headers, in pieces of at most 64 KiB; PageError if it is torn."""
    try:
        if headers.get("transfer-encoding") == "chunked":
            while size := int((await reader.readline()).split(b";")[0], 16):
                async for piece in _exactly(reader, size):
                    yield piece
                await reader.readexactly(2)
            await reader.readline()
        elif "content-length" in headers:
            async for piece in _exactly(reader, int(headers["content-length"])):
                yield piece
        else:
            while piece := await reader.read(_PIECE):
                yield piece
    except (asyncio.IncompleteReadError, ValueError):
        raise PageError("the answer is not whole") from None


async def _exactly(reader: asyncio.StreamReader, size: int) -> AsyncGenerator[bytes, None]:
    if size < 0:
        raise ValueError(size)
    while size:
        piece = await reader.read(min(size, _PIECE))
        if not piece:
            raise asyncio.IncompleteReadError(b"", size)
        size -= len(piece)
        yield piece


class Page:
    """One page, over a connection that is kept for as long as the server keeps it."""

    def __init__(
        self, url: str, most_bytes: int, encrypted: ssl.SSLContext | None = None, name: str = ""
    ) -> None:
        """`encrypted` is for https; `name` must be in the server's certificate, empty: its host."""
        place = urlsplit(url)
        self._ssl, self._name = encrypted, None
        if encrypted is not None:
            self._name = name or place.hostname
        self._host = place.hostname or ""
        self._port = place.port or (80 if encrypted is None else 443)
        path = f"{place.path or '/'}?{place.query}" if place.query else place.path or "/"
        self._asking = f"GET {path} HTTP/1.1\r\nHost: {place.netloc}\r\n\r\n".encode()
        self._most_bytes = most_bytes
        self._open: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def text(self) -> str:
        """The page as it is now; OSError (of which TimeoutError and PageError are kinds) if it
        cannot be had.
        """
        whole = False
        try:
            found = await self._fetched()
            whole = True
            return found
        finally:
            if not whole:  # what is left of an answer would be taken for the next
                self.close()

    async def _fetched(self) -> str:
        if self._open is None or self._open[0].at_eof():
            self.close()
            self._open = await asyncio.open_connection(
                self._host, self._port, ssl=self._ssl, server_hostname=self._name
            )
        reader, writer = self._open
        writer.write(self._asking)
        headers, found = await headers_of(reader), bytearray()
        async with contextlib.aclosing(body_of(reader, headers)) as pieces:
            async for piece in pieces:
                found += piece
                await asyncio.sleep(0)  # others have their turn, however much is there
                if len(found) > self._most_bytes:
                    raise PageError(f"more than {self._most_bytes} bytes")
        ended_by_close = not {"content-length", "transfer-encoding"} & headers.keys()
        if headers.get("connection") == "close" or ended_by_close:
            self.close()
        return found.decode("utf-8", "replace")

    def close(self) -> None:
        """Close the connection to the page's server."""
        if self._open is not None:
            self._open[1].close()
            self._open = None
