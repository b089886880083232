"""Who plays the settings of a tuning: the study's executors, or this process."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import polars

from cosmo.errors import InputError
from cosmo.node import Method
from cosmo.policy.registry import made
from cosmo.study import checks
from cosmo.study.executor import Executor, Failed, carry_out
from cosmo.study.units import PlayUnit, at_load, played_rows, result_table
from cosmo.tables import read_parquet

# By the unit's name: rows of `result_table`, or why it failed, in one line.
Played = dict[str, polars.DataFrame | str]
Told = Callable[[], None]  # is called whenever a unit is finished


class Player(Protocol):
    """Plays units of methods."""

    def play(self, units: Sequence[PlayUnit], told: Told) -> Played:
        """All of them; a unit that fails has its cause in place of rows."""
        ...


@dataclass(frozen=True)
class InFolder:
    """By an executor, each unit in a folder of its own; what is finished there is not played."""

    folder: Path
    executor: Executor

    def play(self, units: Sequence[PlayUnit], told: Told) -> Played:
        """Reads what is finished, has the rest done."""
        each = {unit.name: unit for unit in units}
        for name in each:
            if checks.damage(self.folder / name):
                checks.discard(self.folder / name)
        left = [unit for name, unit in each.items() if not checks.finished(self.folder / name)]
        failed: dict[str, str] = {}
        for _ in range(len(each) - len(left)):
            told()
        for event in self.executor.run(left, self.folder, carry_out) if left else ():
            if isinstance(event, Failed):
                failed[event.unit.name] = event.cause
            if isinstance(event, Failed) or event.share == 1.0:
                told()
        return {name: failed.get(name) or self._rows(name) for name in each}

    def _rows(self, name: str) -> polars.DataFrame:
        path = self.folder / name / checks.METRICS_FILE
        return read_parquet(path, f"'{path}': is damaged")


@dataclass(frozen=True)
class Here:
    """In this process, for a class that other processes could not find."""

    kind: type[Method]

    def play(self, units: Sequence[PlayUnit], told: Told) -> Played:
        """One after the other."""
        found: Played = {}
        for unit in units:
            try:
                chosen = made(unit.method, self.kind, unit.method.partition(":")[2])
                rows = []
                for rate in unit.rates:
                    scenario = at_load(unit.scenario, unit.arrivals, rate)
                    rows += played_rows(
                        scenario, unit.method, chosen, unit.seeds, unit.episodes, unit.first_episode
                    )
                found[unit.name] = result_table(rows)
            except InputError as error:
                found[unit.name] = str(error)
            told()
        return found
