"""A node that listens: its gRPC server, its health service, its admin port."""

import asyncio
import secrets
from collections import Counter
from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from cosmo.errors import InputError
from cosmo.live import wire
from cosmo.live.admin import Admin
from cosmo.live.config import NodeConfig
from cosmo.live.connections import EVERY_S
from cosmo.live.logs import Log
from cosmo.live.orca import SERVICE
from cosmo.live.peers import SERVER_OPTIONS, server_credentials, sizes
from cosmo.live.realtime import RealClock
from cosmo.live.serve_en import EnServer
from cosmo.live.serve_sn import SnServer
from cosmo.policy.registry import method

_STEP_S = 0.02


class Serving:
    """One node, from its start to its stop, in a running event loop."""

    def __init__(self, config: NodeConfig, log: Log | None = None) -> None:
        self.config, self.log = config, log or Log(config.name, config.log.level)
        self.clock = RealClock(asyncio.get_running_loop(), config.scale)
        kind = EnServer if config.role == "en" else SnServer
        self.boot = secrets.randbits(63) | 1
        made = method(config.method.use)
        self.node: Any = kind(config, made, self.clock, self.log, self.boot)
        self._checks = health.aio.HealthServicer()
        self._server = self._made_server()
        self.port = self._bind()
        self.admin = Admin(self.node, self.clock, config)
        self._sharing: asyncio.Task[None] | None = None

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"{self.config.listen.rpartition(':')[0]}:{self.port}"

    def _made_server(self) -> grpc.aio.Server:
        limits = self.config.limits
        options = [
            *SERVER_OPTIONS,
            *sizes(limits.input_bytes),
            # More than calls: those beyond are turned away by name, not left in a queue.
            ("grpc.max_concurrent_streams", max(4 * limits.calls, 1000)),
            ("grpc.max_connection_idle_ms", int(1000 * limits.idle_s)),
            ("grpc.max_allowed_incoming_connections", limits.connections),
        ]
        server = grpc.aio.server(options=options)
        server.add_generic_rpc_handlers(self.node.handlers())
        health_pb2_grpc.add_HealthServicer_to_server(self._checks, server)
        if self.config.reflection:
            _reflect(server, self.config)
        return server

    def _bind(self) -> int:
        address, credentials = self.config.listen, server_credentials(self.config.tls)
        try:
            if credentials is None:
                return int(self._server.add_insecure_port(address))
            return int(self._server.add_secure_port(address, credentials))
        except RuntimeError:
            raise InputError(f"listen = {address!r}: cannot be listened on") from None

    def facts(self) -> dict[str, float]:
        """How it went: how late timers were and how long decisions took in ms, what was sent."""
        core, late = self.node.core, self.clock.lateness_ms
        found = {"timer_p99_ms": late.quantile(0.99), "timer_most_ms": late.most}
        if isinstance(self.node, EnServer):
            runner = core.runner
            found |= {"decision_p99_ms": runner.decision_ms.quantile(0.99)}
            found |= {"faults": runner.faults, "guard_ms": core.guard_ms()}
            counted = self.node.counters.get
            names = [peer.name for peer in self.config.peers]
            found |= {"statuses": sum(counted("statuses_total", sn=name) for name in names)}
        else:
            found |= {"updates": core.updates, "updates_suppressed": core.suppressed}
            found |= {"update_decisions": core.decisions}
        return {name: round(value, 3) for name, value in found.items() if value == value}

    async def start(self) -> None:
        """Listen, and meet the others."""
        await self.admin.begin()
        await self._server.start()
        self.node.begin()
        self._sharing = asyncio.get_running_loop().create_task(self._share())
        await self._checks.set("", health_pb2.HealthCheckResponse.SERVING)

    async def drain(self) -> None:
        """Take nothing more, and wait for what is under way, for as long as is allowed."""
        loop = asyncio.get_running_loop()
        await self._checks.enter_graceful_shutdown()
        self.node.drain()
        until = loop.time() + self.config.behaviour.drain_s
        while self.node.in_flight and loop.time() < until:
            await asyncio.sleep(_STEP_S)

    async def _share(self) -> None:
        """Keep connections for those who have none."""
        while True:
            await asyncio.sleep(EVERY_S)
            gone = self.node.callers.thin_out(self.port)
            for who, count in Counter(gone).items():
                self.node.counters.add("hung_up_total", count)
                self.log.warning("too many connections of one address", of=who, hung_up=count)

    async def stop(self, grace_s: float | None = 0.2) -> None:
        """Hang up; calls that are still open fail after the grace."""
        if self._sharing is not None:
            self._sharing.cancel()
        await self._server.stop(grace_s)
        await self.admin.close()
        if isinstance(self.node, EnServer):
            await self.node.close()
        self.node.worker.close()
        self.clock.close()


def _reflect(server: grpc.aio.Server, config: NodeConfig) -> None:
    try:
        from grpc_reflection.v1alpha import reflection
    except ImportError:
        raise InputError(
            "reflection = true: needs grpcio-reflection; install it with: pip install"
            " grpcio-reflection"
        ) from None
    own = f"{wire.PACKAGE}.{config.role.capitalize()}"
    names = (own, *([SERVICE] if config.orca else []), reflection.SERVICE_NAME)
    reflection.enable_server_reflection(names, server, pool=wire.POOL)
