"""What an EN costs behind gRPC: tasks in a second of the EN's processor time against a bare echo of
the same payload on the same stack, and against a bare proxy, which passes every call on to an echo
as an EN does that offloads it; and how long a decision takes, and how large the process is.

Processor time, not wall time: what else the machine does does not count.

python benchmarks/live.py [--small]
python benchmarks/live.py --minutes 10    how an EN is after so long at work (`live_minutes`)
"""

import asyncio
import multiprocessing
import sys
import time
from multiprocessing.connection import Connection

import grpc

from cosmo.live import wire
from cosmo.live.config import changed_config, load_config
from cosmo.live.processes import nodes
from cosmo.live.top import quantile_ms, scraped
from live_minutes import measure
from measured import sized
from processes_seen import processor_s, resident_mb

SECONDS = sized(5.0, 1.0)
CALLS_AT_ONCE = 32
PAYLOAD = bytes(35_000)


async def _bare(pipe: Connection, beyond: str) -> None:
    pass_on = grpc.aio.insecure_channel(beyond).unary_unary(wire.SUBMIT) if beyond else None

    async def answer(task: bytes, context: object) -> bytes:
        return b"" if pass_on is None else await pass_on(task)

    server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
    handler = grpc.unary_unary_rpc_method_handler(answer)
    service = grpc.method_handlers_generic_handler(f"{wire.PACKAGE}.En", {"Submit": handler})
    server.add_generic_rpc_handlers([service])
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    pipe.send(port)
    await server.wait_for_termination()


def bare_process(pipe: Connection, beyond: str) -> None:
    """A server that reads its input and says nothing, or asks another one first."""
    try:
        import uvloop

        uvloop.run(_bare(pipe, beyond))
    except ImportError:
        asyncio.run(_bare(pipe, beyond))


def bare(beyond: str = "") -> tuple[str, int]:
    """Address and process of such a server; it ends with this process."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=bare_process, args=(theirs, beyond), daemon=True)
    process.start()
    assert process.pid is not None
    return f"127.0.0.1:{ours.recv()}", process.pid


async def calls_per_s(address: str, pid: int) -> float:
    """Calls in a second of the server's processor time, some at a time."""
    task = wire.Task(cycles=1.0, deadline_us=10**7, input=PAYLOAD).SerializeToString()
    count, over = 0, time.monotonic() + SECONDS
    async with grpc.aio.insecure_channel(address) as channel:
        submit = channel.unary_unary(wire.SUBMIT)

        async def caller() -> None:
            nonlocal count
            while time.monotonic() < over:
                await submit(task)
                count += 1

        await submit(task)
        start = processor_s(pid)
        await asyncio.gather(*(caller() for _ in range(CALLS_AT_ONCE)))
        return count / (processor_s(pid) - start)


def main() -> None:
    """Measure and print."""
    echo = bare()
    proxy = bare(echo[0])
    fields: dict[str, object] = {
        "method.use": "priced-books",
        "admin": "127.0.0.1:0",
        "limits.calls_per_s": 1e6,
        "limits.burst": 10**6,
    }
    sn = changed_config(load_config("sn"), {"method.use": "priced-books"})
    for name in ("all-local", "priced-books", "all-offload"):
        en = changed_config(load_config("en"), {**fields, "method.use": name})
        with nodes([en], [sn]) as ([here], _):
            # Before and after, as the machine changes its pace.
            before = [asyncio.run(calls_per_s(*each)) for each in (echo, proxy)]
            rate = asyncio.run(calls_per_s(here.address, here.process.pid))
            after = [asyncio.run(calls_per_s(*each)) for each in (echo, proxy)]
            echoed, passed_on = (0.5 * (a + b) for a, b in zip(before, after, strict=True))
            found = scraped(f"127.0.0.1:{here.said('serving')[0]['admin']}")
            resident = resident_mb(here.process.pid)
        decision_ms = quantile_ms(found, "cosmo_decision_seconds", 0.99)
        print(
            f"{name}: {rate:.0f} tasks a processor second, {rate / echoed:.2f} of a bare echo's"
            f" {echoed:.0f}, {rate / passed_on:.2f} of a bare proxy's {passed_on:.0f};"
            f" decision p99 {decision_ms:.2f} ms, {resident:.0f} MB"
        )


if __name__ == "__main__":
    if "--minutes" in sys.argv:
        measure(float(sys.argv[sys.argv.index("--minutes") + 1]))
    else:
        main()
