"""The port of an EN, SN or agent: its gRPC server and health service."""

from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from cosmo.errors import InputError
from cosmo.live import wire
from cosmo.live.config import NodeConfig
from cosmo.live.orca import SERVICE
from cosmo.live.peers import SERVER_OPTIONS, server_credentials, sizes


class GrpcListener:
    """Listens as soon as it is made; takes calls once it is started."""

    def __init__(self, node: Any, config: NodeConfig) -> None:
        self._node, self._config = node, config
        self._checks = health.aio.HealthServicer()
        self._server = self._made_server()
        self.port = self._bind()

    def _made_server(self) -> grpc.aio.Server:
        limits = self._config.limits
        options = [
            *SERVER_OPTIONS,
            *sizes(limits.input_bytes),
            # More than calls: those beyond are turned away by name, not left in a queue.
            ("grpc.max_concurrent_streams", max(4 * limits.calls, 1000)),
            ("grpc.max_connection_idle_ms", int(1000 * limits.idle_s)),
            ("grpc.max_allowed_incoming_connections", limits.connections),
        ]
        server = grpc.aio.server(options=options)
        server.add_generic_rpc_handlers(self._node.handlers())
        health_pb2_grpc.add_HealthServicer_to_server(self._checks, server)
        if self._config.reflection:
            _reflect(server, self._config)
        return server

    def _bind(self) -> int:
        address, credentials = self._config.listen, server_credentials(self._config.tls)
        try:
            if credentials is None:
                return int(self._server.add_insecure_port(address))
            return int(self._server.add_secure_port(address, credentials))
        except RuntimeError:
            raise InputError(f"listen = {address!r}: cannot be listened on") from None

    async def start(self) -> None:
        """Start to accept calls."""
        await self._server.start()

    async def serve(self) -> None:
        """Say that the node is well."""
        await self._checks.set("", health_pb2.HealthCheckResponse.SERVING)

    async def drain(self) -> None:
        """Say that it is about to stop."""
        await self._checks.enter_graceful_shutdown()

    async def stop(self, grace_s: float | None) -> None:
        """Hang up; calls that are still open fail after the grace."""
        await self._server.stop(grace_s)


def _reflect(server: grpc.aio.Server, config: NodeConfig) -> None:
    try:
        from grpc_reflection.v1alpha import reflection
    except ImportError:
        raise InputError(
            "reflection = true: needs grpcio-reflection; install it with: pip install"
            " grpcio-reflection"
        ) from None
    own = f"{wire.PACKAGE}.{'En' if config.role == 'en' else 'Sn'}"
    names = (own, *([SERVICE] if config.orca else []), reflection.SERVICE_NAME)
    reflection.enable_server_reflection(names, server, pool=wire.POOL)
