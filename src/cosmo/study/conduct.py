"""A study carried out: what is finished stays, the rest is done, the results are gathered."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from cosmo.errors import InputError
from cosmo.files import only_run, whole_file
from cosmo.study import checks, store
from cosmo.study.executor import Event, Executor, Failed, Finished, Started, carry_out
from cosmo.study.plan import Plan
from cosmo.study.units import TrainUnit, Unit
from cosmo.study.work import units_of


@dataclass
class Progress:
    """How far a study is."""

    units: list[Unit]
    share: dict[str, float]  # of every unit, by name
    failed: dict[str, str] = field(default_factory=dict)  # causes, by name
    damaged: dict[str, str] = field(default_factory=dict)  # was finished, but is done again: why
    at_work: list[str] = field(default_factory=list)  # names of units that somebody works on now

    @property
    def done(self) -> int:
        """Finished units."""
        return sum(share == 1.0 for share in self.share.values())

    @property
    def total(self) -> float:
        """The share of all work that is done."""
        done = sum(self._weights[name] * share for name, share in self.share.items())
        return done / sum(self._weights.values())

    def __post_init__(self) -> None:
        # Roughly how dear units are: training by its loads, playing a hundredth of that.
        self._weights = {
            unit.name: sum(unit.rates) * (1.0 if isinstance(unit, TrainUnit) else 0.02)
            for unit in self.units
        }


def progress_of(folder: Path, plan: Plan) -> Progress:
    """How far the study in a folder is, what failed when last tried, and what is damaged."""
    units = units_of(plan)
    places = {unit.name: folder / store.UNITS / unit.name for unit in units}
    share = {name: float(checks.finished(place)) for name, place in places.items()}
    failed = {
        name: (place / store.FAILED).read_text(encoding="utf-8").strip()
        for name, place in places.items()
        if (place / store.FAILED).exists()
    }
    damaged = {name: checks.damage(place) for name, place in places.items()}
    return Progress(units, share, failed, {name: why for name, why in damaged.items() if why})


def _note_failure(place: Path, cause: str) -> None:
    try:
        place.mkdir(parents=True, exist_ok=True)
        with whole_file(place / store.FAILED) as temporary:
            temporary.write_text(cause + "\n", encoding="utf-8")
    except (OSError, InputError):
        pass  # a full disk: the cause is told all the same


def _note_who_works(at_work: list[str], event: Event | Failed) -> None:
    """One that starts is at work until it is finished, has failed, or its process has died."""
    name = event.unit.name
    begins = isinstance(event, Started) or (
        isinstance(event, Event) and not isinstance(event, Finished) and event.share > 0.0
    )
    if begins and name not in at_work:
        at_work.append(name)
    if not begins and name in at_work:
        at_work.remove(name)


def conduct(
    plan: Plan,
    folder: Path,
    executor: Executor,
    told: Callable[[Progress], None] = lambda progress: None,
) -> Progress:
    """Do what is left of a study. A unit that fails is reported and does not sink the others.

    Raises InputError if the folder is another study's, or another run is at work in it.
    """
    with only_run(folder):
        return _conduct(plan, folder, executor, told)


def _conduct(
    plan: Plan, folder: Path, executor: Executor, told: Callable[[Progress], None]
) -> Progress:
    store.prepare(folder, plan)
    progress = progress_of(folder, plan)
    progress.failed.clear()  # they are tried again
    for name in progress.damaged:
        checks.discard(folder / store.UNITS / name)
    told(progress)
    left = [unit for unit in progress.units if progress.share[unit.name] < 1.0]
    try:
        if left:
            for event in executor.run(left, folder / store.UNITS, carry_out):
                _note_who_works(progress.at_work, event)
                if isinstance(event, Failed):
                    progress.failed[event.unit.name] = event.cause
                    progress.share[event.unit.name] = 0.0
                    _note_failure(folder / store.UNITS / event.unit.name, event.cause)
                elif isinstance(event, Finished):
                    progress.share[event.unit.name] = 1.0
                    (folder / store.UNITS / event.unit.name / store.FAILED).unlink(missing_ok=True)
                elif isinstance(event, Event):
                    # All but the end is only an estimate.
                    progress.share[event.unit.name] = min(event.share, 0.999)
                told(progress)
    finally:
        store.merge(folder, plan)
    return progress
