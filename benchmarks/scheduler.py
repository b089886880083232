"""What the local executor costs: many empty units against one realistic one.

python benchmarks/scheduler.py
"""

import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cosmo.study import LocalExecutor, load_plan
from cosmo.study.conduct import Progress
from cosmo.study.executor import Event, Finished, carry_out
from cosmo.study.work import units_of
from measured import seconds, sized

UNITS = sized(1000, 40)
STARTED = 10  # units after which the workers are surely there
REAL = sized([], ["rates=[120.0]", "seeds=[0]", "episodes=1"])


@dataclass(frozen=True)
class Empty:
    number: int
    rates: tuple[float, ...] = (1.0,)

    @property
    def name(self) -> str:
        return f"empty-{self.number}"


def nothing(unit: object, folder: Path, report: Callable[[float], None]) -> None:
    report(0.5)


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def empty_units(folder: Path) -> float:
    """Seconds a unit."""
    units: list[Any] = [Empty(number) for number in range(UNITS)]
    progress = Progress(units, dict.fromkeys((unit.name for unit in units), 0.0))
    memory, done, first = [], 0, 0.0
    for event in LocalExecutor(2).run(units, folder, nothing):
        if isinstance(event, Event):
            progress.share[event.unit.name] = event.share
            assert progress.total <= 1.0  # what `cosmo study run` does at every event
        if isinstance(event, Finished):
            done += 1
            if done == STARTED:
                first = time.perf_counter()
            if done % (UNITS // 10) == 0:
                memory.append(resident_mb())
    each = (time.perf_counter() - first) / (UNITS - STARTED)
    print(f"{UNITS} empty units: {1000 * each:.2f} ms each")
    print(
        f"scheduler's memory after {UNITS // 10}: {memory[0]:.0f} MB, at the end {memory[-1]:.0f}"
    )
    return each


def realistic_unit(folder: Path) -> float:
    settings = ['compare=[{methods=["aoci-online"]}]', 'arrivals=["poisson"]', *REAL]
    plan = load_plan("baselines", settings)
    [unit] = units_of(plan)
    return seconds(lambda: carry_out(unit, folder / "real", lambda share: None))


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        empty, real = empty_units(folder), realistic_unit(folder)
        print(f"a realistic unit (aoci-online, all its rates): {real:.1f} s")
        print(f"ratio: an empty unit costs {empty / real:.3%} of it")


if __name__ == "__main__":
    main()
