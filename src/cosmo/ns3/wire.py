"""What passes between a batch and the processes of its worlds: framed messages, turns as bytes."""

import socket
import struct
from typing import NamedTuple

import numpy as np

from cosmo.world import kernel
from cosmo.world.records import EN_TURN, OVER, SETTLED_ROW, SN_TURN, Records, Turn

# Kinds of message. A batch sends the first four, a worker the others.
BEGIN, STEP, OUTCOME, PING = b"B", b"S", b"O", b"P"
READY, TURN, RESULT, ERROR = b"R", b"T", b"A", b"E"

_FRAME = struct.Struct("<cI")
_ANSWER = struct.Struct("<qd?")  # action, interval, send
_HEAD = struct.Struct("<iIq")  # what the world waits for, settled tasks, tasks generated

# What a turn holds of each kind of decision.
_PARTS = {
    EN_TURN: (
        "dispatch",
        "cached_state",
        "cached_source",
        "up_link",
        "up_backlog",
        "estimate",
        "feasible",
        "true_state",
    ),
    SN_TURN: ("update", "acknowledged_state", "acknowledged_source", "down_link"),
    OVER: (),
}


def send(link: socket.socket, kind: bytes, payload: bytes = b"") -> None:
    """One message."""
    link.sendall(_FRAME.pack(kind, len(payload)) + payload)


def receive(link: socket.socket) -> tuple[bytes, bytes]:
    """The next message; EOFError if the other end is gone."""
    kind, size = _FRAME.unpack(_exactly(link, _FRAME.size))
    return kind, _exactly(link, size)


def _exactly(link: socket.socket, size: int) -> bytes:
    got = link.recv(size) if size else b""
    while len(got) < size:
        more = link.recv(size - len(got))
        if not more:
            raise EOFError
        got += more
    return got


def answer_bytes(action: int, send_it: bool, interval_ms: float) -> bytes:
    """What was decided for one world; what was not asked does not matter."""
    return _ANSWER.pack(action, interval_ms, send_it)


def answer_into(turn: Turn, payload: bytes) -> None:
    """The same, in the turn of the world's own process."""
    turn.action[0], turn.interval[0], turn.send[0] = _ANSWER.unpack(payload)


def turn_bytes(turn: Turn, generated: int) -> bytes:
    """A turn of one world."""
    counts = turn.counts
    waits = EN_TURN if counts[kernel.EN_ROWS] else SN_TURN if counts[kernel.SN_ROWS] else OVER
    settled = turn.settled[: counts[kernel.SETTLED_ROWS]]
    rows = [getattr(turn, name)[:1].tobytes() for name in _PARTS[waits]]
    return b"".join([_HEAD.pack(waits, len(settled), generated), *rows, settled.tobytes()])


class Told(NamedTuple):
    """What a turn says beyond the rows that it has filled in."""

    waits_for: int
    generated: int
    settled: Records


def turn_into(turn: Turn, world: int, row: dict[int, int], payload: bytes) -> Told:
    """Put a world's turn into a row of the batch's: `row` says which, for either kind."""
    waits, count, generated = _HEAD.unpack_from(payload)
    start = _HEAD.size
    for name in _PARTS[waits]:
        place = getattr(turn, name)[row[waits] : row[waits] + 1]
        size = place.nbytes
        place[...] = np.frombuffer(payload, place.dtype, place.size, start).reshape(place.shape)
        start += size
    if waits != OVER:
        rows = turn.dispatch if waits == EN_TURN else turn.update
        rows["world"][row[waits]] = world
    settled = np.frombuffer(payload, SETTLED_ROW, count, start).copy()
    settled["world"] = world
    return Told(waits, generated, settled)
