"""An agent through which the requests of its service pass: it counts those in flight."""

import asyncio
import math
import time
from typing import Any

import aiohttp
from aiohttp import web

from cosmo.live.http_en.messages import said
from cosmo.live.http_en.services import UNREACHED, HttpCall, Services, streamed
from cosmo.live.http_en.taking import TakesHttp
from cosmo.live.readings.metering import Mean, Reading
from cosmo.live.serve_agent import AgentServer


class CountingAgent(TakesHttp, AgentServer):
    """Its reading is the number of requests in the service, as of now; those beyond its slots wait.

    A service that cannot be connected to has none, and must not look idle for that: pickers are
    sent nothing until it can be.
    """

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._calls, self._open = 0, 0  # at this port; of these, at the service
        self._services = Services(self.config)
        self._there, self._why = False, "not tried yet"  # why it is not there
        self._latency = Mean(1.0)
        self._spent_ms, self._answers, self._measured_ms = 0.0, 0, -math.inf
        self._trying: asyncio.Task[None] | None = None

    @property
    def in_flight(self) -> int:
        """Requests that are on their way through this port."""
        return self._calls

    def begin(self) -> None:
        """Look for the service; decisions begin when it is there."""
        self._trying = self._loop.create_task(self._try())

    async def close(self) -> None:
        """Stop probing the service and close the connections to it."""
        if self._trying is not None:
            self._trying.cancel()
        await self._services.close()
        await super().close()

    async def _try(self) -> None:
        """Connect to the service now and then, unless its answers show that it is there."""
        host, _, port = self.config.agent.service.rpartition(":")
        pause_s = self.config.behaviour.heartbeat_ms * self.clock.scale / 1000.0
        while True:
            if not self._there or not self._open:
                try:
                    async with asyncio.timeout(max(pause_s, 0.1)):
                        _, writer = await asyncio.open_connection(host, int(port))
                    writer.close()
                    self._found()
                except (OSError, ValueError) as error:  # of which TimeoutError, UnicodeError are
                    self._lost(error)
            await asyncio.sleep(pause_s)

    def _found(self) -> None:
        if not self._there:
            self._there = True
            self._noted("")
            self._recount(0)

    def _lost(self, error: Exception) -> None:
        self._there = False
        self._noted(f"{type(error).__name__}: {error}"[:200])
        self._silent()

    def _noted(self, why: str) -> None:
        if why != self._why:
            self._why = why
            say = self.log.warning if why else self.log.info
            say("the service", reached=not why, why=why)

    def _recount(self, more: int) -> None:
        self._open += more
        now = self.clock.now()
        if now - self._measured_ms >= self.config.agent.read_ms:
            self._measured_ms = now
            self._latency.take(self._spent_ms, float(self._answers))
        if self._there:
            slots = self.config.node.slots
            running = float(min(self._open, slots))
            reading = Reading(running, self._open - running, latency_ms=self._latency.ms)
            self._heard(reading, now)

    async def serve_http(self, call: HttpCall) -> web.StreamResponse:
        """Have the service answer; the request counts until its answer has ended."""
        began_ms = self.clock.now()
        self._recount(1)
        try:
            made = await self._passed(call)
            if made.status < 500:
                self._spent_ms += self.clock.now() - began_ms
                self._answers += 1
            return made
        finally:
            self._recount(-1)

    async def _passed(self, call: HttpCall) -> web.StreamResponse:
        try:
            found = await self._services.asked(call, self.config.agent.service)
        except UNREACHED as error:
            self.counters.add("execute_errors_total", code="connect")
            self._lost(error)
            return self._own(call, 502, "the service cannot be reached")
        except ValueError as error:  # of which aiohttp's InvalidURL is one
            return self._own(call, 400, f"cannot be passed on ({error})"[:200])
        except (aiohttp.ClientError, OSError):
            if call.fault is None:
                self.counters.add("execute_errors_total", code="broken")
            return self._own(call, 502, "the service has broken the connection")
        self._found()
        async with found:
            made, whole = await streamed(call, found, self.config.limits.receive_s)
        if not whole and call.fault is None:
            self.counters.add("execute_errors_total", code="broken")
        return made

    def _own(self, call: HttpCall, status: int, why: str) -> web.Response:
        """An answer of the agent's; a body that was not read is in the way of the next request."""
        return said(*(call.fault or (status, why)), close=call.request.can_read_body)

    def _made_s(self) -> float:
        """A count is of this moment, while there is a service to count for."""
        return time.monotonic() if self._there else self._read_s
