"""The admin port: metrics for Prometheus, a page for people, and whether the node is well."""

import asyncio
import html
from typing import TYPE_CHECKING

from cosmo.errors import InputError
from cosmo.live.config import NodeConfig
from cosmo.live.metrics import Gauge, exposition
from cosmo.live.realtime import RealHost
from cosmo.live.serve_en import EnServer
from cosmo.live.window import Overhead, Window
from cosmo.node import STORAGE, WORK

if TYPE_CHECKING:
    from cosmo.live.serve_sn import SnServer

_LONGEST_S = 5.0  # for a request


class Admin:
    """A very small HTTP server: GET of three paths, one request a connection."""

    def __init__(self, node: "EnServer | SnServer", host: RealHost, config: NodeConfig) -> None:
        self._node, self._host, self._config = node, host, config
        self._server: asyncio.Server | None = None
        self.port = 0

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
        """Stop listening."""
        if self._server is not None:
            self._server.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_LONGEST_S):
                line = (await reader.readline()).decode("latin-1").split()
                while (await reader.readline()).strip():
                    pass
            code, kind, body = self._page(line[1] if line[:1] == ["GET"] and len(line) > 1 else "")
            data = body.encode()
            head = f"HTTP/1.1 {code}\r\nContent-Type: {kind}; charset=utf-8\r\n"
            head += f"Content-Length: {len(data)}\r\nConnection: close\r\n\r\n"
            writer.write(head.encode() + data)
            await writer.drain()
        except (OSError, ValueError, TimeoutError):
            pass
        finally:
            writer.close()

    def _page(self, path: str) -> tuple[str, str, str]:
        if path == "/metrics":
            return "200 OK", "text/plain", self.text()
        if path == "/healthz":
            if self._node.draining:
                return "503 Service Unavailable", "text/plain", "draining\n"
            return "200 OK", "text/plain", "serving\n"
        if path == "/":
            title, text = html.escape(self._config.name), html.escape(self.text())
            page = f"<!doctype html><meta http-equiv=refresh content=1><title>{title}</title>"
            return "200 OK", "text/html", f"{page}<h1>{title}</h1><pre>{text}</pre>"
        return "404 Not Found", "text/plain", "not here\n"

    def text(self) -> str:
        """All metrics."""
        return exposition(self._node.counters, self._gauges(), self._config.name)

    def _gauges(self) -> list[Gauge]:
        node, now = self._node, self._host.now()
        state = node.core.station.state(now)
        late = self._host.lateness_ms
        found: list[Gauge] = [
            ("up_seconds", {}, now * self._host.scale / 1000.0),
            ("tasks_in_node", {}, float(node.core.station.requests)),
            ("work_cycles", {}, float(state[WORK])),
            ("free_bytes", {}, float(state[STORAGE])),
            *_quantiles("timer_late_ms", late, ("0.99",)),
            ("timer_late_most_ms", {}, late.most),
        ]
        if not isinstance(node, EnServer):
            core = node.core
            found += [
                ("update_decisions_total", {}, float(core.decisions)),
                ("updates_suppressed_total", {}, float(core.suppressed)),
            ]
            return found
        chooser = node.core.chooser
        found += [
            ("calls", {}, float(node.under_way)),
            ("guard_ms", {}, node.core.guard_ms()),
            *_quantiles("overhead_ms", node.overhead),
            *_quantiles("delay_ms", node.delay_ms),
            ("on_fallback", {}, float(getattr(chooser, "on_fallback", False))),
            ("method_info", {"method": chooser.name}, 1.0),
        ]
        if hasattr(chooser, "decision_ms"):
            found += _quantiles("decision_ms", chooser.decision_ms, ("0.99",))
        for watching, cache in zip(node.watching, node.core.caches, strict=True):
            sn = {"sn": watching.peer.name}
            found += [
                ("sn_silent", sn, float(cache.silent)),
                ("status_age_ms", sn, now - cache.source_ms),
                ("round_trip_ms", sn, watching.round_trip_ms),
            ]
            for place, number in enumerate(cache.numbers):
                found.append(("belief", {**sn, "number": str(place)}, float(number)))
        return found


def _quantiles(
    name: str, samples: Window | Overhead, shares: tuple[str, ...] = ("0.5", "0.99")
) -> list[Gauge]:
    return [(name, {"quantile": share}, samples.quantile(float(share))) for share in shares]
