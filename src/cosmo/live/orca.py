"""What an SN says of its load to balancers that know nothing of this package: ORCA.

Open Request Cost Aggregation is what Envoy and gRPC balance by. A report comes on every answer
(in band, as a trailer) and over a stream of its own (out of band).
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import grpc

from cosmo.live import wire
from cosmo.live.clock import Clock
from cosmo.live.config import Tls
from cosmo.live.peers import check_caller
from cosmo.live.smoothed import SmoothedLevel, SmoothedRate
from cosmo.live.station import Station
from cosmo.live.tasks import Fate, Item
from cosmo.node import IDLE, LATENCY, REQUESTS, STORAGE, WAIT, WORK

TRAILER = "endpoint-load-metrics-bin"
SERVICE = "xds.service.orca.v3.OpenRcaService"
_MEMORY_MS = 1000.0  # of the means that are reported
_LEAST_S, _USUAL_S, _LONGEST_S = 0.1, 1.0, 3600.0  # between two reports of a stream
_MOST_STREAMS = 64

NAMED = {"idle_slots": IDLE, "wait_ms": WAIT, "work_cycles": WORK, "free_bytes": STORAGE,
          "tasks": REQUESTS, "latency_ms": LATENCY}  # fmt: skip
OrcaLoadReport = wire.message_class("OrcaLoadReport", "xds.data.orca.v3")
OrcaLoadReportRequest = wire.message_class("OrcaLoadReportRequest", "xds.service.orca.v3")


class Orca:
    """The reports of one SN, and the service that streams them."""

    def __init__(self, station: Station, storage_bytes: float, clock: Clock, tls: Tls) -> None:
        self._station, self._storage, self._clock, self._tls = station, storage_bytes, clock, tls
        self._busy, self._asked = SmoothedLevel(_MEMORY_MS), SmoothedLevel(_MEMORY_MS)
        self._tasks, self._errors = SmoothedRate(_MEMORY_MS), SmoothedRate(_MEMORY_MS)
        self._over = asyncio.Event()
        self._streams = 0
        station.before_change = self._hold

    def _hold(self, now: float) -> tuple[float, float]:
        """Means per slot of the tasks that run, and of all in the node."""
        station = self._station
        running = min(station.requests, station.slots)
        return (
            self._busy.hold(running / station.slots, now),
            self._asked.hold(station.requests / station.slots, now),
        )

    def count(self, item: Item, fate: Fate) -> None:
        """A task has been answered."""
        now = self._clock.now()
        self._tasks.count(now)
        if fate != Fate.DONE:
            self._errors.count(now)

    def report(self) -> Any:
        """The load at this moment.

        `application_utilization` is how many tasks there were in the node for each slot lately,
        so that it goes beyond 1 when they queue; `cpu_utilization` is how many slots were at work.
        Named metrics are the node's state as its own ENs receive it (R12).
        """
        now = self._clock.now()
        busy, asked = self._hold(now)
        state = self._station.state(now)
        return OrcaLoadReport(
            cpu_utilization=busy,
            mem_utilization=1.0 - float(state[STORAGE]) / self._storage,
            rps_fractional=self._tasks.per_s(now),
            eps=self._errors.per_s(now),
            application_utilization=asked,
            named_metrics={f"cosmo.{name}": float(state[k]) for name, k in NAMED.items()},
        )

    def trailer(self) -> tuple[tuple[str, bytes], ...]:
        """The same as metadata of an answer."""
        return ((TRAILER, self.report().SerializeToString()),)

    def handlers(self) -> list[Any]:
        """For a gRPC server."""
        stream = grpc.unary_stream_rpc_method_handler(
            self.stream, wire.reader(OrcaLoadReportRequest), OrcaLoadReport.SerializeToString
        )
        return [grpc.method_handlers_generic_handler(SERVICE, {"StreamCoreMetrics": stream})]

    async def stream(self, request: Any, context: Any) -> AsyncIterator[Any]:
        """A report now, and one after each interval that the caller has asked for."""
        await check_caller(context, self._tls)
        if request is None:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "not an OrcaLoadReportRequest")
        if self._streams >= _MOST_STREAMS:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "too many streams of reports")
        wanted = request.report_interval
        wanted_s = wanted.seconds + wanted.nanos / 1e9
        every_s = min(max(wanted_s, _LEAST_S), _LONGEST_S) if wanted_s > 0.0 else _USUAL_S
        self._streams += 1
        try:
            while not self._over.is_set():
                yield self.report()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._over.wait(), every_s)
        finally:
            self._streams -= 1

    def close(self) -> None:
        """End all streams of reports."""
        self._over.set()
