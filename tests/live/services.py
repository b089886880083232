"""Tiny HTTP services on loopback with a page of metrics, as servers of others have one."""

import asyncio
from contextlib import asynccontextmanager

VLLM = """# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{{engine="0",model_name="m"}} {running}
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{{engine="0",model_name="m"}} {waiting}
"""


def vllm_page(running, waiting=0):
    return VLLM.format(running=running, waiting=waiting)


class Service:
    """Answers every request with `page`, whole or as `raw` bytes; counts what it was asked."""

    def __init__(self):
        self.page, self.raw, self.asked, self.address, self.port = vllm_page(0), None, 0, "", 0
        self.more = ""  # further headers, each with its end of line
        self.answers = asyncio.Event()  # cleared: requests hang
        self.answers.set()

    async def serve(self, reader, writer):
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                self.asked += 1
                await self.answers.wait()
                body = self.page.encode()
                head = f"HTTP/1.1 200 OK\r\n{self.more}Content-Length: {len(body)}\r\n\r\n".encode()
                writer.write(head + body if self.raw is None else self.raw)
                await writer.drain()
                if self.raw is not None:
                    return
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def services(count, encrypted=None):
    """So many services."""
    made, servers = [], []
    for _ in range(count):
        service = Service()
        servers.append(await asyncio.start_server(service.serve, "127.0.0.1", 0, ssl=encrypted))
        service.port = servers[-1].sockets[0].getsockname()[1]
        service.address = f"127.0.0.1:{service.port}"
        made.append(service)
    try:
        yield made
    finally:
        for server in servers:
            server.close()
        for service in made:
            service.answers.set()
