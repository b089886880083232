"""A training in a folder: started or resumed, with checkpoints and logs, to its end."""

import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from cosmo.documents import Settings
from cosmo.errors import InputError
from cosmo.files import made_folder
from cosmo.learn import checkpoint
from cosmo.learn.device import checked_device, computing_on
from cosmo.learn.run import Config, Curve, Run, TrainsRuns
from cosmo.policy.controller import DESCRIPTION
from cosmo.policy.learned_methods import learned_method

_CHECKPOINT_S = 10.0  # a killed training loses at most so much work, and an episode

# (episodes done, curves of the last one): none of 0 when the work begins, none when it is resumed.
OnEpisode = Callable[[int, Sequence[Curve]], None]


def load_config_of(method: str, source: str | None, settings: Settings) -> Config:
    """The configuration of a method: a preset or a file, the method's own by default.

    InputError in one line for a method that does not learn, or a bad field.
    """
    kind = learned_method(method)
    documents = kind.fetched("configuration")
    return config_of(method, documents.load(source or documents.first, settings))


def config_of(method: str, config: Config) -> Config:
    """The configuration with what makes the method."""
    kind = learned_method(method)
    documents = kind.fetched("configuration")
    made: Config = documents.validated(config.model_dump(), kind.settings)
    return made


def config_from(method: str, data: dict[str, Any]) -> Config:
    """The configuration of a method from what its `model_dump` gave."""
    made: Config = learned_method(method).fetched("configuration").validated(data)
    return made


def train(
    folder: Path,
    method: str,
    runs: Sequence[Run],
    config: Config,
    resume: bool = False,
    tensorboard: bool = False,
    on_episode: OnEpisode = lambda episode, curves: None,
    device: str = "cpu",
) -> None:
    """Train `runs` to the end of `config`; interrupted, the same call with `resume` goes on.

    A resumed training ends as if it had not been interrupted. `device` is where JAX computes, "cpu"
    or "gpu"; a training goes on only on the device that it was started on, as bits differ.
    """
    with computing_on(checked_device(device)):
        _train(folder, method, list(runs), config, resume, tensorboard, on_episode, device)


def _train(
    folder: Path,
    method: str,
    runs: list[Run],
    config: Config,
    resume: bool,
    tensorboard: bool,
    on_episode: OnEpisode,
    device: str,
) -> None:
    config = config_of(method, config)
    for run in runs:
        if run.scenario.workload.trace:
            raise InputError(
                f"workload.trace = {run.scenario.workload.trace!r}: training draws workloads of its"
                ' own, so that a trace can test it; add --set workload.trace=""'
            )
    trainer: TrainsRuns = learned_method(method).fetched("trainer")(runs, config)
    curves = checkpoint.Curves(runs)
    description = checkpoint.describe(method, runs, config, device)
    if _prepared(folder, resume):
        checkpoint.check_same(folder, description)
    checkpoint.start(folder, description)
    on_episode(0, [])  # nothing is wrong: the work begins
    if not (resume and checkpoint.restore(folder, trainer, curves)):
        trainer.pretrain()
    log = _Log(folder / "tensorboard", runs) if tensorboard else None
    try:
        for number in range(len(curves)):
            if log:
                log.add(number + 1, curves)
        if trainer.episode:
            on_episode(trainer.episode, [])  # resumed
        saved = time.monotonic()
        while trainer.episode < config.episodes:
            now = trainer.train_episode()
            curves.add(now)
            if log:
                log.add(trainer.episode, curves)
            if time.monotonic() - saved > _CHECKPOINT_S:
                checkpoint.save(folder, trainer, curves)
                saved = time.monotonic()
            on_episode(trainer.episode, now)
        checkpoint.save(folder, trainer, curves)
    finally:
        if log:
            log.close()


def _prepared(folder: Path, resume: bool) -> bool:
    """Make the folder; whether there is a training in it to go on with."""
    if made_folder(folder):
        return False
    if not (folder / DESCRIPTION).exists():
        raise InputError(f"out = '{folder}': is not empty and has no training in it")
    if not resume:
        raise InputError(
            f"out = '{folder}': has a training in it; resume it, or choose another folder"
        )
    return True


class _Log:
    """Curves for TensorBoard, a folder a run; written anew by a resumed training."""

    def __init__(self, folder: Path, runs: Sequence[Run]) -> None:
        from tensorboardX import SummaryWriter

        shutil.rmtree(folder, ignore_errors=True)
        self._writers = [
            SummaryWriter(
                str(
                    folder / f"{run.scenario.workload.arrivals}-{run.scenario.workload.rate:g}"
                    f"-seed{run.seed}"
                ),
                flush_secs=10,
            )
            for run in runs
        ]

    def add(self, episode: int, curves: checkpoint.Curves) -> None:
        """One episode of every run."""
        for writer, row in zip(self._writers, curves.episode(episode - 1), strict=True):
            for name, value in zip(checkpoint.CURVE_COLUMNS, row, strict=True):
                if value == value:  # not NaN
                    writer.add_scalar(name, value, episode)

    def close(self) -> None:
        """Write out what is left."""
        for writer in self._writers:
            writer.close()
