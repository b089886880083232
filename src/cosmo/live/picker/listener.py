"""The port of a picker: its connections, who may have one, and when they end."""

import asyncio
import socket
import time
from typing import TYPE_CHECKING

from cosmo.errors import InputError
from cosmo.live.config import NodeConfig
from cosmo.live.peers import connected_by, place_of, server_ssl
from cosmo.live.picker import ext_proc, grpc_calls
from cosmo.live.picker.frames import Request
from cosmo.live.picker.grpc_calls import Call, HealthCheck
from cosmo.live.picker.http2 import Http2Connection
from cosmo.live.picker.http2_sending import OpenStreams, Stream

if TYPE_CHECKING:
    from cosmo.live.picker.serve_picker import PickerServer

_LOOK_S = 1.0
_PING_S, _GONE_S = 5.0, 15.0  # without a word from a peer
_STEP_S = 0.02


class PickerListener:
    """Listens as soon as it is made; takes calls once it is started."""

    def __init__(self, node: "PickerServer", config: NodeConfig) -> None:
        self._node, self._config = node, config
        self._ssl = server_ssl(config.tls)
        host, _, port = config.listen.rpartition(":")
        try:
            self._socket = socket.create_server((host, int(port)), reuse_port=False, backlog=512)
        except (OSError, OverflowError):
            raise InputError(f"listen = {config.listen!r}: cannot be listened on") from None
        self.port = int(self._socket.getsockname()[1])
        self._open = grpc_calls.opened(
            {
                ext_proc.PROCESS: self._process,
                grpc_calls.HEALTH_CHECK: self._check,
            }
        )
        self._connections: set[Http2Connection] = set()
        self._open_streams = OpenStreams()
        node.callers.busy_too = lambda: [each.place for each in self._connections if each.streams]
        self._server: asyncio.Server | None = None
        self._looking: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Accept connections, and end idle ones from now on."""
        loop = asyncio.get_running_loop()
        patience_s = self._config.limits.receive_s if self._ssl else None
        self._server = await loop.create_server(
            self._connection, sock=self._socket, ssl=self._ssl, ssl_handshake_timeout=patience_s
        )
        self._looking = loop.create_task(self._look())

    async def serve(self) -> None:
        """Health checks ask the node itself."""

    async def drain(self) -> None:
        """Take no more streams."""
        self._node.draining = True
        for each in list(self._connections):
            each.drain()

    async def stop(self, grace_s: float | None) -> None:
        """Hang up; calls that are still open fail after the grace."""
        if self._looking is not None:
            self._looking.cancel()
        if self._server is not None:
            self._server.close()
        self._socket.close()
        until = time.monotonic() + (grace_s or 0.0)
        while any(each.streams for each in self._connections) and time.monotonic() < until:
            await asyncio.sleep(_STEP_S)
        for each in list(self._connections):
            each.close()
        await asyncio.sleep(0)

    # Connections.

    def _connection(self) -> Http2Connection:
        most = self._config.limits.calls
        forget = self._connections.discard
        return Http2Connection(self._open, most, self._made, forget, self._open_streams)

    def _made(self, connection: Http2Connection) -> bool:
        """Whether a peer may have this connection."""
        if len(self._connections) >= self._config.limits.connections:
            self._node.counters.add("hung_up_total")
            return False
        connection.place = place_of(connection.transport)
        connection.peer, allowed = connected_by(connection.transport, self._config.tls)
        if not allowed:
            self._node.counters.add("hung_up_total")
            return False
        self._connections.add(connection)
        return True

    async def _look(self) -> None:
        """End what nobody is at the other end of, and what takes too long."""
        while True:
            await asyncio.sleep(_LOOK_S)
            now, limits = time.monotonic(), self._node.config.limits
            for each in list(self._connections):
                silent_s = now - each.heard_s
                if silent_s > _GONE_S or (not each.streams and now - each.busy_s > limits.idle_s):
                    each.close()
                elif silent_s > _PING_S and not each.pinged:
                    each.ping()
                for stream in list(each.streams.values()):
                    call = stream.handler
                    if isinstance(call, Call) and call.waits_since(now) > limits.receive_s:
                        call.finish(grpc_calls.DEADLINE_EXCEEDED, "the message never came")

    # Calls.

    def _process(self, stream: Stream, _: Request) -> Call:
        from cosmo.live.picker.serve_picker import PickerCall

        if self._room_for(stream) and self._node.take(stream.connection.peer):
            return PickerCall(stream, self._node)
        return self._turned_away(stream)

    def _check(self, stream: Stream, _: Request) -> Call:
        if self._room_for(stream):
            return HealthCheck(stream, self._node.health)
        return self._turned_away(stream)

    def _room_for(self, stream: Stream) -> bool:
        most = self._node.config.limits.calls
        return self._open_streams.room_for(stream.connection.peer, most)

    def _turned_away(self, stream: Stream) -> Call:
        self._node.counters.add("turned_away_total", status="grpc")
        return grpc_calls.refused(stream, grpc_calls.RESOURCE_EXHAUSTED, "too many calls")
