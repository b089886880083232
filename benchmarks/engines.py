"""The two engines, and the bridge to ns-3 against the way ns3-gym takes, in one run.

    python benchmarks/engines.py              # about two minutes
    python benchmarks/engines.py --memory     # 500 short episodes in one process

An episode is the paper's, at 220 tasks/s Poisson: the engine alone, which is given the same actions
again and again (on the embedded engine also 64 episodes side by side, as it is used), and with
`self-tracking` deciding in NumPy.

The bridge's step is measured with a world that has next to nothing to simulate between decisions,
and its crossing alone with an echo of as many bytes. ns3-gym sends a protobuf message of the same
numbers over a ZMQ request-reply socket for each step, of which the other echo is the least: no
serialisation beyond bytes, no simulator at all.
"""

import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from cosmo import method, play
from cosmo.engine import worlds
from cosmo.ns3 import process, wire
from cosmo.scenario import Scenario, load
from cosmo.workload import Tasks, episode, from_tasks
from measured import ns3_ready, seconds, sized

STEPS, BATCH = sized(5000, 300), sized(64, 4)
EPISODES = sized(5, 1)
WINDOW_MS = sized(10_000, 500)
WARM = 100  # steps before the clock starts
ZMQ_ECHO = """
import sys, zmq
socket = zmq.Context().socket(zmq.REP)
print(socket.bind_to_random_port("tcp://127.0.0.1"), flush=True)
answer = bytes(int(sys.argv[1]))
while socket.recv():
    socket.send(answer)
"""
OUR_ECHO = """
import socket, sys
from cosmo.ns3 import wire
link, answer = socket.socket(fileno=int(sys.argv[2])), bytes(int(sys.argv[1]))
while wire.receive(link):
    wire.send(link, wire.TURN, answer)
"""


def engine_alone(scenario: Scenario, seed: int, count: int = 1) -> None:
    """Without a policy: local, offload and reject in turns."""
    batch, number = worlds(scenario, [episode(scenario, seed, k) for k in range(count)]), 0
    turn = batch.advance()
    while not turn.over:
        batch.answer(action=number % 3)
        turn = batch.advance()
        number += 1


def with_a_policy(scenario: Scenario, seed: int) -> None:
    play(scenario, method("self-tracking"), [episode(scenario, seed, 0)])


def paper_world(engine: str) -> Scenario:
    settings = ["workload.rate=220", f"engine={engine}", f"episode.window_ms={WINDOW_MS}"]
    return load("paper", [*settings, "episode.warmup_ms=0"])


def engines() -> None:
    ways: tuple[tuple[str, Callable[[Scenario, int], None]], ...] = (
        ("the engine alone", engine_alone),
        ("with a policy", with_a_policy),
    )
    for what, run in ways:
        median = {}
        for engine in ("embedded", "ns3"):
            scenario = paper_world(engine)
            run(scenario, 100)  # compiles, and starts the process
            found = [seconds(partial(run, scenario, seed)) for seed in range(EPISODES)]
            median[engine] = statistics.median(found)
            print(f"an episode, {what}, {engine}: {median[engine]:.4f} s (median of {EPISODES})")
        print(f"ratio: ns-3 takes {median['ns3'] / median['embedded']:,.0f} times as long")
        if run is engine_alone:
            each = seconds(lambda: engine_alone(paper_world("embedded"), 0, BATCH)) / BATCH
            print(f"an episode of {BATCH} side by side, embedded: {each:.4f} s")
            print(f"ratio: ns-3 takes {median['ns3'] / each:,.0f} times as long")


def a_step(step: Callable[[], object]) -> float:
    """Seconds, once it runs smoothly."""
    for _ in range(WARM):
        step()
    start = time.perf_counter()
    for _ in range(STEPS):
        step()
    return (time.perf_counter() - start) / STEPS


def step_of_the_bridge() -> tuple[float, int]:
    """Seconds, and bytes that a step brings: tiny tasks, one a ms, rejected at once."""
    count = WARM + STEPS + 10
    settings = [f"episode.window_ms={count + 1000}", "episode.warmup_ms=0"]
    scenario = load("paper", ["engine=ns3", "workload.deadline.factor=1", *settings])
    times = 1.0 + np.arange(count, dtype=np.float64)
    numbers = np.zeros(count, np.int64), np.arange(count) % 4
    tasks = Tasks(times, *numbers, *(np.full(count, value) for value in (64.0, 1e5, 200.0)))
    batch = worlds(scenario, [from_tasks(scenario, tasks, 0, 0)])
    batch.advance()

    def step() -> None:
        batch.answer(action=2)
        batch.advance()

    return a_step(step), batch.turn.seen.dispatch.itemsize


def crossing_of_the_bridge(size: int) -> float:
    """A question and its answer between two processes in our framing, with nothing in between."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        command = [sys.executable, "-c", OUR_ECHO, str(size), str(theirs.fileno())]
        with subprocess.Popen(command, pass_fds=[theirs.fileno()]) as child:
            answer = bytes(17)  # an action, an interval, whether to send

            def step() -> None:
                wire.send(ours, wire.STEP, answer)
                np.frombuffer(wire.receive(ours)[1], np.uint8)

            took = a_step(step)
            child.kill()
    return took


def crossing_by_zmq(size: int) -> float:
    import zmq

    command = [sys.executable, "-c", ZMQ_ECHO, str(size)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        link = zmq.Context().socket(zmq.REQ)
        link.connect(f"tcp://127.0.0.1:{int(child.stdout.readline())}")

        def step() -> None:
            link.send(b"0")
            np.frombuffer(link.recv(), np.uint8)

        took = a_step(step)
        child.kill()
    return took


def bridge() -> None:
    whole, size = step_of_the_bridge()
    crossing = crossing_of_the_bridge(size)
    print(f"a step over the bridge: {1e6 * crossing:.1f} µs between the processes,")
    print(f"  {1e6 * whole:.1f} µs with a tiny task's packets in ns-3")
    try:
        echo = crossing_by_zmq(size)
    except ImportError:
        print("ZMQ is left out: it is not installed (pip install pyzmq)")
        return
    print(f"a ZMQ request and reply of {size} bytes: {1e6 * echo:.1f} µs")
    print(f"ratio: {echo / crossing:.1f} times the crossing of ours")


def memory() -> None:
    scenario = load("paper", ["engine=ns3", "episode.window_ms=200", "episode.warmup_ms=0"])
    process.close_idle()
    for number in range(500):
        engine_alone(scenario, number)
        if number % 100 == 99 or number == 9:
            size = sum(resident_mb(child) for child in children())
            print(f"after {number + 1} episodes in one process: {size:.1f} MB", flush=True)


def children() -> list[str]:
    """Processes that this one has started."""
    me = os.getpid()
    return Path(f"/proc/{me}/task/{me}/children").read_text().split()


def resident_mb(pid: str) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


if __name__ == "__main__":
    if ns3_ready():
        if "--memory" in sys.argv[1:]:
            memory()
        else:
            engines()
            bridge()
