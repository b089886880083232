"""What passes between a batch and the processes of its worlds: framed messages, turns as bytes."""

import socket
import struct
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosmo.world.records import EN_TURN, OVER, RIDE_TURN, SN_TURN, Records
from cosmo.world.turns import (
    EN_ROWS,
    FEEDBACK_ROW,
    FEEDBACK_ROWS,
    RIDE_ROWS,
    SETTLED_ROW,
    SETTLED_ROWS,
    SN_ROWS,
    Turn,
)

# Kinds of message. A batch sends the first four, a worker the others.
BEGIN, STEP, OUTCOME, BEHIND_ALL = b"B", b"S", b"O", b"F"
READY, TURN, RESULT, ERROR = b"R", b"T", b"A", b"E"

_FRAME = struct.Struct("<cI")
_ANSWER = struct.Struct("<qd?")  # action, interval, ride
_HEAD = struct.Struct("<iIIq")  # what the world waits for; tasks settled, reported, generated

# What a turn holds of each kind of decision.
_PARTS = {
    EN_TURN: ("dispatch", "sn", "status", "status_ms", "up_link_mbps", "up_backlog_ms"),
    SN_TURN: ("update", "en", "acknowledged", "acknowledged_ms", "down_link_mbps"),
    RIDE_TURN: ("result", "result_acknowledged"),
    OVER: (),
}

# Where the rows of each kind of decision are counted, and which part says whose they are.
ROWS = {EN_TURN: EN_ROWS, SN_TURN: SN_ROWS, RIDE_TURN: RIDE_ROWS}
_WHOSE = {EN_TURN: "dispatch", SN_TURN: "update", RIDE_TURN: "result"}


def send(link: socket.socket, kind: bytes, payload: bytes = b"") -> None:
    """Send one message of a kind with its payload."""
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


def _parts(turn: Turn, waits: int) -> list[NDArray[Any]]:
    """The arrays of a kind of decision; beside what an EN sees, what is true."""
    parts = [getattr(turn.seen, name) for name in _PARTS[waits]]
    return [*parts, *turn.truth] if waits == EN_TURN else parts


def answer_bytes(turn: Turn, row: int) -> bytes:
    """What was decided in a row of the batch's turn; what was not asked does not matter."""
    action, send, interval_ms, numbers, ride, ride_numbers = (part[row] for part in turn.answers)
    plain = _ANSWER.pack(int(action), float(interval_ms), bool(ride))
    return plain + b"".join(each.tobytes() for each in (send, numbers, ride_numbers))


def answer_into(turn: Turn, payload: bytes) -> None:
    """The same, in the turn of the world's own process."""
    answers = turn.answers
    answers.action[0], answers.interval_ms[0], answers.ride[0] = _ANSWER.unpack_from(payload)
    start = _ANSWER.size
    for row in (answers.send[0], answers.numbers[0], answers.ride_numbers[0]):
        row[:] = np.frombuffer(payload, row.dtype, row.size, start)
        start += row.nbytes


def turn_bytes(turn: Turn, generated: int) -> bytes:
    """A turn of one world."""
    counts = turn.counts
    waits = next((kind for kind, rows in ROWS.items() if counts[rows]), OVER)
    settled = turn.settled[: counts[SETTLED_ROWS]]
    feedback = turn.seen.feedback[: counts[FEEDBACK_ROWS]]
    rows = [part[:1].tobytes() for part in _parts(turn, waits)]
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
    for part in _parts(turn, waits):
        place = part[row[waits] : row[waits] + 1]
        size = place.nbytes
        place[...] = np.frombuffer(payload, place.dtype, place.size, start).reshape(place.shape)
        start += size
    if waits != OVER:
        rows = getattr(turn.seen, _WHOSE[waits])
        rows["world"][row[waits]] = world
    settled = np.frombuffer(payload, SETTLED_ROW, count, start).copy()
    feedback = np.frombuffer(payload, FEEDBACK_ROW, told, start + settled.nbytes).copy()
    settled["world"] = feedback["world"] = world
    return Told(waits, generated, settled, feedback)
