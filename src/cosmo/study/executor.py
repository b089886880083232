"""What carries out units: one small interface, local processes or a Ray cluster behind it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from cosmo.files import made_folder
from cosmo.study.units import Report, Unit

Work = Callable[[Unit, Path, Report], None]  # (unit, its folder, progress)


@dataclass(frozen=True)
class Event:
    """Something happened to a unit: so much of it is done."""

    unit: Unit
    share: float


@dataclass(frozen=True)
class Started(Event):
    """Somebody works on it now."""

    share: float = 0.0


@dataclass(frozen=True)
class Finished(Event):
    """Its results are in its folder."""

    share: float = 1.0


@dataclass(frozen=True)
class Failed:
    """It cannot be done."""

    unit: Unit
    cause: str


class Executor(Protocol):
    """Carries out units in any order, side by side."""

    def kept(self) -> AbstractContextManager[None]:
        """What takes long to start is started once for all `run`s of the block."""
        ...

    def run(self, units: Sequence[Unit], folder: Path, work: Work) -> Iterator[Event | Failed]:
        """Events as they happen, until every unit is finished or has failed.

        A unit's folder is `folder / unit.name`. Closing the iterator stops all work.
        """
        ...


def carry_out(unit: Unit, folder: Path, report: Report) -> None:
    """The work of a study's unit."""
    made_folder(folder)  # without what a killed attempt left
    unit.carry_out(folder, report)
