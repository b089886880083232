"""What `cosmo live watch` costs the nodes that it reads, against nobody watching.

Daemons run as processes of their own: an EN and its SNs, and an endpoint picker. Their processor
time is read over equal periods, in turn without and with the command, which reads them as often as
it ever does. The difference is printed in percent of a core: the median of all rounds, and each.
Processor time, not wall time; a calm machine still gives steadier numbers.

python benchmarks/live_watch.py [--small]
"""

import asyncio
import http.client
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from cosmo.live.client import Client
from cosmo.live.config import changed_config, load_config
from cosmo.live.processes import Running, nodes
from cosmo.live.top import scraped
from cosmo.web.watching import FASTEST_S
from measured import sized
from picker import ENDPOINTS
from picker import Client as Proxy
from processes_seen import processor_s

PERIOD_S = sized(20.0, 1.0)
ROUNDS = sized(5, 1)
SNS = sized((1, 5), (1,))  # with more of them, an EN is read less often
ALLOWED = 1.0  # % of a core
_PATIENCE_S = 60.0
_TOLD: dict[str, object] = {"admin": "127.0.0.1:0", "behaviour.silent_ms": 30_000.0}


def admin(running: Running) -> str:
    """The address that is watched."""
    return f"127.0.0.1:{running.wait_for('serving')['admin']}"


@contextmanager
def watched(addresses: list[str]) -> Iterator[Callable[[], int]]:
    """The command at work, with a page that looks: how many readings have come so far."""
    command = [sys.executable, "-m", "cosmo", "live", "watch", *addresses]
    told = subprocess.Popen(
        [*command, "--every", str(FASTEST_S), "--no-open"], stderr=subprocess.PIPE, text=True
    )
    count = 0

    def look(stream: http.client.HTTPResponse) -> None:
        nonlocal count
        while line := stream.readline():
            count += line.startswith(b"data:")

    try:
        assert told.stderr is not None
        url = urlsplit(told.stderr.readline().split()[1])
        deadline = time.monotonic() + _PATIENCE_S
        while True:  # it says where it will listen a moment before it does
            page = http.client.HTTPConnection(url.netloc, timeout=_PATIENCE_S)
            try:
                page.request("GET", f"{url.path}events")
                break
            except ConnectionRefusedError:
                assert time.monotonic() < deadline, "it never listens"
                time.sleep(0.05)
        threading.Thread(target=look, args=(page.getresponse(),), daemon=True).start()
        while not count:
            assert time.monotonic() < deadline, "no reading comes"
            time.sleep(0.05)
        yield lambda: count
    finally:
        told.terminate()
        told.communicate()


def shares(pids: dict[str, int]) -> dict[str, float]:
    """Percent of a core that each process uses during a period."""
    start, before = time.monotonic(), {name: processor_s(pid) for name, pid in pids.items()}
    time.sleep(PERIOD_S)
    spent_s = time.monotonic() - start
    return {name: 100.0 * (processor_s(pids[name]) - before[name]) / spent_s for name in pids}


def compare(running: dict[str, Running]) -> None:
    """Measure daemons, all of them watched together, and print a line for each."""
    addresses = [admin(each) for each in running.values()]
    pids = {name: each.process.pid for name, each in running.items()}
    alone: dict[str, list[float]] = {name: [] for name in running}
    more: dict[str, list[float]] = {name: [] for name in running}
    rates = []
    for _ in range(ROUNDS):
        for name, share in shares(pids).items():
            alone[name].append(share)
        with watched(addresses) as readings:
            before, start = readings(), time.monotonic()
            for name, share in shares(pids).items():
                more[name].append(share - alone[name][-1])
            rates.append((readings() - before) / (time.monotonic() - start))
    for name in running:
        added, every = statistics.median(more[name]), ", ".join(f"{x:.2f}" for x in more[name])
        print(
            f"{name}: nobody watches {statistics.median(alone[name]):.2f} % of a core; watched"
            f" {statistics.median(rates):.1f} times a second it uses {added:.2f} % more ({every});"
            f" {added / ALLOWED:.2f} of what is allowed"
        )


def en_and_sns(count: int) -> None:
    """An EN that holds a status of each of its SNs and has sent tasks."""
    told = {**_TOLD, "method.use": "power-of-d"}
    base = load_config("en")
    names = [f"sn{number}" for number in range(count)]
    peers = [{**base.peers[0].model_dump(), "name": name} for name in names]
    en = changed_config(base, {**told, "peers": peers})
    sns = [changed_config(load_config("sn"), {**told, "name": name}) for name in names]
    with nodes([en], sns) as ([here], [there, *_]):
        with Client(here.address) as client:
            for _ in range(20 * count):
                client.submit(b"x" * 2000, deadline_ms=5000.0, cycles=1e5)
        told_of = {
            each.labels["sn"] for each in scraped(admin(here)) if each.name == "cosmo_status_value"
        }
        print(f"EN with {count} SN: it holds statuses of {len(told_of)}")
        compare({f"EN with {count} SN": here, f"one of {count} SN": there})


def picker() -> None:
    """A picker that has sent requests to its endpoints."""
    told = {**_TOLD, "listen": "127.0.0.1:0", "picker.endpoints": f"static:{','.join(ENDPOINTS)}"}
    with tempfile.TemporaryDirectory() as folder:
        running = Running(changed_config(load_config("picker"), told), Path(folder))
        try:
            asyncio.run(_requests(running.port))
            compare({f"picker with {len(ENDPOINTS)} endpoints": running})
        finally:
            running.end()


async def _requests(port: int) -> None:
    loop = asyncio.get_running_loop()
    transport, proxy = await loop.create_connection(Proxy, "127.0.0.1", port)
    async with asyncio.timeout(_PATIENCE_S):
        while proxy.done < 20 * len(ENDPOINTS):
            await asyncio.sleep(0.05)
    transport.close()


if __name__ == "__main__":
    for sns in SNS:
        en_and_sns(sns)
    picker()
