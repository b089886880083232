"""How many of the SN's errors are in the linear part of its loss, and how large its values are.

    cosmo study run docs/plans/intervals.toml --out DIR
    python docs/saturation.py DIR
    python docs/regenerate.py --pages

Looks, for every training of a study, at the replay that it left behind: the share of errors above
1, where the Huber loss tells their sign alone, and the mean value of the best action, from the
lowest to the highest of its runs. Writes docs/data/saturation.json: checkpoints are too large to
be kept.
"""

import json
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cosmo.learn import sn_agent
from cosmo.learn.config import TrainingConfig
from cosmo.learn.replay import SequenceReplay
from cosmo.learn.stack import Layout
from cosmo.policy.networks import sn_shapes, sn_step
from cosmo.report.table import markdown
from cosmo.study import load_study

_SAMPLES = 2000
FOUND = Path(__file__).parent / "data" / "saturation.json"
Floats = NDArray[np.float64]


def of_training(folder: Path) -> tuple[list[tuple[str, float]], Floats, Floats]:
    """(arrivals, tasks/s), share of errors above 1 and mean value of every run of a training."""
    told = json.loads((folder / "training.json").read_text(encoding="utf-8"))
    config = TrainingConfig.model_validate(told["training"])
    layout = Layout(
        sn_shapes(config.sn_inputs, config.sn.projection, config.sn.hidden, config.sn.actions)
    )
    with np.load(folder / "state.npz") as state:
        kept = {name.removeprefix("sn/"): state[name] for name in state.files if "sn/" in name}
    rows = kept["replay.rows"]
    replay = SequenceReplay(len(rows), config.sn.replay, rows.shape[2])
    replay.restore({name.removeprefix("replay."): kept[name] for name in kept if "replay" in name})
    shares, values = np.zeros(len(rows)), np.zeros(len(rows))
    for run in range(len(rows)):
        batch = replay.sample(run, _SAMPLES, np.random.default_rng(run))
        online, frozen = layout.views(kept["parameters"][run]), layout.views(kept["target"][run])
        errors = np.concatenate(
            [
                np.asarray(e)
                for e in sn_agent.errors(config.sn, config.sn_inputs, online, frozen, batch)
            ]
        )
        shares[run] = (np.abs(errors) > 1.0).mean()
        start = sn_agent.EXTRA_COLUMNS
        seen = batch[:, 0, start : start + config.sn_inputs]
        hidden = batch[:, 0, start + config.sn_inputs :][:, : config.sn.hidden]
        values[run] = sn_step(online, seen, hidden)[0].max(axis=1).mean()
    loads = [run["scenario"]["workload"] for run in told["runs"]]
    return [(each["arrivals"], each["rate"]) for each in loads], shares, values


def main() -> None:
    """Every training of a study."""
    study = load_study(Path(sys.argv[1]))
    told = []
    for scenario, arrivals, rate, method in study.plan.points():
        loads, shares, values = of_training(study.checkpoint(method, rate, arrivals, scenario.name))
        here = np.array([each == (arrivals, rate) for each in loads])
        found = {"errors_above_1": shares[here], "value": values[here]}
        spread = {
            name: [round(float(f(all_)), 4) for f in (np.min, np.max)]
            for name, all_ in found.items()
        }
        told.append({"arrivals": arrivals, "rate": rate, "method": method, **spread})
        print(told[-1])
    FOUND.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


def table() -> str:
    """What was found, as the page shows it."""
    rows = [
        (
            f"{row['rate']:g}",
            f"`{row['method']}`",
            " to ".join(f"{share:.0%}" for share in row["errors_above_1"]),
            " to ".join(f"{value:.1f}" for value in row["value"]),
        )
        for row in sorted(
            json.loads(FOUND.read_text(encoding="utf-8")), key=lambda row: row["rate"]
        )
    ]
    return markdown(("tasks/s", "method", "errors above 1", "mean value of the best action"), rows)


if __name__ == "__main__":
    main()
