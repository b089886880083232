"""Every deployable method on live nodes under the virtual clock: the simulator's decisions.

    python campaigns/parity.py
    python campaigns/parity.py --episodes 2 --method cosmo:checkpoint=trained --method prequal
    python campaigns/parity.py --episodes 1 --scenario wild --rates 10 --set episode.window_ms=3000

Whole episodes; actions, fates, what ENs hear and updates are compared, and times bit by bit.
With `paper` (the default), methods that learn are trained for a moment first, unless they are named
with a folder of theirs; with other scenarios only the controller of the package is played. Tests do
the same with shorter episodes.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from compared import differences

from cosmo import load, method
from cosmo.control import play
from cosmo.policy.learned_methods import LEARNED
from cosmo.policy.registry import METHODS
from cosmo.policy.trained import TRAINED
from cosmo.workload import episode

BRIEF = ["episodes=2"]
SHORT = {
    "cosmo": ["episodes=4", "validate_every=2", "encoder.epochs=5"],
    "cosmo-flat": ["episodes=4", "validate_every=2", "encoder.epochs=5"],
    "cosmo-next": ["episodes=4", "worlds=8", "window_ms=1500.0", "en.steps=60"],
}


def trained(name: str, folder: Path) -> str:
    """A controller that acts, if not well."""
    out = folder / name
    settings = [part for each in SHORT.get(name, BRIEF) for part in ("--set", f"training.{each}")]
    command = ["train", "--method", name, "--rate", "320", "--seeds", "0", "--out", str(out)]
    subprocess.run(
        [sys.executable, "-m", "cosmo", *command, *settings], check=True, capture_output=True
    )
    return f"{name}:checkpoint={out}"


def main() -> None:
    """Compare and print; exit code 1 if a single task differs."""
    parser = argparse.ArgumentParser(description="The simulator's decisions on live nodes.")
    parser.add_argument("--episodes", type=int, default=10)
    parser.add_argument("--seed", type=int, default=100)
    parser.add_argument("--scenario", default="paper")
    parser.add_argument("--rates", default="220,320")
    parser.add_argument("--set", action="append", dest="settings", default=[])
    parser.add_argument("--method", action="append", dest="methods")
    chosen = parser.parse_args()
    start, tasks, wrong = time.monotonic(), 0, 0
    with tempfile.TemporaryDirectory(prefix="cosmo-parity-") as name:
        train = chosen.scenario == "paper" and not chosen.methods
        learned = [trained(each, Path(name)) for each in TRAINED] if train else []
        plain = [each for each in METHODS if each not in TRAINED or LEARNED[each].shipped]
        for spec in chosen.methods or [*plain, *learned]:
            own, differ, updates, unlike = 0, 0, 0, 0
            for rate in chosen.rates.split(","):
                world = load(chosen.scenario, [f"workload.rate={rate}", *chosen.settings])
                for number in range(chosen.episodes):
                    played = episode(world, chosen.seed, number)
                    make = partial(method, spec)
                    [outcome] = play(world, make(), [played], chosen.seed, [number])
                    found = differences(outcome, world, make, chosen.seed, number)
                    own += len(played.tasks)
                    differ += len(found.tasks)
                    updates += found.live[0]
                    unlike += found.live != found.simulated
            tasks, wrong = tasks + own, wrong + differ + unlike
            print(
                f"{spec.partition(':')[0]}: {own - differ} of {own} tasks the same, {updates}"
                f" updates, {unlike} episodes with other updates",
                flush=True,
            )
    print(f"{tasks} tasks, {wrong} differences, {time.monotonic() - start:.0f} s")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
