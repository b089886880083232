"""The ports of a node that takes HTTP requests: gRPC's, and that of HTTP."""

import asyncio
import logging
import socket
from typing import TYPE_CHECKING, Any

from aiohttp import web

from cosmo.errors import InputError
from cosmo.live.config import NodeConfig
from cosmo.live.connections import EVERY_S
from cosmo.live.grpc_listener import GrpcListener
from cosmo.live.http_en.messages import as_it_came
from cosmo.live.peers import server_ssl

if TYPE_CHECKING:
    from cosmo.live.http_en.taking import TakesHttp

_LINGER_S = 1.0  # that the rest of a body is read, so that its sender sees the answer
_QUIET = logging.getLogger("cosmo.http")
_QUIET.addHandler(logging.NullHandler())
_QUIET.propagate = False


class _HungUp(asyncio.Protocol):
    """A connection beyond the limit."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Close the connection at once."""
        transport.close()


class HttpListener(GrpcListener):
    """Listens on both as soon as it is made; takes requests and calls once it is started."""

    def __init__(self, node: "TakesHttp", config: NodeConfig) -> None:
        super().__init__(node, config)
        self._http_ssl = server_ssl(config.tls, "http/1.1")
        host, _, port = config.http.listen.rpartition(":")
        try:
            self._socket = socket.create_server((host, int(port)), backlog=512)
        except (OSError, OverflowError):
            raise InputError(
                f"http.listen = {config.http.listen!r}: cannot be listened on"
            ) from None
        self.http_port = int(self._socket.getsockname()[1])

        @web.middleware
        async def take(request: web.Request, handler: Any) -> web.StreamResponse:
            """All requests, whatever their path."""
            return await node.take(request)

        application = web.Application(middlewares=[take])
        application.on_response_prepare.append(as_it_came)
        self._runner = web.AppRunner(
            application,
            access_log=None,
            logger=_QUIET,
            handler_cancellation=True,
            keepalive_timeout=config.limits.idle_s,
            lingering_time=_LINGER_S,
            auto_decompress=False,
            shutdown_timeout=0.01,  # 0 would be for ever
        )
        self._http: asyncio.Server | None = None
        self._sharing: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Take calls and requests."""
        await super().start()
        await self._runner.setup()
        loop = asyncio.get_running_loop()
        self._http = await loop.create_server(
            self._connection,
            sock=self._socket,
            ssl=self._http_ssl,
            ssl_handshake_timeout=self._config.limits.receive_s if self._http_ssl else None,
        )
        self._sharing = loop.create_task(self._share())
        self._node.log.info("taking requests", port=self.http_port)

    def _connection(self) -> asyncio.Protocol:
        server = self._runner.server
        assert server is not None
        if len(server.connections) >= self._config.limits.connections:
            self._node.counters.add("hung_up_total")
            return _HungUp()
        return server()

    async def _share(self) -> None:
        """Keep connections for those who have none."""
        while True:
            await asyncio.sleep(EVERY_S)
            gone = self._node.callers.thin_out(self.http_port)
            if gone:
                self._node.counters.add("hung_up_total", len(gone))

    async def drain(self) -> None:
        """Requests are refused from now on; those in progress go on."""
        await super().drain()
        self._node.draining = True

    async def stop(self, grace_s: float | None) -> None:
        """Hang up; requests still in progress fail after the grace."""
        if self._sharing is not None:
            self._sharing.cancel()
        if self._http is not None:
            self._http.close()
        self._socket.close()
        await super().stop(grace_s)
        await self._runner.cleanup()
