"""A client's request as a service is asked, and the service's answer on its way back."""

import asyncio

import aiohttp
from aiohttp import web

from cosmo.live.config import Limits, NodeConfig
from cosmo.live.http_en.messages import (
    ADDED_TO_REQUESTS,
    GIVEN,
    passed_on,
    request_headers,
    target,
)
from cosmo.live.peers import place_of

# Nothing has been sent: another service could have the request.
UNREACHED = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
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
        """The EN answers; the call to the service ends."""
        self.own = status, why
        if self.patience is not None and not self.patience.expired():
            self.patience.reschedule(asyncio.get_running_loop().time())


class Body:
    """A client's body, piece by piece, within the limits."""

    def __init__(self, call: HttpCall, limits: Limits) -> None:
        self._call, self._limits, self._size = call, limits, 0
        self._begun = False

    def __aiter__(self) -> "Body":
        if self._begun:  # what was sent is gone, and the rest alone would be another body
            raise aiohttp.ClientError("a body is sent once")
        self._begun = True
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


class Services:
    """Connections to HTTP services."""

    def __init__(self, config: NodeConfig) -> None:
        self._limits = config.limits
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

    async def asked(self, call: HttpCall, address: str) -> aiohttp.ClientResponse:
        """The head of a service's answer.

        Raises one of UNREACHED if nothing was sent, ValueError for a request that cannot be passed
        on, any other aiohttp.ClientError or OSError if the connection has broken.
        """
        request = call.request
        return await self._session.request(
            request.method,
            target(request, address),
            headers=request_headers(request),
            data=Body(call, self._limits) if request.body_exists else None,
            allow_redirects=False,
        )

    async def close(self) -> None:
        """Close the connections to all services."""
        await self._session.close()


async def streamed(
    call: HttpCall, found: aiohttp.ClientResponse, patience_s: float
) -> tuple[web.StreamResponse, bool]:
    """(the answer, whether it was whole), passed on piece by piece as it comes.

    Raises ConnectionError if the client has gone, or has taken nothing for `patience_s`.
    """
    made = web.StreamResponse(
        status=found.status, reason=found.reason, headers=passed_on(found.headers)
    )
    made[GIVEN] = found.headers
    try:
        await made.prepare(call.request)
        async for piece in found.content.iter_any():
            await _written(call, made, piece, patience_s)
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        if isinstance(error, ConnectionError) and call.request.transport is None:
            raise  # it is the client that has gone
        # An answer that is not whole must not look like one that is.
        if call.request.transport is not None:
            call.request.transport.abort()
        return made, False
    return made, True


async def _written(
    call: HttpCall, made: web.StreamResponse, piece: bytes, patience_s: float
) -> None:
    try:
        async with asyncio.timeout(patience_s):
            await made.write(piece)
    except TimeoutError:
        if call.request.transport is not None:
            call.request.transport.abort()
        raise ConnectionResetError("the client does not read") from None
