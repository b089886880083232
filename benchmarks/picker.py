"""What an endpoint picker costs, and how well it chooses.

The first part needs no Envoy: a bare client opens a stream for each request as Envoy does, and the
picker's processor time for a request is compared with that of no-op pickers, one on the same
transport and one on `grpc.aio`. With Envoy at hand (`integrations/outsiders`, a wheel), the second
part plays unmodified clients and services behind it (`picker_success`).

python benchmarks/picker.py [--small]
"""

import asyncio
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import hpack

from cosmo.live.config import changed_config, load_config
from cosmo.live.picker import ext_proc, frames
from cosmo.live.picker.grpc_calls import message
from cosmo.live.processes import Running
from measured import SMALL, sized
from picker_success import compare_success, envoy_program
from processes_seen import processor_s

SECONDS = sized(5.0, 0.5)
WARM_S = sized(1.0, 0.2)
AT_ONCE = 16
ENDPOINTS = [f"10.0.0.{number}:8000" for number in range(1, 7)]
METHODS = ("in-flight", "power-of-d:keep=6", "cosmo-next")
HEADERS = {
    ":authority": "service.example", ":path": "/v1/chat/completions", ":method": "POST",
    ":scheme": "http", "user-agent": "some-client/1.0", "accept": "*/*",
    "content-type": "application/json", "content-length": "1234", "x-forwarded-proto": "http",
    "x-request-id": "3b1e0c1e-7d0c-4f8e-9a2c-0d3f1c2b4a5e", "x-cosmo-deadline-ms": "5000",
}  # fmt: skip
STREAM = [
    (":method", "POST"), (":scheme", "http"), (":path", ext_proc.PROCESS.decode()),
    (":authority", "picker"), ("te", "trailers"), ("content-type", "application/grpc"),
    ("x-envoy-internal", "true"), ("x-forwarded-for", "10.0.0.9"),
]  # fmt: skip


def _asking() -> tuple[bytes, dict[str, bytes]]:
    """Envoy's two messages about a request: its headers, and those of each endpoint's answer."""
    first = ext_proc.ProcessingRequest()
    for key, value in HEADERS.items():
        first.request_headers.headers.headers.add(key=key, raw_value=value.encode())
    first.protocol_config.SetInParent()
    answers = {}
    for address in ENDPOINTS:
        second = ext_proc.ProcessingRequest()
        second.response_headers.headers.headers.add(key=":status", raw_value=b"200")
        fields = second.attributes.add(key="envoy.filters.http.ext_proc").value.fields
        fields[ext_proc.UPSTREAM].string_value = address
        fields[ext_proc.DETAILS].string_value = "via_upstream"
        answers[address] = message(second.SerializeToString())
    return message(first.SerializeToString()), answers


class Client(asyncio.Protocol):
    """Keeps so many streams open on one connection, each as long as Envoy would."""

    def __init__(self) -> None:
        self.done, self._next, self._buffer = 0, 1, b""
        self._first, self._answers = _asking()
        self._encoder = hpack.Encoder()
        self._stage: dict[int, int] = {}  # of each stream: answers that have come

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        transport.write(frames.PREFACE + frames.frame(frames.SETTINGS, 0, 0))
        for _ in range(AT_ONCE):
            self._open()

    def _open(self) -> None:
        number, self._next = self._next, self._next + 2
        self._stage[number] = 0
        block = self._encoder.encode(STREAM)
        self._transport.write(
            frames.frame(frames.HEADERS, frames.END_HEADERS, number, block)
            + frames.frame(frames.DATA, 0, number, self._first)
        )

    def data_received(self, data: bytes) -> None:
        data, at = self._buffer + data, 0
        while len(data) - at >= 9:
            high, low, kind, flags, number = frames.HEAD.unpack_from(data, at)
            end = at + 9 + (high << 16 | low)
            if end > len(data):
                break
            self._take(kind, flags, number, data[at + 9 : end])
            at = end
        self._buffer = data[at:]

    def _take(self, kind: int, flags: int, number: int, content: bytes) -> None:
        if kind == frames.DATA:
            grown = frames.WORD.pack(len(content))
            out = frames.frame(frames.WINDOW, 0, 0, grown)
            if self._stage[number] == 0:
                [named] = [each for each in ENDPOINTS if each.encode() in content[:120]][:1]
                out += frames.frame(frames.DATA, 0, number, self._answers[named])
            else:
                out += frames.frame(frames.DATA, frames.END_STREAM, number)
            self._stage[number] += 1
            self._transport.write(out)
        elif kind == frames.HEADERS and flags & frames.END_STREAM:
            del self._stage[number]
            self.done += 1
            self._open()
        elif kind == frames.SETTINGS and not flags & frames.ACK:
            self._transport.write(frames.frame(frames.SETTINGS, frames.ACK, 0))
        elif kind == frames.PING and not flags & frames.ACK:
            self._transport.write(frames.frame(frames.PING, frames.ACK, 0, content))


async def _cost_us(port: int, pid: int) -> float:
    """Processor time of a picker for a request, in µs."""
    loop = asyncio.get_running_loop()
    transport, client = await loop.create_connection(Client, "127.0.0.1", port)
    await asyncio.sleep(WARM_S)
    before, done = processor_s(pid), client.done
    await asyncio.sleep(SECONDS)
    cost_s, count = processor_s(pid) - before, client.done - done
    transport.close()
    assert count, "no request was answered"
    return 1e6 * cost_s / count


async def _grpc_aio(pipe: Connection) -> None:
    import grpc

    picked = ext_proc.picked(ENDPOINTS[0])[5:]
    go_on = ext_proc.GO_ON["response_headers"][5:]

    async def process(stream: Any, context: Any) -> Any:
        async for each in stream:
            yield picked if each.HasField("request_headers") else go_on

    handler = grpc.stream_stream_rpc_method_handler(process, ext_proc.ProcessingRequest.FromString)
    server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
    service = grpc.method_handlers_generic_handler(ext_proc.SERVICE, {"Process": handler})
    server.add_generic_rpc_handlers([service])
    pipe.send(server.add_insecure_port("127.0.0.1:0"))
    await server.start()
    await server.wait_for_termination()


async def _own(pipe: Connection) -> None:
    from cosmo.live.picker import grpc_calls
    from cosmo.live.picker.http2 import Http2Connection

    class NoOp(grpc_calls.Call):
        def message(self, content: bytes) -> None:
            asking = ext_proc.read(content)
            first = asking.WhichOneof("request") == "request_headers"
            self.send(
                ext_proc.picked(ENDPOINTS[0]) if first else ext_proc.GO_ON["response_headers"]
            )

    opened = grpc_calls.opened({ext_proc.PROCESS: lambda stream, _: NoOp(stream, 10**6)})
    server = await asyncio.get_running_loop().create_server(
        lambda: Http2Connection(opened, 10_000, lambda _: True, lambda _: None), "127.0.0.1", 0
    )
    pipe.send(server.sockets[0].getsockname()[1])
    await server.serve_forever()


def no_op(pipe: Connection, own: bool) -> None:
    """A process that names the same endpoint for every request."""
    import uvloop

    uvloop.run(_own(pipe) if own else _grpc_aio(pipe))


@contextmanager
def no_op_picker(own: bool) -> Iterator[tuple[int, int]]:
    """(port, process) of one on the picker's own transport, or on `grpc.aio`."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=no_op, args=(there, own), daemon=True)
    process.start()
    try:
        assert process.pid is not None
        yield here.recv(), process.pid
    finally:
        process.terminate()
        process.join()


@contextmanager
def picker(method: str) -> Iterator[tuple[int, int]]:
    """(port, process) of `cosmo serve picker` with a method."""
    told: dict[str, object] = {
        "listen": "127.0.0.1:0",
        "method.use": method,
        "picker.endpoints": f"static:{','.join(ENDPOINTS)}",
        "behaviour.fresh_ms": 1e9,
    }
    with tempfile.TemporaryDirectory() as folder:
        running = Running(changed_config(load_config("picker"), told), Path(folder))
        try:
            yield running.port, running.process.pid
        finally:
            running.end()


def costs() -> dict[str, float]:
    """Print the processor time for a request, in µs; the median of each picker."""
    found: dict[str, list[float]] = {}
    for _ in range(sized(3, 1)):  # in turn, so that a busy minute hits all of them
        for name in ("no-op on grpc.aio", "no-op", *METHODS):
            made = no_op_picker(name == "no-op") if name.startswith("no-op") else picker(name)
            with made as (port, pid):
                found.setdefault(name, []).append(asyncio.run(_cost_us(port, pid)))
    print(f"processor time of a picker for a request ({AT_ONCE} at a time), µs: median (all)")
    medians = {name: sorted(several)[len(several) // 2] for name, several in found.items()}
    bare = medians["no-op on grpc.aio"]
    for name, several in found.items():
        middle = medians[name]
        every = ", ".join(f"{each:.0f}" for each in several)
        print(f"  {name:18} {middle:6.0f} ({every}); {middle / bare:.2f} of a no-op on grpc.aio")
    return medians


def main() -> None:
    started = time.perf_counter()
    costs()
    program = envoy_program()
    if program is None:
        print("Envoy is left out: run `make test-integrations` once, which fetches it")
    else:
        compare_success(program, small=SMALL)
    print(f"took {time.perf_counter() - started:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
