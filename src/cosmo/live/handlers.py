"""Who does the work of tasks: Python functions in processes of their own, or programs.

A function is called as `function(kind, input, cycles, budget_ms)` and returns bytes. There is one
process for each slot; a task that is cancelled takes its process along, and another is started.
"""

import asyncio
import contextlib
import multiprocessing
import os
import shlex
import signal
from collections.abc import Callable
from typing import Any

from cosmo.live.clock import Clock, Emulated, Failed, Finished, Timer, Worker
from cosmo.live.config import NodeConfig
from cosmo.live.tasks import Item
from cosmo.live.worker import function_of, too_much, work

_PIECE = 65_536  # bytes of an output that are read at a time


class _Process:
    """One worker process, and what it is doing."""

    def __init__(self, target: str, loop: asyncio.AbstractEventLoop, most_bytes: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self._loop = loop
        self.process = context.Process(target=work, args=(target, theirs, most_bytes), daemon=True)
        self.process.start()
        theirs.close()
        self.ready = False
        self.given: tuple[Any, ...] | None = None
        self.told: Callable[[bool, bytes], None] | None = None
        loop.add_reader(self.pipe.fileno(), self._read)

    def give(self, given: tuple[Any, ...], told: Callable[[bool, bytes], None]) -> None:
        self.given, self.told = given, told
        if self.ready:
            self._send()

    def _send(self) -> None:
        # If it has died meanwhile, the end of its pipe is about to say so.
        with contextlib.suppress(OSError):
            self.pipe.send(self.given)

    def _read(self) -> None:
        try:
            good, output = self.pipe.recv()
        except (EOFError, OSError):
            good, output = False, b"the worker process has died"
            self.end()
        if good and not self.ready:
            self.ready = True
            if self.given is not None:
                self._send()
            return
        told, self.told, self.given = self.told, None, None
        if told is not None:
            told(good, output)

    @property
    def dead(self) -> bool:
        return self.pipe.closed

    def end(self) -> None:
        if not self.pipe.closed:
            self._loop.remove_reader(self.pipe.fileno())
            self.pipe.close()
            self.process.kill()
            self.process.join(5.0)


class _Cancel:
    """Ends the work on a task."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call

    def cancel(self) -> None:
        self._call()


class Processes:
    """A function in processes, one a slot."""

    exact = False

    def __init__(self, target: str, slots: int, clock: Clock, most_bytes: int) -> None:
        """Outputs of more than `most_bytes` are failures: no message could carry them."""
        function_of(target)  # what cannot be imported is refused at once
        self._most = most_bytes
        self._target, self._clock, self._loop = target, clock, asyncio.get_running_loop()
        self._idle = [_Process(target, self._loop, most_bytes) for _ in range(slots)]
        self._all = list(self._idle)

    def run(self, item: Item, finish_ms: float, finished: Finished, failed: Failed) -> Timer:
        """Have an idle process call the function."""
        process = self._idle.pop() if self._idle else self._another()
        if process.dead:
            self._all.remove(process)
            process = self._another()

        def told(good: bool, output: bytes) -> None:
            self._idle.append(process)
            if good:
                finished(output)
            else:
                failed(output.decode(errors="replace"))

        budget_ms = item.expires_ms - self._clock.now()
        process.give((item.kind, item.input, item.cycles, budget_ms), told)
        return _Cancel(lambda: self._abandon(process))

    def move(self, timer: Timer, finish_ms: float) -> Timer:
        """Nothing: real work takes as long as it takes."""
        return timer

    def _another(self) -> _Process:
        process = _Process(self._target, self._loop, self._most)
        self._all.append(process)
        return process

    def _abandon(self, process: _Process) -> None:
        if process.told is not None:
            process.told = None
            process.end()
            self._all.remove(process)
            self._idle.insert(0, self._another())

    def close(self) -> None:
        """End all worker processes."""
        for process in self._all:
            process.end()


class Commands:
    """A program for each task: input on its standard input, output on its standard output."""

    exact = False

    def __init__(self, command: str, clock: Clock, most_bytes: int) -> None:
        """Outputs of more than `most_bytes` are failures: no message could carry them."""
        self._command, self._clock, self._most = shlex.split(command), clock, most_bytes
        self._running: set[asyncio.Task[None]] = set()

    def run(self, item: Item, finish_ms: float, finished: Finished, failed: Failed) -> Timer:
        """Start the program for `item`; returns its task, which can be cancelled."""
        task = asyncio.get_running_loop().create_task(self._run(item, finished, failed))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task  # type: ignore[return-value]

    def move(self, timer: Timer, finish_ms: float) -> Timer:
        """Nothing: real work takes as long as it takes."""
        return timer

    async def _run(self, item: Item, finished: Finished, failed: Failed) -> None:
        start = asyncio.get_running_loop().create_task(self._start(item))
        try:
            process = await asyncio.shield(start)  # one that is being started is not lost sight of
            output = await self._output(process, item.input)
        except asyncio.CancelledError:
            with contextlib.suppress(OSError, ValueError):
                process = await start
                os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
            raise
        except (OSError, ValueError) as error:
            failed(f"the command cannot be started ({getattr(error, 'strerror', '') or error})")
            return
        if len(output) > self._most:
            failed(too_much(self._most))
        elif process.returncode == 0:
            finished(output)
        else:
            failed(f"the command ended with {process.returncode}")

    async def _output(self, process: asyncio.subprocess.Process, content: bytes) -> bytes:
        """What a program writes until it ends; one that writes too much is ended."""
        assert process.stdin is not None
        assert process.stdout is not None
        feeding = asyncio.get_running_loop().create_task(_feed(process.stdin, content))
        output = bytearray()
        try:
            while piece := await process.stdout.read(_PIECE):
                if len(output) <= self._most:  # what comes after that is not kept
                    output += piece
                    if len(output) > self._most:
                        with contextlib.suppress(OSError):
                            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        finally:
            feeding.cancel()
        return bytes(output)

    async def _start(self, item: Item) -> asyncio.subprocess.Process:
        budget = item.expires_ms - self._clock.now()
        told = {"KIND": item.kind, "CYCLES": f"{item.cycles:.0f}", "BUDGET_MS": f"{budget:.3f}"}
        return await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, **{f"COSMO_{name}": text for name, text in told.items()}},
            start_new_session=True,  # what it starts is ended with it
        )

    def close(self) -> None:
        """End all programs that are running."""
        for task in self._running:
            task.cancel()


async def _feed(into: asyncio.StreamWriter, content: bytes) -> None:
    with contextlib.suppress(OSError):  # a program need not read its input
        into.write(content)
        await into.drain()
    into.close()


def worker_of(config: NodeConfig, clock: Clock) -> Worker:
    """The handler that a configuration asks for."""
    handler = config.handler
    if handler.kind == "python":
        slots = config.node.slots
        return Processes(handler.target, slots, clock, config.limits.input_bytes)
    if handler.kind == "command":
        return Commands(handler.target, clock, config.limits.input_bytes)
    return Emulated(clock)
