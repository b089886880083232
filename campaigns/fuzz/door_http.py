"""The door of an EN's HTTP port: bytes of a client, and bytes of the service behind it.

The service reads requests by its own strict rules: whatever it is sent must be whole requests, and
not more of them than the EN has decided on.
"""

import asyncio
import io
import re
from pathlib import Path
from typing import Any

from cosmo.live.config import changed_config, load_config
from cosmo.live.logs import Log
from cosmo.live.serving import Serving

SAID, ANSWERED = "said", "answered"  # the files that the door reads
GOOD_REQUEST = b"GET /good HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
GOOD_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood"
_PATIENCE_S = 0.3  # for a client that sends no more, and a service that does not answer
_ENDS_S = 8.0  # after which nothing may be left of any of that
_HEAD = re.compile(
    rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+ (?:/[^\s]*|\*) HTTP/1\.1\r\n"
    rb"(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\r\n\0]*\r\n)*\r\n"
)
_OF_CONNECTIONS = {b"te", b"upgrade", b"proxy-connection", b"keep-alive", b"trailer"}


class _Service:
    """Gives the same answer to every request, and hangs up unless that is a good one."""

    def __init__(self, answer: bytes) -> None:
        self.answer, self.seen, self.wrong = answer, 0, ""
        self.port = 0

    async def __aenter__(self) -> "_Service":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: Any) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_ENDS_S):
                while True:
                    await self._read(reader)
                    answer = self.answer
                    writer.write(answer)
                    await writer.drain()
                    if answer != GOOD_ANSWER:
                        break
        except (asyncio.IncompleteReadError, ConnectionError, TimeoutError):
            pass  # a client that did not send all of its request
        except (ValueError, asyncio.LimitOverrunError) as error:
            self.wrong = self.wrong or f"the service cannot read its request: {error}"
        finally:
            writer.close()

    async def _read(self, reader: asyncio.StreamReader) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.seen += 1
        if not _HEAD.fullmatch(head):
            raise ValueError(head[:200])
        fields = [line.split(b":", 1) for line in head.split(b"\r\n")[1:-2]]
        names = [name.lower() for name, _ in fields]
        values = {name.lower(): value.strip().lower() for name, value in fields}
        if _OF_CONNECTIONS & set(names):
            raise ValueError("a header of the client's connection")
        if names.count(b"content-length") + names.count(b"transfer-encoding") > 1:
            raise ValueError("two lengths")
        if values.get(b"transfer-encoding") == b"chunked":
            while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
                if (await reader.readexactly(size + 2))[-2:] != b"\r\n":
                    raise ValueError("a piece without an end")
            while await reader.readuntil(b"\r\n") != b"\r\n":
                pass
        else:
            await reader.readexactly(int(values.get(b"content-length", b"0")))


async def _told(port: int, content: bytes, patience_s: float) -> bytes:
    """All that is answered, until the EN hangs up or nothing more comes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    found = b""
    try:
        writer.write(content)
        while True:
            async with asyncio.timeout(patience_s):
                piece = await reader.read(65_536)
            if not piece:
                return found
            found += piece
    except (TimeoutError, ConnectionError):
        return found
    finally:
        writer.transport.abort()


def _config(port: int) -> Any:
    peer = load_config("en").peers[0].model_dump()
    fields = {
        "listen": "127.0.0.1:0", "http.listen": "127.0.0.1:0", "method.use": "in-flight",
        "http.deadline_ms": 500.0, "http.idle_s": 0.5, "limits.receive_s": 0.2,
        "limits.idle_s": 0.1, "limits.input_bytes": 100_000,
        "peers": [{**peer, "name": "sn0", "address": "", "http": f"127.0.0.1:{port}"}],
    }  # fmt: skip
    return changed_config(load_config("en"), fields)


async def http() -> str:
    """Say the bytes of this folder to an EN; why nothing was taken, empty if something was."""
    faults: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, told: faults.append(told))
    log = io.StringIO()
    async with _Service(Path(ANSWERED).read_bytes()) as service:
        serving = Serving(_config(service.port), Log("en", "warning", log))
        node: Any = serving.node
        listener: Any = serving._listener
        try:
            await listener.start()
            timers = len(serving.clock._heap)
            answered = await _told(listener.http_port, Path(SAID).read_bytes(), _PATIENCE_S)
            async with asyncio.timeout(_ENDS_S):
                while node.in_flight:
                    await asyncio.sleep(0.005)
            decided, seen = node.core._numbers, service.seen
            service.answer = GOOD_ANSWER
            node.core._away_until.clear()  # a service that failed is left alone for a while
            node.core._shut_again()
            good = await _told(listener.http_port, GOOD_REQUEST, _ENDS_S)
            assert good.startswith(b"HTTP/1.1 200 "), f"a good request after it: {good[:100]!r}"
            assert good.endswith(b"good"), f"a good request after it: {good[-100:]!r}"
            assert not service.wrong, service.wrong
            # A request without a body may be asked again if its answer was none.
            most = decided if Path(ANSWERED).read_bytes() == GOOD_ANSWER else 2 * decided
            assert seen <= most, f"{seen} requests of {decided} at the service"
            left = node.in_flight, sum(node.core.open)
            assert left == (0, 0), f"left behind: {left}"
            live = [each for each in serving.clock._heap if each[2].call is not None]
            assert len(live) <= timers, "timers are left behind"
            assert "a request has failed" not in log.getvalue(), log.getvalue()[:500]
            assert not faults, faults[0]
        finally:
            await serving.stop(0)
    head = answered.partition(b"\r\n\r\n")[0]
    assert not answered or re.match(rb"HTTP/1\.[01] \d{3}[ \r]", head), f"answered {head[:100]!r}"
    status = int(head[9:12] or b"0")
    return "" if seen and 200 <= status < 400 else f"no request was taken, status {status}"
