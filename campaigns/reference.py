"""Random worlds with every field of the model, in the engine and in the plain reference world.

    python campaigns/reference.py --worlds 200 --seed 1

Every task, observation, status and acknowledgement is compared (`tests/world`). The worlds are
drawn anew for each seed; the tests have fixed ones. A world in which the two differ is made as
small as possible, shown, and the exit code is 1.
"""

import argparse
import sys
from importlib import import_module
from pathlib import Path

import hypothesis

from cosmo.scenario import Scenario
from cosmo.workload import Episode

sys.path[:0] = [str(Path(__file__).parents[1] / "tests" / room) for room in ("", "world")]
agreement, scenarios = map(import_module, ("test_against_reference", "scenarios"))


def main() -> None:
    """Compare so many worlds."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    options.add_argument("--worlds", type=int, default=200)
    options.add_argument("--seed", type=int, default=1)
    chosen = options.parse_args()
    tasks = outages = 0

    @hypothesis.seed(chosen.seed)
    @hypothesis.settings(
        max_examples=chosen.worlds,
        deadline=None,
        database=None,
        derandomize=False,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(scenarios.worlds(), agreement.SALTS, agreement.INTERVALS)
    def compare(case: tuple[Scenario, Episode], salt: int, interval: float) -> None:
        nonlocal tasks, outages
        scenario, world = case
        agreement.assert_agreement(scenario, world, salt, interval)
        tasks += len(world.tasks)
        outages += int((world.events.what == 1).sum())

    compare()
    print(f"{chosen.worlds} worlds agree: {tasks} tasks, {outages} outages, seed {chosen.seed}")


if __name__ == "__main__":
    main()
