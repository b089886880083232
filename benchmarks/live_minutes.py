"""An EN at work for minutes: how soon it is there, how large it gets, how late its timers are, how
long it ever stood still, and whether a task costs at the end what it cost at the beginning.

Tasks of the paper's sizes at 220 a second, in real time, on loopback, with emulated work; real-time
priority where that is permitted. Part of `benchmarks/live.py`.
"""

import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cosmo.errors import InputError
from cosmo.live.config import changed_config, load_config
from cosmo.live.load import Load
from cosmo.live.processes import Running, nodes
from cosmo.live.tasks import Fate
from cosmo.live.testbed.generator import read_replayed, write_job
from cosmo.live.testbed.networks import Network, check_fifo
from cosmo.live.top import quantile_ms, scraped
from processes_seen import processor_s, resident_mb, stolen_s

RATE, FIFO = 220.0, 10
# What the machine does to a process that waits for a timer 200 times a second, and nothing else.
BARE = """
import sys, threading, time
over, late = threading.Event(), []
threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
while not over.is_set():
    due = time.monotonic() + 0.005
    time.sleep(0.005)
    late.append(time.monotonic() - due)
late.sort()
print(1000 * late[int(0.99 * len(late))], 1000 * late[-1])
"""


@dataclass
class Look:
    """What an EN is like at a moment."""

    time_s: float
    processor_s: float
    tasks: float
    resident_mb: float
    timer_p99_ms: float
    timer_most_ms: float
    decision_p99_ms: float


def looked(en: Running, port: int) -> Look:
    """Now."""
    told = scraped(f"127.0.0.1:{port}")
    pid = en.process.pid

    def found(name: str) -> float:
        return sum(each.value for each in told if each.name == name)

    return Look(
        time_s=time.monotonic(),
        processor_s=processor_s(pid),
        tasks=found("cosmo_tasks_total"),
        resident_mb=resident_mb(pid),
        timer_p99_ms=quantile_ms(told, "cosmo_timer_late_seconds", 0.99),
        timer_most_ms=1000.0 * found("cosmo_timer_late_max_seconds"),
        decision_p99_ms=quantile_ms(told, "cosmo_decision_seconds", 0.99),
    )


def load_of(minutes: float) -> Load:
    """Tasks of the paper's sizes, each at its EN 3 ms after it was generated."""
    random = np.random.default_rng(5)
    count = int(minutes * 60.0 * RATE)
    time_ms = np.cumsum(random.exponential(1000.0 / RATE, count))
    return Load(
        time_ms=time_ms,
        reached_ms=time_ms + 3.0,
        residual_ms=np.full(count, 15_000.0),
        en=np.zeros(count, np.int64),
        input_bytes=np.floor(random.uniform(20_000, 50_000, count)),
        cycles=random.uniform(1e5, 1.2e6, count),
        deadline_ms=random.uniform(60.0, 220.0, count),
    )


def measure(minutes: float, method: str = "priced-books") -> None:
    """Run and print."""
    try:
        check_fifo(FIFO)
        network = Network(FIFO)
    except InputError as error:
        print(f"without real-time priority: {error}")
        network = Network()
    fields: dict[str, object] = {"method.use": method, "admin": "127.0.0.1:0"}
    en = changed_config(load_config("en"), fields)
    sn = changed_config(load_config("sn"), {"method.use": method})
    began = time.monotonic()
    with nodes([en], [sn], network) as ([here], _), tempfile.TemporaryDirectory() as name:
        both_s = time.monotonic() - began
        job, out = Path(name) / "job.npz", Path(name) / "out.npz"
        write_job(load_of(minutes), 1.0, job, 1)
        port = int(here.said("serving")[0]["admin"])
        command = [sys.executable, "-m", "cosmo.live.testbed.generator", str(job), str(out)]
        looks, taken_s = [looked(here, port)], stolen_s()
        bare = subprocess.Popen(
            [*network.command("bare"), sys.executable, "-c", BARE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        with subprocess.Popen(
            [*network.command("ues"), *command, here.address], stdout=subprocess.DEVNULL
        ) as generator:
            while generator.poll() is None:
                time.sleep(min(5.0, minutes * 6.0))
                looks.append(looked(here, port))
        assert generator.returncode == 0
        told, taken_s = read_replayed(out), stolen_s() - taken_s
        bare_p99_ms, bare_most_ms = map(float, bare.communicate()[0].split())
    print(f"{method}, {minutes:g} min at {RATE:g} tasks/s: {int(looks[-1].tasks)} tasks")
    print(f"both nodes started and met in {both_s:.2f} s")
    sizes = [look.resident_mb for look in looks]
    print(f"memory of the EN: {sizes[0]:.0f} MB at first, {max(sizes):.0f} MB at most")
    late = max(look.timer_p99_ms for look in looks[1:])
    early = looks[len(looks) // 10].timer_most_ms
    print(
        f"timers of the EN: p99 {late:.2f} ms at worst, longest {looks[-1].timer_most_ms:.1f} ms"
        f" ({early:.1f} ms in the first tenth)"
    )
    print(f"a bare timer beside it: p99 {bare_p99_ms:.2f} ms, longest {bare_most_ms:.1f} ms")
    print(f"taken from this machine by its host: {1000 * taken_s:.0f} ms")
    slow = max(look.decision_p99_ms for look in looks[1:])
    print(f"decisions: p99 {slow:.2f} ms at worst")
    print(f"the generator's timers: p99 {told.late_p99_ms:.2f} ms, most {told.late_most_ms:.1f} ms")
    costs = _costs_us(looks)
    print("processor time a task, by tenths: " + ", ".join(f"{each:.0f}" for each in costs) + " µs")
    shares = [float((part == Fate.DONE).mean()) for part in np.array_split(told.fate, 10)]
    print("in time, by tenths: " + ", ".join(f"{each:.3f}" for each in shares))
    if told.errors:
        print(f"calls that failed: {told.errors}")


def _costs_us(looks: list[Look]) -> list[float]:
    """Processor time a task in each tenth of the run."""
    edges = np.linspace(looks[0].time_s, looks[-1].time_s, 11)
    times = [look.time_s for look in looks]
    spent = np.diff(np.interp(edges, times, [look.processor_s for look in looks]))
    tasks = np.diff(np.interp(edges, times, [look.tasks for look in looks]))
    return [float(cost) for cost in 1e6 * spent / np.maximum(tasks, 1.0)]
