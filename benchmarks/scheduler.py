"""What the local executor costs: a thousand empty units against one realistic one.

python benchmarks/scheduler.py
"""

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from cosmo.study import LocalExecutor, load_plan
from cosmo.study.conduct import Progress
from cosmo.study.executor import Event, Finished, carry_out

UNITS = 1000


@dataclass(frozen=True)
class Empty:
    number: int
    rates: tuple[float, ...] = (1.0,)

    @property
    def name(self) -> str:
        return f"empty-{self.number}"


def nothing(unit, folder, report) -> None:
    report(0.5)


def resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder, units = Path(scratch), [Empty(number) for number in range(UNITS)]
        progress = Progress(list(units), dict.fromkeys((unit.name for unit in units), 0.0))
        memory, done, first = [], 0, 0.0
        for event in LocalExecutor(2).run(units, folder, nothing):
            if isinstance(event, Event):
                progress.share[event.unit.name] = event.share
                assert progress.total <= 1.0  # what `cosmo study run` does at every event
            if isinstance(event, Finished):
                done += 1
                if done == 10:  # the workers have started
                    first = time.perf_counter()
                if done % 100 == 0:
                    memory.append(resident_mb())
        each = (time.perf_counter() - first) / (UNITS - 10)
        print(f"{UNITS} empty units: {1000 * each:.2f} ms each")
        print(f"scheduler's memory after 100 and {UNITS}: {memory[0]:.0f}, {memory[-1]:.0f} MB")
        plan = load_plan(
            "baselines", ['compare=[{methods=["aoci-online"]}]', 'arrivals=["poisson"]']
        )
        [unit] = plan.units()
        start = time.perf_counter()
        carry_out(unit, folder / "real", lambda share: None)
        real = time.perf_counter() - start
        print(
            f"a realistic unit (aoci-online at 7 rates): {real:.1f} s; overhead {each / real:.3%}"
        )


if __name__ == "__main__":
    main()
