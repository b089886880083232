"""`cosmo train`: train the runs of a method that learns, stacked in one process."""

import sys
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, TimeRemainingColumn

from cosmo.cli import options
from cosmo.cli.console import note, notes, prepare_engine, words
from cosmo.files import only_run

TRAINING = "training."  # how the settings of training start; all others are the scenario's


def train(
    out: options.OutOption,
    method_name: Annotated[
        str, typer.Option("--method", "-m", help="cosmo, cosmo-flat or cosmo-next.")
    ] = "cosmo",
    scenario_name: options.ScenarioOption = "paper",
    arrivals: options.ArrivalsOption = None,
    rates: options.RatesOption = None,
    engine: options.EngineOption = None,
    seeds: options.SeedsOption = "0,1,2",
    training: Annotated[
        str | None,
        typer.Option(help="A training preset or a TOML file (default: the method's own)."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="Set a field of the scenario (workload.rate=220) or of training"
            " (training.episodes=20). Repeatable.",
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue an interrupted training.")
    ] = False,
    device: Annotated[
        str, typer.Option(help="Where networks are trained: cpu or gpu. Bits differ between them.")
    ] = "cpu",
) -> None:
    """Train a method's two agents and keep the best networks of every run.

    cosmo train --rates 220 --seeds 0,1,2 --out trained

    cosmo train --method cosmo-next --scenario shared-sn --out next --resume
    """
    from cosmo.learn import session  # JAX takes seconds to import
    from cosmo.learn.device import checked_device, only_cpu
    from cosmo.learn.run import Run
    from cosmo.policy.learned_methods import learned_method

    if checked_device(device) == "cpu":
        only_cpu()
    of_training = [item for item in settings or [] if item.startswith(TRAINING)]
    of_scenario = [item for item in settings or [] if not item.startswith(TRAINING)]
    scenarios = options.chosen_scenarios(scenario_name, of_scenario, arrivals, rates, engine)
    fields = [item.removeprefix(TRAINING) for item in of_training]
    config = session.load_config_of(method_name, training, fields)
    runs = [Run(scenario, seed) for scenario in scenarios for seed in options.seeds_from(seeds)]
    workload = scenarios[0].workload
    prepare_engine(scenarios[0])
    load = f"{workload.arrivals}, {rates or f'{workload.rate:g}'} tasks/s"
    if learned_method(method_name).scope == "scenario":
        load = "all loads"
    title = f"{method_name} on {scenarios[0].name} ({load}), {len(runs)} run(s)"
    with only_run(out), _Progress(title, config.episodes) as told:
        session.train(
            out, method_name, runs, config, resume, tensorboard=True, on_episode=told, device=device
        )
    note(
        f"trained {title}, {config.episodes} episodes; wrote {out}\n"
        f"next: cosmo evaluate {out} --episodes 5",
    )


class _Progress:
    """A live line in a terminal, a line every ten episodes in logs."""

    def __init__(self, title: str, episodes: int) -> None:
        self._title, self._episodes = title, episodes
        self._bar = Progress(
            words("{task.description}"),
            BarColumn(bar_width=24),
            words("episode {task.completed:.0f}/{task.total:.0f}  {task.fields[told]}"),
            TimeRemainingColumn(),
            console=notes,
            transient=True,
            disable=not sys.stderr.isatty(),
        )
        self._task = self._bar.add_task(title, total=episodes, told="")

    def __enter__(self) -> "_Progress":
        self._bar.start()
        return self

    def __exit__(self, *unused: object) -> None:
        self._bar.stop()

    def __call__(self, episode: int, curves: Sequence[dict[str, float]]) -> None:
        if not curves:
            if episode == 0 and self._bar.disable:
                note(f"training {self._title}")
            text = "pretraining" if episode == 0 else f"resumed after episode {episode}"
        else:
            mean = {
                name: sum(curve[name] for curve in curves) / len(curves)
                for name in ("reward", "success_rate", "epsilon", "update_cost_rate")
            }
            text = (
                f"reward {mean['reward']:.0f}  success {mean['success_rate']:.3f}"
                f"  ε {mean['epsilon']:.2f}  updates {mean['update_cost_rate']:.1f}/s"
            )
        self._bar.update(self._task, completed=episode, told=text)
        if self._bar.disable and episode and (episode % 10 == 0 or not curves):
            notes.print(f"episode {episode}/{self._episodes}  {text}")
