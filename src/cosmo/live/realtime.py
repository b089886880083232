"""The clock and timers of a real node: monotonic, as fine as the system has them, or slowed down.

Timers go through a timerfd where there is one (Linux), since those of an event loop are rounded up
to a millisecond. How late they were is kept, for who wants to know what the machine can do.
"""

import asyncio
import contextlib
import ctypes
import heapq
import os
import sys
import time
from collections.abc import Callable

from cosmo.live.clock import FINISH, Call
from cosmo.live.samples import Window

_MONOTONIC = 1
_NONBLOCKING_CLOEXEC = os.O_NONBLOCK | getattr(os, "O_CLOEXEC", 0)
_ABSOLUTE = 1
_LONGEST_S = 86_400.0  # that the system is asked to wait; what is later is looked at again then
_FEW = 256  # timers that were cancelled and need not be cleared away yet


def new_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """What makes the event loop of a node: uvloop's where there is one, else Python's own."""
    try:
        import uvloop
    except ImportError:
        return None
    made: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return made


class _Spec(ctypes.Structure):
    """itimerspec: no interval, then seconds and nanoseconds of the moment."""

    _fields_ = [(name, ctypes.c_long) for name in ("every_s", "every_ns", "s", "ns")]


class _Descriptor:
    """A timerfd that an event loop can wait for."""

    def __init__(self) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self.number = libc.timerfd_create(_MONOTONIC, _NONBLOCKING_CLOEXEC)
        if self.number < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create")
        # Asked for twice a task: everything that a call needs is made beforehand.
        self._spec = _Spec(0, 0, 0, 0)
        self._given = ctypes.c_int(self.number), ctypes.c_int(_ABSOLUTE), ctypes.byref(self._spec)
        self._settime = ctypes.PyDLL(None).timerfd_settime

    def set(self, due_s: float) -> None:
        """Become readable at this moment of the monotonic clock."""
        self._spec.s, self._spec.ns = divmod(max(int(due_s * 1e9), 1), 10**9)
        self._settime(*self._given, None)

    def clear(self) -> None:
        """Take note that the moment has come."""
        with contextlib.suppress(BlockingIOError):
            os.read(self.number, 8)


class Pending:
    """A call that may still be cancelled."""

    __slots__ = ("_clock", "call")

    def __init__(self, call: Call, clock: "RealClock") -> None:
        self.call: Call | None = call
        self._clock = clock

    def cancel(self) -> None:
        """Cancel the call if it has not been made yet."""
        if self.call is not None:
            self.call = None
            self._clock.cancelled()


class RealClock:
    """Ms since it was made, `scale` times slower than real ones."""

    def __init__(self, loop: asyncio.AbstractEventLoop, scale: float = 1.0) -> None:
        self._loop, self.scale = loop, scale
        self._start = time.monotonic()
        self._heap: list[tuple[float, int, Pending]] = []
        self._count = self._cancelled = 0
        self._set_for = float("inf")
        self._fallback: asyncio.TimerHandle | None = None
        self._descriptor: _Descriptor | None = None
        self.lateness_ms = Window(4096)  # of timers, in real ms
        if sys.platform == "linux":
            try:
                self._descriptor = _Descriptor()
                loop.add_reader(self._descriptor.number, self._wake)
            except (OSError, AttributeError):
                self._descriptor = None

    @property
    def fine(self) -> bool:
        """Whether there is a timerfd."""
        return self._descriptor is not None

    def now(self) -> float:
        """Ms since the start."""
        return (time.monotonic() - self._start) * 1000.0 / self.scale

    def at(self, time_ms: float, kind: int, call: Call) -> Pending:
        """Make a call at a time; those of the same instant in the order of asking."""
        pending = Pending(call, self)
        heapq.heappush(self._heap, (time_ms, self._count, pending))
        self._count += 1
        if time_ms < self._set_for:
            self._set()
        return pending

    def move(self, timer: Pending, time_ms: float) -> Pending:
        """Make the call of a timer at another time; one that was made stays made."""
        call = timer.call
        if call is None:
            return timer
        timer.cancel()
        return self.at(time_ms, FINISH, call)

    def cancelled(self) -> None:
        """A call is not to be made; those are cleared away when they are more than half of all."""
        self._cancelled += 1
        if self._cancelled > _FEW and 2 * self._cancelled > len(self._heap):
            self._heap = [each for each in self._heap if each[2].call is not None]
            heapq.heapify(self._heap)
            self._cancelled = 0

    def forget_lateness(self) -> None:
        """What was late while a node started says nothing about it."""
        self.lateness_ms = Window(4096)

    def close(self) -> None:
        """Make no more calls."""
        self._heap.clear()
        if self._descriptor is not None:
            self._loop.remove_reader(self._descriptor.number)
            os.close(self._descriptor.number)
            self._descriptor = None
        elif self._fallback is not None:
            self._fallback.cancel()

    def _set(self) -> None:
        while self._heap and self._heap[0][2].call is None:
            heapq.heappop(self._heap)
            self._cancelled -= 1
        if not self._heap:
            self._set_for = float("inf")
            return
        self._set_for = self._heap[0][0]
        due_s = self._start + self._set_for * self.scale / 1000.0
        now_s = time.monotonic()
        if due_s <= now_s:  # in the loop's next turn, without asking the system
            self._loop.call_soon(self._ring)
            return
        due_s = min(due_s, now_s + _LONGEST_S)
        if self._descriptor is not None:
            self._descriptor.set(due_s)
            return
        if self._fallback is not None:
            self._fallback.cancel()
        self._fallback = self._loop.call_later(due_s - now_s, self._ring)

    def _wake(self) -> None:
        """The descriptor has become readable."""
        if self._descriptor is not None:
            self._descriptor.clear()
        self._ring()

    def _ring(self) -> None:
        now = self.now()
        while self._heap and self._heap[0][0] <= now:
            due, _, pending = heapq.heappop(self._heap)
            call, pending.call = pending.call, None  # cancelling it from now on means nothing
            if call is None:
                self._cancelled -= 1
                continue
            self.lateness_ms.add((self.now() - due) * self.scale)
            try:
                call()
            except Exception as error:  # one that fails must not take the others along
                told = {"message": "a timer's call has failed", "exception": error}
                self._loop.call_exception_handler(told)
        self._set()
