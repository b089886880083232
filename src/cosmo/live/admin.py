"""The admin port: metrics for Prometheus, a page for people, and whether the node is well."""

import asyncio
import html
import ipaddress
import re
import socket
from urllib.parse import parse_qs

from cosmo.errors import InputError
from cosmo.live.config import NodeConfig
from cosmo.live.metrics import exposition
from cosmo.live.realtime import RealClock
from cosmo.live.server import NodeServer

_LONGEST_S = 5.0  # for a request and its answer
_MOST = 32  # requests at a time: whoever holds more open must not use up the node's descriptors
_OTHER_HOST = (
    "421 Misdirected Request",
    "text/plain",
    "this node has no such name; admin_hosts names those by which it may be called\n",
)


class Admin:
    """A very small HTTP server: GET of three paths, one request a connection."""

    def __init__(self, node: NodeServer, clock: RealClock, config: NodeConfig) -> None:
        self._node, self._clock, self._config = node, clock, config
        self._server: asyncio.Server | None = None
        own = config.admin.rpartition(":")[0], config.name, socket.gethostname(), "localhost"
        self._names = {name.lower() for name in (*own, *config.admin_hosts)}
        self.port = 0
        self._open = 0

    async def begin(self) -> None:
        """Listen, if there is an address to listen on."""
        if self._config.admin:
            where, _, port = self._config.admin.rpartition(":")
            try:
                self._server = await asyncio.start_server(
                    self._answer, where, int(port), limit=4096
                )
            except (OSError, OverflowError):
                raise InputError(f"admin = {self._config.admin!r}: cannot be listened on") from None
            self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Stop listening on the admin port."""
        if self._server is not None:
            self._server.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._open >= _MOST:
            writer.close()
            return
        self._open += 1
        writer.transport.set_write_buffer_limits(0)  # an answer ends when the kernel has all of it
        try:
            async with asyncio.timeout(_LONGEST_S):
                line = (await reader.readline()).decode("latin-1").split()
                meant = True
                while header := (await reader.readline()).decode("latin-1").strip():
                    name, _, value = header.partition(":")
                    meant = meant and (name.lower() != "host" or self._is_host(value.strip()))
                path = line[1] if line[:1] == ["GET"] and len(line) > 1 else ""
                code, kind, body = self._page(path) if meant else _OTHER_HOST
                data = body.encode()
                head = f"HTTP/1.1 {code}\r\nContent-Type: {kind}; charset=utf-8\r\n"
                head += f"Content-Length: {len(data)}\r\nConnection: close\r\n\r\n"
                writer.write(head.encode() + data)
                await writer.drain()
        except TimeoutError:
            writer.transport.abort()  # else what it does not read would be kept for it
        except (OSError, ValueError):
            pass
        finally:
            self._open -= 1
            writer.close()

    def _is_host(self, told: str) -> bool:
        """Whether a request is meant for this node: by an address, or by a name that it has.

        A page of others whose own name leads here, by DNS, must not read what is for operators.
        """
        host = re.sub(r":\d*$", "", told).strip("[]").rstrip(".").lower()
        try:
            ipaddress.ip_address(host)
        except ValueError:
            return host in self._names
        return True

    def _page(self, path: str) -> tuple[str, str, str]:
        path, _, query = path.partition("?")
        if path == "/metrics":
            wanted = frozenset(parse_qs(query).get("name[]", ()))
            return "200 OK", "text/plain; version=0.0.4", self.text(wanted)
        if path == "/healthz":
            if self._node.draining:
                return "503 Service Unavailable", "text/plain", "draining\n"
            return "200 OK", "text/plain", "serving\n"
        if path == "/":
            title, text = html.escape(self._config.name), html.escape(self.text())
            page = f"<!doctype html><meta http-equiv=refresh content=1><title>{title}</title>"
            return "200 OK", "text/html", f"{page}<h1>{title}</h1><pre>{text}</pre>"
        return "404 Not Found", "text/plain", "not here\n"

    def text(self, wanted: frozenset[str] = frozenset()) -> str:
        """All metrics, or those with these names: whoever reads often need not make a node write
        histograms that nobody looks at.
        """
        found = [*self._node.counters.samples(), *self._node.measured(self._clock.now())]
        if wanted:
            found = [each for each in found if f"cosmo_{each[0]}" in wanted]
        return exposition(found, self._config.name)
