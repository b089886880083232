"""Studies that take seconds, and units that do odd things."""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from cosmo.study import plan_checked
from cosmo.study.checks import DONE

PLAYED = []  # what methods in files of tests were played on
SHORT = ["episode.window_ms=1500", "episode.warmup_ms=300"]


def small_plan(methods=("all-local", "aoci-online", "random"), **changes):
    data = {
        "name": "small",
        "settings": SHORT,
        "arrivals": ["poisson"],
        "rates": [120.0, 320.0],
        "seeds": [0, 3],
        "episodes": 2,
        "training": {
            "settings": [
                "episodes=2", "validate_every=1", "encoder.collection_episodes=2",
                "encoder.epochs=2",
            ]
        },
        "compare": [{"methods": list(methods)}],
    }  # fmt: skip
    return plan_checked(data | changes)


@dataclass(frozen=True)
class Odd:
    """A unit for tests of executors: writes who did it, after perhaps dying a few times."""

    number: int
    deaths: int = 0
    error: str = ""
    kind: type[BaseException] = RuntimeError
    seconds: float = 0.0
    rates: tuple[float, ...] = (1.0,)

    @property
    def name(self) -> str:
        return f"odd-{self.number}"


def do_odd(unit, folder: Path, report) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"try-{len(list(folder.glob('try-*')))}").touch()
    report(0.5)
    time.sleep(unit.seconds)
    if unit.error:
        raise unit.kind(unit.error)
    if len(list(folder.glob("try-*"))) <= unit.deaths:
        os.kill(os.getpid(), signal.SIGKILL)
    (folder / DONE).write_text(str(os.getpid()))
