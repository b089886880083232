"""HTTP requests as a node takes them: which are refused at once, and how all others end."""

import asyncio

from aiohttp import web

from cosmo.live.http_en.messages import said
from cosmo.live.http_en.services import HttpCall
from cosmo.live.peers import connected_by
from cosmo.live.server import NodeServer


class TakesHttp(NodeServer):
    """A node with a port of HTTP; a subclass says who answers."""

    _calls: int  # in progress

    async def serve_http(self, call: HttpCall) -> web.StreamResponse:
        """The answer to a request that is within the limits."""
        raise NotImplementedError

    async def take(self, request: web.BaseRequest) -> web.StreamResponse:
        """An HTTP request of a client; its answer."""
        if request.transport is None:
            raise ConnectionResetError("the client has gone")
        refusal = self._refusal(request)
        if refusal is not None:
            self.counters.add("turned_away_total", status=str(refusal.status))
            return refusal
        call = HttpCall(request)
        self._calls += 1
        try:
            with self.callers.busy(call):
                return await self.serve_http(call)
        except (asyncio.CancelledError, ConnectionError):
            self.counters.add("cancelled_total")
            raise
        except Exception as error:
            self.log.warning("a request has failed", why=f"{type(error).__name__}: {error}"[:200])
            return said(500, f"the {self.kind} has failed", close=True)
        finally:
            self._calls -= 1

    def _refusal(self, request: web.BaseRequest) -> web.Response | None:
        """The answer to a request that is not taken at all."""
        if self.draining:
            return said(503, f"the {self.kind} is about to stop", close=True)
        limits = self.config.limits
        peer, allowed = connected_by(request.transport, self.config.tls)
        if not allowed:
            return said(403, "this certificate may not call here", close=True)
        if request.method == "CONNECT" or request.headers.get("Upgrade", "").lower() == "websocket":
            return said(501, "connections that are taken over are not passed on", close=True)
        if (request.content_length or 0) > limits.input_bytes:
            return said(413, f"must be at most {limits.input_bytes} bytes", close=True)
        if self._calls >= limits.calls or not self._buckets.take(peer):
            return said(429, "too many calls", close=request.can_read_body)
        return None
