"""A study carried out: what is finished stays, the rest is done, the results are gathered."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cosmo.errors import InputError
from cosmo.files import MOST_DOCUMENT, only_run, read_bytes, whole_file
from cosmo.study import checks, store
from cosmo.study.executor import Event, Executor, Failed, Finished, Started, carry_out
from cosmo.study.focus import try_focus
from cosmo.study.plan import Plan
from cosmo.study.pool import LocalExecutor
from cosmo.study.search import optuna_module
from cosmo.study.tune_units import TuneUnit
from cosmo.study.units import PlayUnit, TrainUnit, Unit
from cosmo.study.work import units_of


@dataclass
class Progress:
    """How far a study is: units of work, the share of each that is done, failures and damage."""

    units: list[Unit]
    share: dict[str, float]  # of every unit, by name
    failed: dict[str, str] = field(default_factory=dict)  # causes, by name
    damaged: dict[str, str] = field(default_factory=dict)  # was finished, but is done again: why
    at_work: list[str] = field(default_factory=list)  # names of units that somebody works on now

    @property
    def done(self) -> int:
        """Number of finished units."""
        return sum(share == 1.0 for share in self.share.values())

    @property
    def total(self) -> float:
        """The share of all work that is done."""
        done = sum(self._weights[name] * share for name, share in self.share.items())
        return done / sum(self._weights.values())

    def __post_init__(self) -> None:
        self._weights = {unit.name: sum(unit.rates) * _weight(unit) for unit in self.units}


def _weight(unit: Unit) -> float:
    """Roughly how dear a unit is a load: playing a fiftieth of a training."""
    if isinstance(unit, TuneUnit):
        return 0.002 * unit.tune.settings
    return 1.0 if isinstance(unit, TrainUnit) else 0.02


def progress_of(folder: Path, plan: Plan) -> Progress:
    """How far a study is.

    Args:
        folder: The study's folder.
        plan: Its plan.

    Returns:
        Every unit with the share that is done, why it failed when last tried, and what is damaged.

    """
    units = units_of(plan)
    places = {unit.name: folder / store.UNITS / unit.name for unit in units}
    share = {name: float(checks.finished(place)) for name, place in places.items()}
    failed = {
        name: _why(place / store.FAILED)
        for name, place in places.items()
        if (place / store.FAILED).exists()
    }
    damaged = {name: checks.damage(place) for name, place in places.items()}
    return Progress(units, share, failed, {name: why for name, why in damaged.items() if why})


def _why(note: Path) -> str:
    try:
        return read_bytes(note, MOST_DOCUMENT).decode(errors="replace").strip()
    except OSError as error:
        return f"{note.name} cannot be read ({error.strerror})"


def _note_failure(place: Path, cause: str) -> None:
    try:
        place.mkdir(parents=True, exist_ok=True)
        with whole_file(place / store.FAILED) as temporary:
            temporary.write_text(cause + "\n", encoding="utf-8")
    except (OSError, InputError):
        pass  # a full disk: the cause is reported all the same


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


def _carried_out(
    units: Sequence[Unit], folder: Path, executor: Executor
) -> Iterator[Event | Failed]:
    """Units side by side; then those that need a machine for themselves here, one by one."""
    together: list[Unit] = []
    alone: list[Unit] = []
    for unit in units:
        (alone if isinstance(unit, PlayUnit) and unit.alone else together).append(unit)
    if together:
        yield from executor.run(_apart(together), folder, carry_out)
    if alone:
        yield from LocalExecutor(1).run(alone, folder, carry_out)


def _apart(units: Sequence[Unit]) -> list[Unit]:
    """The same units, every method played once before any is played again: workers that begin with
    the same method would all compile its rule, where nothing has been compiled before.
    """
    begun: Counter[str] = Counter()
    rounds: list[tuple[int, Unit]] = []
    for unit in units:
        name = unit.method if isinstance(unit, PlayUnit) else ""
        rounds.append((begun[name] if name else 0, unit))
        begun[name] += 1
    return [unit for _, unit in sorted(rounds, key=lambda each: each[0])]


def conduct(
    plan: Plan,
    folder: Path,
    executor: Executor,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> Progress:
    """Do what is left of a study. A unit that fails is reported and does not sink the others.

    Args:
        plan: What is compared.
        folder: The study's folder; what is finished in it is not done again.
        executor: Who does the work, such as `LocalExecutor(workers=2)`.
        on_progress: Called whenever a unit has moved on.

    Returns:
        How far the study is in the end: `failed` has the causes.

    Raises:
        InputError: In one line, if the folder is another study's, another run is at work in it, the
            focus method cannot be played, or a plan that tunes finds no Optuna.

    """
    if plan.tune is not None:
        optuna_module()
    try_focus(plan)
    with only_run(folder):
        return _conduct(plan, folder, executor, on_progress)


def _conduct(
    plan: Plan, folder: Path, executor: Executor, on_progress: Callable[[Progress], None]
) -> Progress:
    store.prepare(folder, plan)
    progress = progress_of(folder, plan)
    progress.failed.clear()  # they are tried again
    for name in progress.damaged:
        checks.discard(folder / store.UNITS / name)
    on_progress(progress)
    left = [unit for unit in progress.units if progress.share[unit.name] < 1.0]
    try:
        if left:
            for event in _carried_out(left, folder / store.UNITS, executor):
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
                on_progress(progress)
    finally:
        store.merge(folder, plan)
    return progress
