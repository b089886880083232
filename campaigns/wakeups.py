"""How late this machine is, beside what is measured: what is no fault of a node.

A plain asyncio process is asked every few ms to wait for as long, to compute about as much as a
decision of a node does, and to answer (`Wakeups`). What it then takes longer is the machine's
lateness: of timers, of two processes that must be scheduled, and of what comes between them. As
another process may have more luck than a node, the time that a node itself was ready to run and had
no processor is read from the system, too (`Waits`).
"""

import asyncio
import bisect
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

EVERY_S = 0.01
WORK_S = 0.001
USUAL_MS = 5.0  # late by less is no stall
_KEPT = 60_000  # stalls at most


class Wakeups:
    """The process, and the stalls that it has met; an asynchronous context."""

    def __init__(self) -> None:
        self.late_ms: deque[float] = deque(maxlen=1_000_000)
        self._stalls: list[tuple[float, float]] = []  # apart, in order: from when until when, in s

    async def __aenter__(self) -> Self:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, __file__, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
        )
        self._asked = asyncio.create_task(self._ask())
        self._heard = asyncio.create_task(self._hear())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._asked.cancel()
        self._heard.cancel()
        self._process.kill()
        await self._process.wait()

    async def _ask(self) -> None:
        assert self._process.stdin is not None
        while True:
            self._process.stdin.write(f"{time.monotonic() + EVERY_S + WORK_S}\n".encode())
            await asyncio.sleep(EVERY_S)

    async def _hear(self) -> None:
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            self.heard(float(line), time.monotonic())

    def heard(self, due_s: float, now_s: float) -> None:
        """An answer that was due at one moment came at another."""
        self.late_ms.append((now_s - due_s) * 1000.0)
        if self.late_ms[-1] <= USUAL_MS:
            return
        # Answers come in the order in which they were due: only the last stall can be touched.
        while self._stalls and self._stalls[-1][1] >= due_s:
            due_s = min(due_s, self._stalls.pop()[0])
        self._stalls.append((due_s, now_s))
        del self._stalls[:-_KEPT]

    def stalled_ms(self, since_s: float, until_s: float) -> float:
        """How much of a time the machine was late in, as far as answers have come."""
        first = bisect.bisect_left(self._stalls, since_s, key=lambda stall: stall[1])
        total_s = 0.0
        for start_s, end_s in self._stalls[first:]:
            if start_s >= until_s:
                break
            total_s += min(end_s, until_s) - max(start_s, since_s)
        return 1000.0 * total_s


class Waits:
    """How long some processes have waited for a processor; those in a place may be replaced."""

    def __init__(self, processes: Callable[[], Sequence[int]]) -> None:
        """`processes` gives the present process of each place, by its number."""
        self._processes = processes
        self._last: dict[int, tuple[int, float]] = {}  # by place: its process, ms so far of that
        self._total = dict[int, float]()
        self._seen: dict[int, list[tuple[float, float]]] = {}  # by place: when, in s; total in ms

    async def watch(self) -> None:
        """Look, again and again."""
        while True:
            for place, number in enumerate(self._processes()):
                self.look(place, number, time.monotonic(), waited_ms(number))
            await asyncio.sleep(EVERY_S)

    def look(self, place: int, number: int, now_s: float, so_far_ms: float) -> None:
        """The process in a place has waited so long since its start."""
        before, ms = self._last.get(place, (number, so_far_ms))
        more = so_far_ms - ms if before == number else so_far_ms
        self._last[place] = number, so_far_ms
        self._total[place] = self._total.get(place, 0.0) + max(more, 0.0)
        self._seen.setdefault(place, []).append((now_s, self._total[place]))

    def waited_ms(self, place: int, since_s: float, until_s: float) -> float:
        """How long it waited in a time, from the last look before it to the first after it."""
        seen = self._seen.get(place, [])
        first = max(bisect.bisect_right(seen, since_s, key=lambda look: look[0]) - 1, 0)
        last = bisect.bisect_left(seen, until_s, key=lambda look: look[0])
        return seen[min(last, len(seen) - 1)][1] - seen[first][1] if seen else 0.0


def waited_ms(number: int) -> float:
    """How long the main thread of a process was ready and had no processor; 0 if nobody knows."""
    try:
        return int(Path(f"/proc/{number}/schedstat").read_text().split()[1]) / 1e6
    except (OSError, IndexError, ValueError):
        return 0.0


async def _serve() -> None:
    loop, reader = asyncio.get_running_loop(), asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)

    def answer(line: bytes) -> None:
        end_s = time.thread_time() + WORK_S
        while time.thread_time() < end_s:
            pass
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()

    while line := await reader.readline():
        loop.call_later(EVERY_S, answer, line)


if __name__ == "__main__":
    asyncio.run(_serve())
