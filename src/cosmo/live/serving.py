"""A node that listens: its port, its admin port, and its life from start to stop."""

import asyncio
import secrets
from collections import Counter
from typing import Any, Protocol

from cosmo.errors import InputError
from cosmo.live.admin import Admin
from cosmo.live.config import NodeConfig
from cosmo.live.connections import EVERY_S
from cosmo.live.logs import Log
from cosmo.live.realtime import RealClock
from cosmo.policy.registry import method

_STEP_S = 0.02


class Listener(Protocol):
    """The port of a node."""

    port: int

    async def start(self) -> None:
        """Start to accept calls."""
        ...

    async def serve(self) -> None:
        """The node is well from now on."""
        ...

    async def drain(self) -> None:
        """It is about to stop."""
        ...

    async def stop(self, grace_s: float | None) -> None:
        """Hang up; calls that are still open fail after the grace."""
        ...


def _parts_of(config: NodeConfig) -> tuple[Any, Any]:
    """(what the node is made by, what its port is made by)."""
    role = config.role
    try:
        if role == "picker":
            from cosmo.live.picker.listener import PickerListener
            from cosmo.live.picker.serve_picker import PickerServer

            return PickerServer, PickerListener
        if config.http.listen:
            from cosmo.live.http_en.listener import HttpListener

            if role == "agent":
                from cosmo.live.http_en.counting import CountingAgent

                return CountingAgent, HttpListener
            from cosmo.live.http_en.serve_http import HttpEnServer

            return HttpEnServer, HttpListener
    except ImportError as error:
        raise InputError(
            f"cosmo serve {role} needs {error.name}; install it with: pip install"
            " 'cosmo-edge[live]'"
        ) from None
    from cosmo.live.grpc_listener import GrpcListener
    from cosmo.live.serve_en import EnServer
    from cosmo.live.serve_sn import SnServer

    if role == "agent":
        from cosmo.live.serve_agent import AgentServer

        return AgentServer, GrpcListener
    return (EnServer if role == "en" else SnServer), GrpcListener


class Serving:
    """One node, from its start to its stop, in a running event loop."""

    def __init__(self, config: NodeConfig, log: Log | None = None) -> None:
        self.config, self.log = config, log or Log(config.name, config.log.level)
        self.clock = RealClock(asyncio.get_running_loop(), config.scale)
        kind, listener = _parts_of(config)
        self.boot = secrets.randbits(63) | 1
        made = method(config.method.use)
        self.node: Any = kind(config, made, self.clock, self.log, self.boot)
        self._listener: Listener = listener(self.node, config)
        self.port = self._listener.port
        self.admin = Admin(self.node, self.clock, config)
        self._sharing: asyncio.Task[None] | None = None

    @property
    def address(self) -> str:
        """The address on which the node listens, `host:port`."""
        return f"{self.config.listen.rpartition(':')[0]}:{self.port}"

    def facts(self) -> dict[str, float]:
        """How it went: how late timers were and how long decisions took in ms, what was sent."""
        found = self.node.facts()
        return {name: round(value, 3) for name, value in found.items() if value == value}

    async def start(self) -> None:
        """Listen, and meet the others."""
        await self.admin.begin()
        await self._listener.start()
        self.node.begin()
        self._sharing = asyncio.get_running_loop().create_task(self._share())
        await self._listener.serve()

    async def drain(self) -> None:
        """Take nothing more, and wait for tasks in flight, at most `drain_s` seconds."""
        loop = asyncio.get_running_loop()
        await self._listener.drain()
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
        await self._listener.stop(grace_s)
        await self.admin.close()
        await self.node.close()
        self.node.worker.close()
        self.clock.close()
