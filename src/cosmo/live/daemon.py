"""The life of a daemon: start, serve, reload, drain, stop."""

import asyncio
import contextlib
import gc
import secrets
import signal
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from cosmo.errors import InputError
from cosmo.live import wire
from cosmo.live.admin import Admin
from cosmo.live.config import NodeConfig, load_config
from cosmo.live.logs import Log
from cosmo.live.peers import SERVER_OPTIONS, server_credentials, sizes
from cosmo.live.realtime import RealHost
from cosmo.live.serve_en import EnServer
from cosmo.live.serve_sn import SnServer
from cosmo.policy.registry import method

_STEP_S = 0.02
# What a running node can take over; all else needs a restart.
_RELOADABLE = ("method", "behaviour", "limits", "log")


def serve(role: str, source: Path, settings: Iterable[str] = ()) -> None:
    """Run a daemon until it is told to stop; InputError if its configuration is wrong."""
    settings = tuple(settings)
    config = _checked(role, source, settings)
    method(config.method.use)  # what cannot be made is refused before anything listens
    try:
        import uvloop

        new_loop: Callable[[], asyncio.AbstractEventLoop] | None = uvloop.new_event_loop
    except ImportError:
        new_loop = None
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(Daemon(config, lambda: _checked(role, source, settings)).run())


def _checked(role: str, source: Path, settings: Iterable[str]) -> NodeConfig:
    config = load_config(source, settings)
    if config.role != role:
        raise InputError(f"role = {config.role!r}: must be {role!r} for cosmo serve {role}")
    return config


class Daemon:
    """One node in this process."""

    def __init__(self, config: NodeConfig, read_again: Callable[[], NodeConfig]) -> None:
        self._config, self._read_again = config, read_again
        self._log = Log(config.name, config.log.level)
        self._stop = asyncio.Event()
        self.port = 0

    async def run(self) -> None:
        """From start to stop."""
        config, loop = self._config, asyncio.get_running_loop()
        host = RealHost(loop, config.scale)
        kind = EnServer if config.role == "en" else SnServer
        boot = secrets.randbits(63) | 1
        node = kind(config, method(config.method.use), host, self._log, boot)
        server, checks = self._server(node)
        self.port = self._bind(server)
        admin = Admin(node, host, config)
        await admin.begin()
        for number, call in (
            (signal.SIGTERM, self._stop.set),
            (signal.SIGINT, self._stop.set),
            (signal.SIGHUP, lambda: self._reload(node)),
        ):
            loop.add_signal_handler(number, call)
        await server.start()
        node.begin()
        await checks.set("", health_pb2.HealthCheckResponse.SERVING)
        gc.collect()
        gc.freeze()  # what is here stays: collections need not look at it again
        self._log.info(
            "serving",
            role=config.role,
            port=self.port,
            admin=admin.port,
            method=config.method.use,
            boot=boot,
            timerfd=host.fine,
            tls=bool(config.tls.certificate),
            uvloop="uvloop" in sys.modules,
        )
        try:
            await self._stop.wait()
            await self._drain(node, checks, loop)
        finally:
            await server.stop(0.2)
            await admin.close()
            if isinstance(node, EnServer):
                await node.close()
            with contextlib.suppress(AttributeError):
                node.worker.close()  # type: ignore[attr-defined]
            host.close()
            self._log.info("stopped")

    def _server(
        self, node: EnServer | SnServer
    ) -> tuple[grpc.aio.Server, health.aio.HealthServicer]:
        limits = self._config.limits
        options = [
            *SERVER_OPTIONS,
            *sizes(limits.input_bytes),
            ("grpc.max_concurrent_streams", limits.calls + 16),
            ("grpc.max_connection_idle_ms", int(1000 * limits.idle_s)),
            ("grpc.max_allowed_incoming_connections", limits.connections),
        ]
        server = grpc.aio.server(options=options)
        server.add_generic_rpc_handlers(node.handlers())
        checks = health.aio.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(checks, server)  # type: ignore[no-untyped-call]
        if self._config.reflection:
            _reflect(server)
        return server, checks

    def _bind(self, server: grpc.aio.Server) -> int:
        address, credentials = self._config.listen, server_credentials(self._config.tls)
        try:
            if credentials is None:
                return server.add_insecure_port(address)
            return server.add_secure_port(address, credentials)
        except RuntimeError:
            raise InputError(f"listen = {address!r}: cannot be listened on") from None

    def _reload(self, node: EnServer | SnServer) -> None:
        """Validate, then swap; a mistake changes nothing."""
        try:
            config = self._read_again()
            old, new = self._config.model_dump(), config.model_dump()
            fixed = [name for name in old if name not in _RELOADABLE and old[name] != new[name]]
            if fixed:
                raise InputError(f"{fixed[0]}: cannot change while the node runs")
            if isinstance(node, EnServer):
                node.reload(config, method(config.method.use))
            elif old["method"] != new["method"]:
                raise InputError("method: cannot change while an SN runs")
            node.config = self._config = config
            self._log.level(config.log.level)
            self._log.info("reloaded", method=config.method.use)
        except InputError as error:
            self._log.warning("not reloaded", why=str(error))

    async def _drain(
        self,
        node: EnServer | SnServer,
        checks: health.aio.HealthServicer,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._log.info("draining", under_way=node.under_way)
        await checks.enter_graceful_shutdown()
        node.drain()
        until = loop.time() + self._config.behaviour.drain_s
        while node.under_way and loop.time() < until:
            await asyncio.sleep(_STEP_S)


def _reflect(server: grpc.aio.Server) -> None:
    try:
        from grpc_reflection.v1alpha import reflection
    except ImportError:
        raise InputError(
            "reflection = true: needs grpcio-reflection; install it with: pip install"
            " grpcio-reflection"
        ) from None
    names = (f"{wire.PACKAGE}.En", f"{wire.PACKAGE}.Sn", reflection.SERVICE_NAME)
    reflection.enable_server_reflection(names, server, pool=wire.POOL)
