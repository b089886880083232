"""`cosmo.train`: a training from Python, by names and keywords."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from cosmo.control.arguments import ScenarioLike, at_rates, several_seeds
from cosmo.documents import Settings
from cosmo.files import only_run
from cosmo.learn import session
from cosmo.learn.run import Run
from cosmo.policy.controller import Controller, load_controller


def train(
    scenario: ScenarioLike,
    method: str,
    out: str | Path,
    *,
    rates: float | Iterable[float] | None = None,
    arrivals: str | None = None,
    seeds: int | Iterable[int] = (0, 1, 2),
    settings: Settings = (),
    training: Settings = (),
    config: str | Path | None = None,
    resume: bool = False,
    on_episode: session.OnEpisode | None = None,
    device: str = "cpu",
) -> Controller:
    """Train the runs of a method that learns into a folder; resume there if asked to.

    Args:
        scenario: A scenario, a preset's name or the path of a TOML file.
        method: A name of `cosmo methods` that learns: "cosmo", "cosmo-flat" or "cosmo-next".
        out: The folder to write to.
        rates: Tasks/s in each cell, one or several: every rate is trained with every seed.
        arrivals: The arrival process; like `rates`, the scenario's by default.
        seeds: One or several, one run a seed; all runs are trained side by side.
        settings: Fields of the scenario, `{"sn.slots": 6}` or `["sn.slots=6"]`.
        training: Fields of the training, `{"episodes": 20, "en.batch": 16}` or as a list.
        config: A preset or TOML file of the training, the method's own by default.
        resume: Go on with an interrupted training of the same kind.
        on_episode: Called after every episode with its number and the curves of each run.
        device: Where JAX computes, "cpu" or "gpu".

    Returns:
        The trained controller, with a run for each rate and seed.

    Raises:
        InputError: In one line, for bad input, or if the folder holds something else.

    """
    points = at_rates(scenario, settings, rates, arrivals)
    chosen = session.load_config_of(method, None if config is None else str(config), training)
    runs = [Run(point, seed) for point in points for seed in several_seeds(seeds)]
    folder = Path(out)
    with only_run(folder):
        session.train(
            folder, method, runs, chosen, resume, on_episode=on_episode or _nothing, device=device
        )
    return load_controller(folder)


def _nothing(episode: int, curves: Sequence[dict[str, float]]) -> None:
    """Nobody wants to know."""
