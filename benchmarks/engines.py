"""The two engines, and the bridge to ns-3 against the way ns3-gym takes, in one run.

    python benchmarks/engines.py              # about two minutes
    python benchmarks/engines.py --memory     # 500 short episodes in one process

An episode is the paper's, at 220 tasks/s Poisson: the engine alone, which is given the same actions
again and again (on the embedded engine also 64 episodes side by side, as it is used), and with
`self-tracking` deciding in NumPy.

The bridge's step is measured with a world that has nothing to simulate between decisions. ns3-gym
sends a protobuf message of the same numbers over a ZMQ request-reply socket for each of them, of
which the echo here is the least: no serialisation beyond bytes, no simulator at all.
"""

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from cosmo import load, method
from cosmo.control.play import play
from cosmo.engine import worlds
from cosmo.ns3 import library, process
from cosmo.scenario import Scenario
from cosmo.workload import Tasks, episode, from_tasks

STEPS, BATCH = 5000, 64
ECHO = """
import sys, zmq
socket = zmq.Context().socket(zmq.REP)
print(socket.bind_to_random_port("tcp://127.0.0.1"), flush=True)
answer = bytes(int(sys.argv[1]))
while socket.recv():
    socket.send(answer)
"""


def engine_alone(scenario: Scenario, seed: int, count: int = 1) -> None:
    batch, number = worlds(scenario, [episode(scenario, seed, k) for k in range(count)]), 0
    turn = batch.advance_buffers()
    while not batch.all_over:
        turn.action[:] = number % 3
        turn = batch.advance_buffers()
        number += 1


def with_a_policy(scenario: Scenario, seed: int) -> None:
    play(scenario, method("self-tracking"), [episode(scenario, seed, 0)])


def engines() -> None:
    for what, run in (("the engine alone", engine_alone), ("with a policy", with_a_policy)):
        seconds = {}
        for engine in ("embedded", "ns3"):
            scenario = load("paper", ["workload.rate=220", f"engine={engine}"])
            run(scenario, 100)  # compiles, and starts the process
            found = []
            for seed in range(5):
                start = time.perf_counter()
                run(scenario, seed)
                found.append(time.perf_counter() - start)
            seconds[engine] = statistics.median(found)
            print(f"an episode, {what}, {engine}: {seconds[engine]:.4f} s (median of 5)")
        print(f"ratio: ns-3 takes {seconds['ns3'] / seconds['embedded']:,.0f} times as long")
        if run is engine_alone:
            start = time.perf_counter()
            engine_alone(load("paper", ["workload.rate=220"]), 0, BATCH)
            each = (time.perf_counter() - start) / BATCH
            print(f"an episode of {BATCH} side by side, embedded: {each:.4f} s")
            print(f"ratio: ns-3 takes {seconds['ns3'] / each:,.0f} times as long")


def step_of_the_bridge(engine: str) -> tuple[float, int]:
    """Seconds, and bytes that a step brings: tiny tasks, one a ms, rejected at once."""
    settings = ["engine=" + engine, "episode.window_ms=6000", "workload.deadline.factor=1"]
    scenario = load("paper", settings)
    count = STEPS + 100
    times = 1.0 + np.arange(count)
    numbers = np.zeros(count, np.int64), np.arange(count) % 4
    tasks = Tasks(times, *numbers, *(np.full(count, value) for value in (64.0, 1e5, 200.0)))
    batch = worlds(scenario, [from_tasks(scenario, tasks, 0, 0)])
    turn = batch.advance_buffers()
    for _ in range(100):
        turn.action[0] = 2
        turn = batch.advance_buffers()
    start = time.perf_counter()
    for _ in range(STEPS - 10):
        turn.action[0] = 2
        turn = batch.advance_buffers()
    return (time.perf_counter() - start) / (STEPS - 10), turn.dispatch.itemsize


def step_of_an_echo(size: int) -> float:
    import zmq

    with subprocess.Popen(
        [sys.executable, "-c", ECHO, str(size)], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        socket = zmq.Context().socket(zmq.REQ)
        socket.connect(f"tcp://127.0.0.1:{int(child.stdout.readline())}")
        for _ in range(100):
            socket.send(b"0")
            socket.recv()
        start = time.perf_counter()
        for _ in range(STEPS):
            socket.send(b"0")
            np.frombuffer(socket.recv(), np.uint8)
        took = (time.perf_counter() - start) / STEPS
        child.kill()
    return took


def crossing_of_the_bridge() -> float:
    """A question and its answer between our two processes, with nothing simulated in between."""
    from cosmo.ns3 import wire

    scenario = load("paper", ["engine=ns3", "episode.window_ms=2001"])
    worker = process.take()
    worker.begin(scenario, episode(scenario, 0, 0), 0)
    worker.hear(wire.READY)
    for count in (100, STEPS):
        start = time.perf_counter()
        for _ in range(count):
            worker.ask(wire.PING)
            worker.hear(wire.READY)
    took = (time.perf_counter() - start) / STEPS
    worker.close()
    return took


def bridge() -> None:
    crossing = crossing_of_the_bridge()
    whole, size = step_of_the_bridge("ns3")
    print(f"a step over the bridge: {1e6 * crossing:.1f} µs between the processes,")
    print(f"  {1e6 * whole:.1f} µs with a tiny task's packets in ns-3")
    try:
        echo = step_of_an_echo(size)
    except ImportError:
        print("pyzmq is not installed (pip install pyzmq): no echo to compare with")
        return
    print(f"a ZMQ request and reply of {size} bytes: {1e6 * echo:.1f} µs")
    print(f"ratio: {echo / crossing:.1f} times the crossing of ours")


def memory() -> None:
    scenario = load("paper", ["engine=ns3", "episode.window_ms=200", "episode.warmup_ms=0"])
    process.close_idle()
    for number in range(500):
        batch = worlds(scenario, [episode(scenario, number, 0)])
        turn = batch.advance()
        while not turn.over:
            batch.answer(action=[1] * len(turn.dispatch))
            turn = batch.advance()
        if number % 100 == 99 or number == 9:
            pid = batch._workers[0]._process.pid
            pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
            size = pages * os.sysconf("SC_PAGE_SIZE") / 1e6
            print(f"after {number + 1} episodes in one process: {size:.1f} MB", flush=True)


if __name__ == "__main__":
    library.install()
    if "--memory" in sys.argv[1:]:
        memory()
    else:
        engines()
        bridge()
