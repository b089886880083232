"""A study carried out: what is finished stays, the rest is done, the results are gathered."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from cosmo.study import store
from cosmo.study.executor import Event, Executor, Failed, Finished, carry_out
from cosmo.study.plan import Plan
from cosmo.study.units import TrainUnit, Unit, finished


@dataclass
class Progress:
    """How far a study is."""

    units: list[Unit]
    share: dict[str, float]  # of every unit, by name
    failed: dict[str, str] = field(default_factory=dict)  # causes, by name

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
    """How far the study in a folder is."""
    units = plan.units()
    share = {unit.name: float(finished(folder / store.UNITS / unit.name)) for unit in units}
    return Progress(units, share)


def conduct(
    plan: Plan,
    folder: Path,
    executor: Executor,
    told: Callable[[Progress], None] = lambda progress: None,
) -> Progress:
    """Do what is left of a study. A unit that fails is reported and does not sink the others."""
    store.prepare(folder, plan)
    progress = progress_of(folder, plan)
    told(progress)
    left = [unit for unit in progress.units if progress.share[unit.name] < 1.0]
    try:
        if left:
            for event in executor.run(left, folder / store.UNITS, carry_out):
                if isinstance(event, Failed):
                    progress.failed[event.unit.name] = event.cause
                    progress.share[event.unit.name] = 0.0
                elif isinstance(event, Finished):
                    progress.share[event.unit.name] = 1.0
                elif isinstance(event, Event):
                    # All but the end is only an estimate.
                    progress.share[event.unit.name] = min(event.share, 0.999)
                told(progress)
    finally:
        store.merge(folder, plan)
    return progress
