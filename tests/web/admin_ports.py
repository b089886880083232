"""Admin ports on loopback that say what a test tells them to say."""

import asyncio
import threading
from contextlib import contextmanager

from slow import LIMIT_S


def en_text(name, method="aov-gap", told=(2, 0.0, 3e7, 1e5), age_s=0.25, sn="s0"):
    values = "".join(
        f'cosmo_status_value{{node="{name}",sn="{sn}",number="{k}"}} {value}\n'
        for k, value in enumerate(told)
    )
    return (
        f'cosmo_tasks_in_node{{node="{name}"}} 1\ncosmo_work_cycles{{node="{name}"}} 4e6\n'
        f'cosmo_method_info{{node="{name}",method="{method}"}} 1\n{values}'
        f'cosmo_status_age_seconds{{node="{name}",sn="{sn}"}} {age_s}\n'
        f'cosmo_sn_silent{{node="{name}",sn="{sn}"}} 0\n'
        f'cosmo_statuses_total{{node="{name}",sn="{sn}"}} 7\n'
        f'cosmo_decisions_total{{node="{name}",action="{sn}"}} 5\n'
    )


def sn_text(name, work=9e7):
    return f'cosmo_tasks_in_node{{node="{name}"}} 3\ncosmo_work_cycles{{node="{name}"}} {work}\n'


class _Node:
    """An admin port that says what it is told to say."""

    def __init__(self):
        self.text, self.asked, self.port = "", 0, 0

    async def answer(self, reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        self.asked += 1
        data = self.text.encode()
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(data)}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode() + data)
        await writer.drain()
        writer.close()


@contextmanager
def admin_ports(*texts):
    """Admin ports on loopback, in a thread."""
    nodes = [_Node() for _ in texts]
    loop, ready = asyncio.new_event_loop(), threading.Event()
    over = asyncio.Event()

    async def run():
        servers = [await asyncio.start_server(node.answer, "127.0.0.1", 0) for node in nodes]
        for node, text, server in zip(nodes, texts, servers, strict=True):
            node.text, node.port = text, server.sockets[0].getsockname()[1]
        ready.set()
        await over.wait()
        for server in servers:
            server.close()
            await server.wait_closed()

    thread = threading.Thread(target=loop.run_until_complete, args=(run(),))
    thread.start()
    assert ready.wait(LIMIT_S)
    try:
        yield nodes
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()
        loop.close()
