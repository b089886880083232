"""Doors that are no command: a picker's connection, a choice of the playground, an EN's HTTP port.

Each reads a file of its case and ends as a command would: exit code 0 if what it says was taken, 2
and one line if it was refused. Whatever stays behind, or fails inside, is raised.
"""

import asyncio
import io
import json
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Never

import hpack
from door_http import http

from cosmo.errors import InputError
from cosmo.live.config import changed_config, load_config
from cosmo.live.logs import Log
from cosmo.live.picker import ext_proc, frames
from cosmo.live.picker.frames import DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, frame
from cosmo.live.picker.grpc_calls import message
from cosmo.live.serving import Serving
from cosmo.web.playground import Playground

SAID = "said"  # the file that a door reads
THREE = "static:10.0.0.1:80,10.0.0.2:80,10.0.0.3:80"
OPENING = frames.PREFACE + frame(frames.SETTINGS, 0, 0)
_PIECE = 4000  # bytes that come at once
_FIELDS = [
    (b":method", b"POST"), (b":scheme", b"http"), (b":path", ext_proc.PROCESS),
    (b"te", b"trailers"), (b"content-type", b"application/grpc"),
]  # fmt: skip


def call(number: int, fields: list[tuple[bytes, bytes]] | None = None) -> bytes:
    """The headers of a call of the picker."""
    block = hpack.Encoder().encode(_FIELDS if fields is None else fields)
    return frame(HEADERS, END_HEADERS, number, bytes(block))


def data(number: int, *messages: bytes, ended: bool = False) -> bytes:
    """Messages of a call, in one frame."""
    content = b"".join(map(message, messages))
    return frame(DATA, END_STREAM if ended else 0, number, content)


class _Transport:
    """Takes what a connection writes; the peer is on this machine."""

    def __init__(self) -> None:
        self.written, self.open = bytearray(), True

    def write(self, content: bytes) -> None:
        self.written += content

    def close(self) -> None:
        self.open = False

    abort = close

    def pause_reading(self) -> None:
        pass

    resume_reading = pause_reading

    def get_extra_info(self, name: str) -> Any:
        return ("127.0.0.1", 9) if name == "peername" else None

    def kinds(self) -> list[int]:
        """Of all frames that were written."""
        found, at = [], 0
        while at < len(self.written):
            high, low, kind, _, _ = frames.HEAD.unpack_from(self.written, at)
            found.append(kind)
            at += 9 + (high << 16 | low)
        return found


def _refused(why: str) -> Never:
    print(f"cosmo: {why}", file=sys.stderr)
    sys.exit(2)


async def _picker() -> None:
    config = changed_config(
        load_config("picker"), {"listen": "127.0.0.1:0", "picker.endpoints": THREE}
    )
    serving = Serving(config, Log("picker", "warning", io.StringIO()))
    faults: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, told: faults.append(told))
    try:
        node: Any = serving.node
        listener: Any = serving._listener
        node.take_endpoints(await anext(node._source))
        timers = len(serving.clock._heap)
        taken, broken = await _say(listener, Path(SAID).read_bytes())
        decided = node.core._numbers
        good = headers_message()
        await _say(listener, OPENING + call(1) + data(1, good.SerializeToString(), ended=True))
        assert node.core._numbers == decided + 1, "a good request after it is not served"
        left = node.in_flight, sum(node.core.open), node.budget.held
        assert left == (0, 0, 0), f"left behind: {left}"
        assert listener._open_streams.total == 0, "streams that nobody has are counted"
        live = [each for each in serving.clock._heap if each[2].call is not None]
        assert len(live) <= timers, "timers are left behind"
        assert not faults, faults[0]
    finally:
        await serving.stop(0)
    if broken or not decided or not taken:
        _refused("no request was taken" if not broken else "the protocol was broken")


async def _say(listener: Any, content: bytes) -> tuple[bool, bool]:
    """(whether anything was answered, whether the connection was ended) for these bytes."""
    transport, connection = _Transport(), listener._connection()
    connection.connection_made(transport)
    for at in range(0, len(content), _PIECE):
        connection.data_received(content[at : at + _PIECE])
        while connection._resting:
            await asyncio.sleep(0)
    kinds = transport.kinds()
    connection.connection_lost(None)
    assert connection.streams == {}, "streams of a connection that is gone"
    return HEADERS in kinds, GOAWAY in kinds


def headers_message(phase: str = "request_headers", **values: str) -> Any:
    """A message with the headers of a request or an answer."""
    made = ext_proc.ProcessingRequest()
    http = getattr(made, phase)
    http.SetInParent()
    for name, value in values.items():
        http.headers.headers.add(key=name.replace("_", "-"), raw_value=value.encode())
    return made


async def _page() -> None:
    playground = Playground(Path("exported"))
    try:
        told = json.loads(Path(SAID).read_bytes())
        await playground.choose(told)
    except InputError as error:
        _refused(str(error))
    except (ValueError, RecursionError):
        _refused("must be JSON")
    async for event in playground.events():
        json.dumps(event, allow_nan=False)
        assert event["kind"] != "error", event["error"]
        if event["kind"] == "piece":
            break
    await playground.end()


def _through(door: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    def carried_out() -> None:
        asyncio.run(door())
        sys.exit(0)

    return carried_out


async def _http() -> None:
    if why := await http():
        _refused(why)


DOORS = {"picker": _through(_picker), "page": _through(_page), "http": _through(_http)}
