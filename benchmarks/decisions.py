"""What a node pays: one EN decision of each method at a time, against the simplest rule; and what
importing the node's room and holding a trained controller costs, against importing NumPy alone.

python benchmarks/decisions.py [--small]
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from cosmo import Worlds, load, method
from cosmo.learn import session
from cosmo.learn.run import Run
from cosmo.workload import episode
from cosmo.world import site_of
from measured import sized

DECISIONS = sized(1500, 150)
SIMPLEST = "local-until-full"
SHORT = {
    "cosmo": ["episodes=1", "encoder.epochs=1", "encoder.collection_episodes=1"],
    "cosmo-next": ["episodes=1", "worlds=4", "en.steps=5"],
}


def trained(folder: Path) -> dict[str, str]:
    """Controllers of both learned methods; how good they are does not matter here."""
    found = {}
    scenario = load("paper", ["workload.rate=320"])
    for name, settings in SHORT.items():
        config = session.load_config_of(name, None, settings)
        session.train(folder / name, name, [Run(scenario, 0)], config)
        found[name] = f"{name}:checkpoint={folder / name}"
    return found


def decision_ms(spec: str) -> tuple[float, float]:
    """Median and 99th percentile of one decision in an episode at 320 tasks/s, in ms."""
    scenario = load("paper", ["workload.rate=320"])
    chosen, site = method(spec), site_of(scenario)
    dispatcher = chosen.dispatcher(site)
    updater = chosen.updater(site) if chosen.carries else None
    worlds = Worlds(scenario, [episode(scenario, 0, 0)], chosen.carries)
    turn, took = worlds.advance(), list[float]()
    while not turn.over and len(took) < DECISIONS:
        if len(turn.feedback):
            dispatcher.observe(turn.feedback)
        if len(turn.dispatch):
            start = time.perf_counter()
            action = np.asarray(dispatcher.decide(turn.dispatch))
            took.append(time.perf_counter() - start)
            worlds.answer(action=action)
        if updater is not None and len(turn.update):
            send, interval_ms = updater.decide(turn.update)
            numbers = updater.encode(turn.update.states)
            worlds.answer(send=send, interval_ms=interval_ms, numbers=numbers)
        turn = worlds.advance()
    median, last = np.percentile(took, (50, 99)) * 1e3
    return float(median), float(last)


def fresh_process(lines: str) -> tuple[float, float]:
    """Seconds of importing, and resident MB after it, in a process of its own."""
    code = (
        f"import time; start = time.perf_counter(); {lines}; took = time.perf_counter() - start\n"
        "import os; pages = int(open('/proc/self/statm').read().split()[1])\n"
        "print(took, pages * os.sysconf('SC_PAGE_SIZE') / 1e6)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    seconds, resident = map(float, done.stdout.split())
    return seconds, resident


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        specs = trained(Path(scratch))
        base, _ = decision_ms(SIMPLEST)
        print(f"one decision of {SIMPLEST}: {base:.4f} ms (median)")
        rules = {"strict (aoi-threshold)": "aoi-threshold", "self-tracking": "self-tracking"}
        for name, spec in {**rules, "priced-books": "priced-books", **specs}.items():
            median, last = decision_ms(spec)
            ratio = median / base
            print(f"  {name}: {median:.4f} ms, 99 % {last:.4f} ms, {ratio:.1f} times")
        load_all = "; ".join(
            f"method({spec!r})" for spec in ("self-tracking", "priced-books", *specs.values())
        )
        alone = min(fresh_process("import numpy") for _ in range(3))
        for title, lines in (
            ("import cosmo.node", "import cosmo.node"),
            ("trained controllers", f"from cosmo.policy.registry import method; {load_all}"),
            ("the laboratory (cosmo.control)", "import cosmo.control"),
        ):
            seconds, resident = min(fresh_process(lines) for _ in range(3))
            print(
                f"{title}: {seconds:.2f} s and {resident:.0f} MB, NumPy alone {alone[0]:.2f} s and"
                f" {alone[1]:.0f} MB: {seconds / alone[0]:.1f} and {resident / alone[1]:.1f} times"
            )


if __name__ == "__main__":
    main()
