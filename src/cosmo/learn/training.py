"""`cosmo.train`: a training from Python, by names and keywords."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from cosmo.control.named import ScenarioLike, Settings, as_scenario
from cosmo.errors import InputError
from cosmo.files import only_run
from cosmo.learn import session
from cosmo.learn.run import Run
from cosmo.policy.controller import Controller, load_controller


def train(
    method: str,
    out: str | Path,
    scenario: ScenarioLike = "paper",
    *,
    rate: float | None = None,
    arrivals: str | None = None,
    seeds: Iterable[int] = (0, 1, 2),
    settings: Settings = (),
    training: Settings = (),
    config: str | Path | None = None,
    resume: bool = False,
    told: session.Told | None = None,
) -> Controller:
    """Train the runs of a method that learns into the folder `out`; the trained controller.

    `method` is a name of `cosmo methods` that learns ("cosmo", "cosmo-flat", "cosmo-next").
    `rate`, `arrivals` and `settings` change fields of the scenario, `training` those of the
    training (`{"episodes": 20, "en.batch": 16}`), `config` is a preset or a TOML file of training,
    the method's own by default. Runs, one a seed, are trained side by side. With `resume`, an
    interrupted training of the same kind goes on. `told` is called after every episode with its
    number and a dictionary of each run's curves.

    Raises InputError in one line for bad input, or if the folder holds something else.
    """
    where = as_scenario(scenario, settings, rate, arrivals)
    chosen = session.load_config_of(method, None if config is None else str(config), training)
    runs = [Run(where, seed) for seed in _checked(list(seeds))]
    folder = Path(out)
    with only_run(folder):
        session.train(folder, method, runs, chosen, resume, told=told or _nothing)
    return load_controller(folder)


def _checked(seeds: Sequence[int]) -> Sequence[int]:
    if not seeds or len(set(seeds)) < len(seeds) or min(seeds) < 0:
        raise InputError(f"seeds = {list(seeds)}: must be different whole numbers from 0 on")
    return seeds


def _nothing(episode: int, curves: Sequence[dict[str, float]]) -> None:
    """Nobody wants to know."""
