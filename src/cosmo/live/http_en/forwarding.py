"""The way of one HTTP request: from its client to a service, and back."""

import asyncio
from typing import TYPE_CHECKING

import aiohttp
from aiohttp import web

from cosmo.live.config import Limits
from cosmo.live.http_en.messages import (
    ADDED_TO_REQUESTS,
    GIVEN,
    passed_on,
    request_headers,
    said,
    target,
)
from cosmo.live.peers import place_of
from cosmo.live.tasks import Fate, Item

if TYPE_CHECKING:
    from cosmo.live.http_en.serve_http import HttpEnServer

_KEPT_S = 2.5  # that a connection to a service is kept: services hang up after some seconds, too


class HttpCall:
    """A request of a client, and what has become of it."""

    def __init__(self, request: web.BaseRequest) -> None:
        self.request = request
        self.patience: asyncio.Timeout | None = None  # ends when the EN does not wait any longer
        self.own: tuple[int, str] | None = None  # an answer of the EN's own: status, text
        self.fault: tuple[int, str] | None = None  # what was wrong with the request's body
        self.alone = False  # no request waits for the same slot

    def peer(self) -> str:
        """Whose connection it came by, as gRPC names it."""
        return place_of(self.request.transport)

    def answer(self, status: int, why: str) -> None:
        """The EN answers; whatever else is under way ends."""
        self.own = status, why
        if self.patience is not None and not self.patience.expired():
            self.patience.reschedule(asyncio.get_running_loop().time())


class Body:
    """A client's body, piece by piece, within the limits."""

    def __init__(self, call: HttpCall, limits: Limits) -> None:
        self._call, self._limits, self._size = call, limits, 0

    def __aiter__(self) -> "Body":
        return self

    async def __anext__(self) -> bytes:
        try:
            async with asyncio.timeout(self._limits.receive_s):
                piece = await self._call.request.content.readany()
        except TimeoutError:
            raise self._fault(
                408, f"nothing of the body came for {self._limits.receive_s:g} s"
            ) from None
        self._size += len(piece)
        if self._size > self._limits.input_bytes:
            raise self._fault(413, f"must be at most {self._limits.input_bytes} bytes")
        if not piece:
            raise StopAsyncIteration
        return piece

    def _fault(self, status: int, why: str) -> aiohttp.ClientError:
        self._call.fault = status, why
        return aiohttp.ClientError(why)


class Forwarder:
    """Sends requests to services, and their answers back."""

    def __init__(self, node: "HttpEnServer") -> None:
        self._node = node
        config = node.config
        self._addresses = [peer.http for peer in config.peers]
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEPT_S),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            skip_auto_headers=ADDED_TO_REQUESTS,
            timeout=aiohttp.ClientTimeout(
                total=None,
                sock_connect=max(config.behaviour.silent_ms / 1000.0, 0.1),
                sock_read=config.http.idle_s,
            ),
        )

    async def close(self) -> None:
        """Leave the services."""
        await self._session.close()

    async def forward(self, call: HttpCall, item: Item) -> web.StreamResponse:
        """Decide, send, and pass the answer on."""
        node = self._node
        try:
            async with asyncio.timeout(None) as call.patience:
                node.core.pick(item, None)
                found = await self._asked(call, item) if call.own is None else None
        except TimeoutError:
            found = None
        if found is None:
            status, why = call.fault or call.own or (504, "the deadline has passed")
            # A body that was not read to its end is in the way of the next request.
            return said(status, why, close=call.request.can_read_body)
        node.core.begun(item)
        async with found:
            return await self._passed_on(call, item, found)

    async def _asked(self, call: HttpCall, item: Item) -> aiohttp.ClientResponse | None:
        """The head of the answer; None if there is none, and the call has an answer of the EN's."""
        node, core, request = self._node, self._node.core, call.request
        for _ in range(node.config.http.tries):
            sn = item.action - 1
            try:
                return await self._session.request(
                    request.method,
                    target(request, self._addresses[sn]),
                    headers=request_headers(request),
                    data=Body(call, node.config.limits) if request.body_exists else None,
                    allow_redirects=False,
                )
            except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError):
                # Nothing has been sent: another service can have it.
                node.counters.add("execute_errors_total", code="connect")
                core.broke(sn, True)
                if not core.try_another(item):
                    break
            except ValueError as error:  # of which aiohttp's InvalidURL is one
                call.fault = 400, f"cannot be passed on ({error})"[:200]
                core.cancel(item)
                return None
            except (aiohttp.ClientError, OSError) as error:
                if call.fault is None:
                    node.counters.add("execute_errors_total", code="broken")
                    core.broke(sn, False)
                call.own = 502, "the service has broken the connection"
                core.failed(item, Fate.FAILED, f"{type(error).__name__}: {error}"[:200])
                return None
        call.own = 503, "no service can be reached"
        core.failed(item, Fate.FAILED, "no service can be reached")
        return None

    async def _passed_on(
        self, call: HttpCall, item: Item, found: aiohttp.ClientResponse
    ) -> web.StreamResponse:
        node, core, sn = self._node, self._node.core, item.action - 1
        made = web.StreamResponse(
            status=found.status, reason=found.reason, headers=passed_on(found.headers)
        )
        made[GIVEN] = found.headers
        try:
            await made.prepare(call.request)
            async for piece in found.content.iter_any():
                await made.write(piece)
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            if isinstance(error, ConnectionError) and call.request.transport is None:
                raise  # it is the client that has gone
            if call.fault is None:
                node.counters.add("execute_errors_total", code="broken")
                core.broke(sn, False)
            core.failed(item, Fate.FAILED, "the answer has broken off")
            # An answer that is not whole must not look like one that is.
            if call.request.transport is not None:
                call.request.transport.abort()
            return made
        if found.status >= 500:
            core.broke(sn, False)
            core.failed(item, Fate.FAILED, f"status {found.status}")
        else:
            core.worked(sn)
            core.result(item, b"")
        return made
