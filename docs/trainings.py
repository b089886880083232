"""Further trainings of the controller of the package, and how far they differ.

    python docs/trainings.py train DIR    # trainings of other seeds, side by side, each in DIR/SEED
    python docs/trainings.py play DIR     # each on every track of the benchmark
    python docs/regenerate.py --pages     # the tables, of docs/data/trainings.json

`train` does what `cosmo train --method cosmo-next --training universal --seeds SEED` does, with
several processes for each training, which find the same bits. `--seeds`, `--workers` (processes for
each training), `--rounds` (after which each training ends, in the order of the seeds) and `--set`
(of the training) change it; `play` has `--out FILE` and, for a try, `--tracks NAME …`. Both need
only what simulating and training need.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from cosmo.control import method as named_method
from cosmo.control import simulate_runs
from cosmo.policy.trained import TRAINED, Trained

DATA = Path(__file__).parent / "data" / "trainings.json"
METHOD, SEEDS = "cosmo-next", (1, 2, 3, 4, 5)
SHIPPED = "shipped"
# The shipped controller's value of a status was raised by this after training (see its card).
STATUS_VALUE = 1.7
SHOWN = ("success_rate", "net_utility_per_task", "update_cost_rate")
Told = dict[str, Any]


def train(folder: Path, options: argparse.Namespace) -> None:
    """All trainings at once, each in a process of its own that has `workers` more."""
    settings = [part for each in options.set for part in ("--set", each)]
    command = [sys.executable, __file__, "one", str(folder), f"--workers={options.workers}"]
    rounds = options.rounds or [None] * len(options.seeds)
    started = []
    for seed, most in zip(options.seeds, rounds, strict=True):
        ends = [] if most is None else [f"--rounds={most}"]
        started.append(subprocess.Popen([*command, *settings, *ends, f"--seeds={seed}"]))
    codes = [process.wait() for process in started]
    if any(codes):
        sys.exit("a training failed")


def train_one(folder: Path, options: argparse.Namespace) -> None:
    """One training; what it has found is written after every round."""
    from cosmo.learn.device import only_cpu

    only_cpu()
    from cosmo.learn import checkpoint, session
    from cosmo.learn.next.trainer import NextTrainer
    from cosmo.learn.next.universal import UniversalTrainer
    from cosmo.learn.run import Run
    from cosmo.scenario import load

    begun, [seed] = time.monotonic(), options.seeds
    config: Any = session.load_config_of(METHOD, "universal", options.set)
    runs = [Run(load("paper"), seed)]
    (folder / str(seed)).mkdir(parents=True)
    checkpoint.start(folder / str(seed), checkpoint.describe(METHOD, runs, config, "cpu"))
    curves = checkpoint.Curves(runs)
    trainer = UniversalTrainer(NextTrainer(runs, config), config.multi_node, options.workers)
    [rounds] = options.rounds or [config.episodes]
    while trainer.episode < min(rounds, config.episodes):
        curves.add(trainer.train_episode())
        checkpoint.save(folder / str(seed), trainer, curves)
        told = f"seed {seed}: round {trainer.episode} of {config.episodes}"
        print(f"{told}, {time.monotonic() - begun:.0f} s", flush=True)


def play(folder: Path, options: argparse.Namespace) -> None:
    """Every training, and the shipped controller, on the evaluation workloads of each track."""
    from cosmo.study import load_plan

    tracks = options.tracks or [track.name for track in load_plan("benchmark").tracks]
    trained = sorted(path.parent for path in folder.glob("*/agents.npz"))
    if not trained:
        sys.exit(f"{folder}: has no training in it")
    jobs = [(path, track) for track in tracks for path in (None, *trained)]
    workers = max(1, (os.cpu_count() or 2) - 1)
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        values = list(pool.map(_on_track, *zip(*jobs, strict=True)))
    found: Told = {"rounds": {path.name: _rounds(path) for path in trained}, "tracks": {}}
    for (path, track), runs in zip(jobs, values, strict=True):
        found["tracks"].setdefault(track, {})[path.name if path else SHIPPED] = runs
    options.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def _rounds(folder: Path) -> list[int]:
    """Rounds that were done, and rounds that were asked for."""
    import polars

    asked = json.loads((folder / "training.json").read_text(encoding="utf-8"))
    return [len(polars.read_parquet(folder / "curves.parquet")), asked["training"]["episodes"]]


def _on_track(folder: Path | None, name: str) -> dict[str, list[float]]:
    """What a training, or the shipped controller, gets on a track, run by run."""
    from cosmo.study import load_plan
    from cosmo.study.units import at_load

    plan = load_plan("benchmark")
    [track] = [each for each in plan.tracks if each.name == name]
    where = at_load(plan.scenario(track.scenario), "poisson", track.rate)
    method = named_method(METHOD) if folder is None else _raised(TRAINED[METHOD](folder))
    runs = simulate_runs(where, method, plan.seeds, plan.episodes)
    episodes = [each for run in runs for each in run.episodes]
    return {metric: [round(each[metric], 5) for each in episodes] for metric in SHOWN}


def _raised(method: Trained) -> Trained:
    """With the one step by hand that the shipped controller has."""
    agents: Any = method.controller.agents
    several = agents.multi_node
    middle = several.scaled.middle
    middle = middle._replace(status_value=STATUS_VALUE * middle.status_value)
    several = replace(several, scaled=several.scaled._replace(middle=middle))
    method.controller = replace(method.controller, agents=replace(agents, multi_node=several))
    return method


def tables(told: Told, study: Any) -> str:
    """Each track: the shipped controller, the trainings and how they spread, and their ranks.

    Args:
        told: What `play` wrote.
        study: The benchmark, whose other methods the trainings are ranked among.

    Returns:
        A table as Markdown, and below it a line on trainings that ended early.

    """
    import numpy as np

    from cosmo.measure.statistics import interval
    from cosmo.report.table import markdown
    from cosmo.study.leaderboard import board_of

    board, rows = board_of(_pooled(told, study)), list[tuple[str, ...]]()
    for track, found in told["tracks"].items():
        shipped = found[SHIPPED]
        own = {name: runs for name, runs in found.items() if name != SHIPPED}
        success = [float(np.mean(runs["success_rate"])) for runs in own.values()]
        over = interval(success)
        cost = [float(np.mean(runs["update_cost_rate"])) for runs in own.values()]
        [line] = [each for each in board.tracks[track] if each.entry.method == board.focus]
        rows.append(
            (
                track,
                f"{np.mean(shipped['success_rate']):.3f}",
                f"{np.mean(shipped['update_cost_rate']):.1f}",
                f"{over.mean:.3f} ± {over.ci95:.3f}",
                f"{min(success):.3f} to {max(success):.3f}",
                f"{np.mean(cost):.1f}",
                f"{min(cost):.1f} to {max(cost):.1f}",
                str(line.own_rank),
                str(line.equal_rank),
            )
        )
    ranks = board.own_ranks[board.focus], board.equal_ranks[board.focus]
    rows.append(("all tracks", *["–"] * 6, *map(str, ranks)))
    header = (
        "track", "shipped", "its cost", "trainings", "lowest and highest", "their cost",
        "lowest and highest cost", "rank, own cost", "rank, equal cost",
    )  # fmt: skip
    return markdown(header, rows) + _ended_early(told["rounds"])


def _ended_early(rounds: Told) -> str:
    """Nothing, or a line on the rounds that were done, and how to have the same again."""
    done, [asked] = [each[0] for each in rounds.values()], {each[1] for each in rounds.values()}
    if min(done) == asked:
        return ""
    listed = ",".join(map(str, done))
    return (
        f"\n\nThe trainings were ended early, after {min(done)} to {max(done)} of {asked} rounds:"
        f" `python docs/trainings.py train trainings --rounds {listed}` does the same."
    )


def _pooled(told: Told, study: Any) -> Any:
    """The benchmark with the trainings in place of the shipped controller."""
    import polars

    _, *others = (f"{METHOD}:checkpoint={name}" for name in told["rounds"])
    names = dict(zip(told["rounds"], (METHOD, *others), strict=True))
    shipped = study.metrics.filter(method=METHOD).sort("seed", "episode")
    parts = [study.metrics.filter(polars.col("method") != METHOD)]
    for track in study.plan.tracks:
        rows = shipped.filter(scenario=study.plan.scenario(track.scenario).name)
        for training, name in names.items():
            values = told["tracks"][track.name][training]
            columns = [polars.Series(metric, values[metric]) for metric in SHOWN]
            parts.append(rows.with_columns(polars.lit(name).alias("method"), *columns))
    plan = study.plan.model_copy(update={"repeats": {METHOD: tuple(others)}})
    return replace(study, plan=plan, metrics=polars.concat(parts))


def main() -> None:
    """Train or play."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("what", choices=("train", "one", "play"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=_numbers, default=SEEDS)
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 1) // len(SEEDS)))
    parser.add_argument("--rounds", type=_numbers)
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--out", type=Path, default=DATA)
    parser.add_argument("--tracks", nargs="*")
    options = parser.parse_args()
    {"train": train, "one": train_one, "play": play}[options.what](options.folder, options)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(each) for each in text.split(","))


if __name__ == "__main__":
    main()
