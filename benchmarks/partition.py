"""A network that can be cut: a proxy on loopback that stops forwarding, and goes on when told."""

import asyncio


class Proxy:
    """Forwards connections to an address; while cut, nothing passes and nothing is hung up."""

    def __init__(self, address: str) -> None:
        self._host, _, self._port = address.rpartition(":")
        self._whole = asyncio.Event()
        self._whole.set()
        self._running: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> "Proxy":
        self._server = await asyncio.start_server(self._meet, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for each in self._running:
            each.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    @property
    def address(self) -> str:
        """Where it listens."""
        assert self._server is not None
        return f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def cut(self) -> None:
        """From now on nothing passes."""
        self._whole.clear()

    def heal(self) -> None:
        """It passes again, what was held back first."""
        self._whole.set()

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._whole.wait()
            there_reader, there = await asyncio.open_connection(self._host, int(self._port))
        except OSError:
            writer.close()
            return
        for source, sink in ((reader, there), (there_reader, writer)):
            task = asyncio.get_running_loop().create_task(self._pump(source, sink))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(65_536):
                await self._whole.wait()
                sink.write(data)
                await sink.drain()
        except OSError:
            pass  # one end has hung up: so does the other
        finally:
            sink.close()
