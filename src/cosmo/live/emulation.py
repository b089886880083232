"""What a test bed does to a node (`handler.kind = "testbed"`): demands that the node does not know
(R35), changes of its speed (R37), tasks of tenants at an SN (R39).

How long a task takes is written at the start of its input, as the run time of real work depends on
its input. Everything else comes over one stream to each node, which an SN that is killed breaks.
"""

import asyncio
import contextlib
import math
import struct
from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc

from cosmo.live.peers import CHANNEL_OPTIONS
from cosmo.scenario.fields import MOST_AMOUNT

SERVICE = "cosmo.live.testbed.Surroundings"
_MARK = b"cycles: "
_CYCLES = struct.Struct("<d")
_CHANGE = struct.Struct("<4d")  # factor of the speed (0: a tenant's task), then bytes and cycles
_LEAST_FACTOR, _MOST_FACTOR = 1e-6, 1e6
_PAUSE_S = 0.02  # before a node that is not there is called again
Tenant = Callable[[float, float, float], None]  # bytes, cycles that nodes see, true cycles


def marked_input(content: bytes, cycles: float) -> bytes:
    """The input of a task that takes so many cycles, as long as `content` if there is room."""
    mark = _MARK + _CYCLES.pack(cycles)
    return mark + content[len(mark) :]


def true_cycles_of(content: bytes) -> float:
    """Cycles that a task with this input takes; NaN if it does not say, or says what cannot be."""
    if not content.startswith(_MARK) or len(content) < len(_MARK) + _CYCLES.size:
        return math.nan
    [cycles] = _CYCLES.unpack_from(content, len(_MARK))
    return float(cycles) if 0.0 < cycles <= MOST_AMOUNT else math.nan


def handler_of(change_speed: Callable[[float], None], arrive: Tenant | None) -> Any:
    """The service for a gRPC server; `arrive` takes tasks of tenants, None at an EN."""

    async def play(messages: AsyncIterator[bytes], context: Any) -> bytes:
        async for message in messages:
            wrong = _play(message, change_speed, arrive)
            if wrong:
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, wrong)
        return b""

    calls = {"Play": grpc.stream_unary_rpc_method_handler(play)}
    return grpc.method_handlers_generic_handler(SERVICE, calls)


def _play(message: bytes, change_speed: Callable[[float], None], arrive: Tenant | None) -> str:
    """Do what a message says; what is wrong with it, in one line, or nothing."""
    if len(message) != _CHANGE.size:
        return f"{len(message)} bytes: must be {_CHANGE.size}"
    factor, *task = _CHANGE.unpack(message)
    if _LEAST_FACTOR <= factor <= _MOST_FACTOR:
        change_speed(factor)
        return ""
    if arrive is None or factor != 0.0:
        return f"factor = {factor}: must be from {_LEAST_FACTOR:g} to {_MOST_FACTOR:g}"
    if not all(0.0 < amount <= MOST_AMOUNT for amount in task):
        return f"a task of {task}: bytes and cycles must be greater than 0"
    arrive(*task)
    return ""


class Surroundings:
    """The test bed's end of the stream to one node, opened again whenever it breaks."""

    def __init__(self, address: str) -> None:
        self._address, self._factor = address, 1.0
        self._out: asyncio.Queue[bytes] | None = None  # None: the node is not there
        self._there = asyncio.Event()
        self._keeping = asyncio.get_running_loop().create_task(self._keep())

    async def ready(self) -> None:
        """Wait until the node is there."""
        await self._there.wait()

    def change_speed(self, factor: float) -> None:
        """The node has another speed; one that is not there hears of it when it is back."""
        self._factor = factor
        self._send(_CHANGE.pack(factor, 0.0, 0.0, 0.0))

    def arrive(self, size: float, cycles: float, true_cycles: float) -> None:
        """A tenant's task comes to the node, and is lost if that is not there (R38)."""
        self._send(_CHANGE.pack(0.0, size, cycles, true_cycles))

    def _send(self, message: bytes) -> None:
        if self._out is not None:
            self._out.put_nowait(message)

    async def _keep(self) -> None:
        while True:
            async with grpc.aio.insecure_channel(self._address, CHANNEL_OPTIONS) as channel:
                with contextlib.suppress(grpc.aio.AioRpcError, TimeoutError):
                    await asyncio.wait_for(channel.channel_ready(), 1.0)
                    await self._stream(channel)
            self._out = None
            await asyncio.sleep(_PAUSE_S)

    async def _stream(self, channel: Any) -> None:
        """One stream; its end is noticed even while there is nothing to send."""
        call = channel.stream_unary(f"/{SERVICE}/Play")()
        out: asyncio.Queue[bytes] = asyncio.Queue()
        self._out = out
        if self._factor != 1.0:  # a new process runs at its nominal speed
            out.put_nowait(_CHANGE.pack(self._factor, 0.0, 0.0, 0.0))
        self._there.set()
        writing = asyncio.get_running_loop().create_task(_write(call, out))
        try:
            await call.code()
        finally:
            writing.cancel()
            call.cancel()

    async def close(self) -> None:
        """Close the connections over which the node's surroundings are changed."""
        self._keeping.cancel()
        await asyncio.gather(self._keeping, return_exceptions=True)


async def _write(call: Any, out: "asyncio.Queue[bytes]") -> None:
    with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
        while True:
            await call.write(await out.get())
