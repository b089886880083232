"""What passes between a batch and the processes of its worlds: framed messages, turns as bytes."""

import socket
import struct
from typing import NamedTuple

import numpy as np

from cosmo.world.records import (
    EN_ROWS,
    EN_TURN,
    FEEDBACK_ROW,
    FEEDBACK_ROWS,
    OVER,
    SETTLED_ROW,
    SETTLED_ROWS,
    SN_ROWS,
    SN_TURN,
    Records,
    Turn,
)

# Kinds of message. A batch sends the first three, a worker the others.
BEGIN, STEP, OUTCOME = b"B", b"S", b"O"
READY, TURN, RESULT, ERROR = b"R", b"T", b"A", b"E"

_FRAME = struct.Struct("<cI")
_ANSWER = struct.Struct("<qd?")  # action, interval, send
_HEAD = struct.Struct("<iIIq")  # what the world waits for; tasks settled, told of, generated

# What a turn holds of each kind of decision.
_PARTS = {
    EN_TURN: (
        "dispatch",
        "status",
        "status_source",
        "up_link",
        "up_backlog",
        "estimate",
        "feasible",
        "true_state",
    ),
    SN_TURN: ("update", "acknowledged", "acknowledged_source", "down_link"),
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


def answer_bytes(turn: Turn, row: int) -> bytes:
    """What was decided in a row of the batch's turn; what was not asked does not matter."""
    plain = _ANSWER.pack(int(turn.action[row]), float(turn.interval[row]), bool(turn.send[row]))
    numbers: bytes = turn.numbers[row].tobytes()
    return plain + numbers


def answer_into(turn: Turn, payload: bytes) -> None:
    """The same, in the turn of the world's own process."""
    turn.action[0], turn.interval[0], turn.send[0] = _ANSWER.unpack_from(payload)
    turn.numbers[0] = np.frombuffer(payload, np.float64, offset=_ANSWER.size)


def turn_bytes(turn: Turn, generated: int) -> bytes:
    """A turn of one world."""
    counts = turn.counts
    waits = EN_TURN if counts[EN_ROWS] else SN_TURN if counts[SN_ROWS] else OVER
    settled = turn.settled[: counts[SETTLED_ROWS]]
    feedback = turn.feedback[: counts[FEEDBACK_ROWS]]
    rows = [getattr(turn, name)[:1].tobytes() for name in _PARTS[waits]]
    head = _HEAD.pack(waits, len(settled), len(feedback), generated)
    return b"".join([head, *rows, settled.tobytes(), feedback.tobytes()])


class Told(NamedTuple):
    """What a turn says beyond the rows that it has filled in."""

    waits_for: int
    generated: int
    settled: Records
    feedback: Records


def turn_into(turn: Turn, world: int, row: dict[int, int], payload: bytes) -> Told:
    """Put a world's turn into a row of the batch's: `row` says which, for either kind."""
    waits, count, told, generated = _HEAD.unpack_from(payload)
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
    feedback = np.frombuffer(payload, FEEDBACK_ROW, told, start + settled.nbytes).copy()
    settled["world"] = feedback["world"] = world
    return Told(waits, generated, settled, feedback)
