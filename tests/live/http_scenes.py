"""HTTP services, an EN in front of them, and requests as they are on the wire."""

import asyncio
import io
from contextlib import asynccontextmanager

from aiohttp import web

from cosmo.live.config import changed_config, load_config
from cosmo.live.logs import Log
from cosmo.live.serving import Serving
from live.nodes import CALM

SHAPE = {
    "slots": 1, "cycles_per_ms": 1.0, "storage_bytes": 1e9, "queue_capacity": 1000,
    "up_mbps": 1e4, "down_mbps": 1e4,
}  # fmt: skip
PICKS = {
    "method.use": "in-flight", "expected.cycles": [1.0, 100.0],
    "expected.deadline_ms": [100.0, 15_000.0], "links.hop_delay_ms": 0.0,
}  # fmt: skip


class Service:
    """An HTTP service that others have written: it knows nothing of this package."""

    def __init__(self, handle):
        self._handle, self.requests, self.address = handle, [], ""

    async def __aenter__(self):
        async def note(request):
            self.requests.append(request)
            return await self._handle(request)

        self._runner = web.ServerRunner(
            web.Server(note, auto_decompress=False), shutdown_timeout=0.01
        )
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        port = site._server.sockets[0].getsockname()[1]
        self.address = f"127.0.0.1:{port}"
        return self

    async def __aexit__(self, *_):
        await self._runner.cleanup()


def en_config(services, fields=None, addresses=()):
    """An EN with an SN for each service; `addresses` are those of their daemons, if any."""
    peers = []
    for number, http in enumerate(services):
        address = addresses[number] if number < len(addresses) else ""
        peers.append({**SHAPE, "name": f"sn{number}", "http": http, "address": address})
    told = {
        **PICKS, **CALM, "listen": "127.0.0.1:0", "http.listen": "127.0.0.1:0",
        "behaviour.silent_ms": 2000.0, "peers": peers, **(fields or {}),
    }  # fmt: skip
    return changed_config(load_config("en"), told)


@asynccontextmanager
async def http_en(services, fields=None, addresses=()):
    """(the EN, the port of HTTP)."""
    serving = Serving(en_config(services, fields, addresses), Log("en0", "info", io.StringIO()))
    await serving.start()
    try:
        yield serving, serving._listener.http_port
    finally:
        await serving.stop(0)


async def told(port, text):
    """What is answered to these bytes, as they are; the connection is closed afterwards."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(text if isinstance(text, bytes) else text.replace("\n", "\r\n").encode())
    try:
        return await reader.read()
    finally:
        writer.close()


async def got(port, path="/", method="GET", **headers):
    """(status, headers, body) of a request without a body."""
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    text = "\n".join([f"{method} {path} HTTP/1.1", "host: a", "connection: close", *lines, "", ""])
    head, _, body = (await told(port, text)).partition(b"\r\n\r\n")
    first, *rest = head.decode().split("\r\n")
    return int(first.split()[1]), [tuple(line.split(": ", 1)) for line in rest], body
