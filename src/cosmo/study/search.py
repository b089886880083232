"""Which settings to try next: all of them where they are few, else what Optuna suggests.

Settings come in batches, and every batch is answered with its values before the next one is asked
for. The size of a batch is fixed: it must not depend on how many processes there are, or so would
the result.
"""

from collections.abc import Generator, Sequence
from typing import Any

from cosmo.errors import InputError
from cosmo.study.space import Setting, Space, grid

BATCH = 8

# Yields settings to play; is sent their values (greater is better, None if it could not be played).
Batches = Generator[list[Setting], Sequence[float | None], None]


def batches(space: Space, trials: int, seed: int) -> Batches:
    """At most `trials` settings; the same for the same seed and the same answers.

    Raises InputError if Optuna is needed and not installed.
    """
    few = grid(space, trials)
    if few is not None:
        for first in range(0, len(few), BATCH):
            yield few[first : first + BATCH]
        return
    optuna = _optuna()
    sampler = optuna.samplers.TPESampler(seed=seed)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    for first in range(0, trials, BATCH):
        asked = [study.ask() for _ in range(min(BATCH, trials - first))]
        settings = [
            {name: axis.suggested(trial, name) for name, axis in space.items()} for trial in asked
        ]
        values = yield settings
        for trial, value in zip(asked, values, strict=True):
            if value is None:
                study.tell(trial, state=optuna.trial.TrialState.FAIL)
            else:
                study.tell(trial, value)


def _optuna() -> Any:
    try:
        import optuna
    except ModuleNotFoundError:
        raise InputError(
            "tuning over ranges needs Optuna; install it from a clone of the repository:"
            " pip install '.[tune]', or name values (--over name=1,2,5) that --trials covers"
        ) from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna
