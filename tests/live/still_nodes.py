"""Servers of nodes without any network, on a clock that stands still until it is moved."""

import asyncio
import io
from types import SimpleNamespace

from cosmo.live.logs import Log
from cosmo.live.samples import Window
from cosmo.live.serve_en import EnServer
from cosmo.live.serve_sn import SnServer
from cosmo.policy.registry import method
from live.nodes import config


class StillClock:
    """A clock whose time is what it was set to; timers are kept, not rung."""

    def __init__(self, scale=1.0):
        self.time_ms, self.scale, self.timers = 0.0, scale, []
        self.lateness_ms = Window(16)

    def now(self):
        return self.time_ms

    def at(self, time_ms, kind, call):
        self.timers.append((time_ms, call))
        return SimpleNamespace(cancel=lambda: None)


def made(role, fields=None, use="all-offload", sns=("127.0.0.1:1",), scale=1.0):
    """A server that listens nowhere, and its clock; within a running event loop."""
    clock = StillClock(scale)
    told = config(role, {"method.use": use, **(fields or {})}, sns)
    kind = EnServer if role == "en" else SnServer
    return kind(told, method(use), clock, Log(role, "info", io.StringIO()), 77), clock


class AbortedError(Exception):
    """A call was ended by name."""


class Context:
    """Of a call: who calls, and how it was ended."""

    def __init__(self, name="en0"):
        self._name, self.trailer = name, None

    def invocation_metadata(self):
        return (("cosmo-en", self._name),)

    def peer(self):
        return "ipv4:10.0.0.1:5"

    async def abort(self, code, why):
        raise AbortedError(code.name, why)

    def set_trailing_metadata(self, trailer):
        self.trailer = trailer


async def turns(count=5):
    """Let tasks of the event loop go on."""
    for _ in range(count):
        await asyncio.sleep(0)
