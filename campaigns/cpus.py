"""The same study on 1 or 2 CPUs with 1 or 2 workers: the same bits, down to the report's tables.

    python campaigns/cpus.py

Trains `cosmo` and `cosmo-next` for a moment and plays them beside a baseline, four times. Compared
are the study's tables, the networks, and every table that the report writes.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PLAN = """name = "cpus"
settings = ["episode.window_ms=1000", "episode.warmup_ms=200"]
arrivals = ["poisson"]
rates = [320.0]
seeds = [0, 1]
episodes = 2

[training]
settings = ["episodes=2", "validate_every=1", "encoder.collection_episodes=2", "encoder.epochs=2"]

[[train]]
name = "next"
method = "cosmo-next"
settings = ["episodes=2", "worlds=3", "window_ms=600", "en.steps=20", "en.batch=512"]

[[compare]]
methods = ["cosmo", "next", "aoi-threshold"]
"""


def cosmo(cpus: set[int], *arguments: str) -> None:
    """A command on these CPUs alone."""
    command = [sys.executable, "-m", "cosmo", *arguments]
    subprocess.run(
        command, check=True, capture_output=True, preexec_fn=lambda: os.sched_setaffinity(0, cpus)
    )


def digests(out: Path) -> dict[str, str]:
    """Of all that must be the same; rows of data frames are compared as CSV, not as files."""
    import numpy as np

    from cosmo.study import load_study

    study = load_study(out)
    found = {
        "metrics": hashlib.sha256(study.metrics.write_csv().encode()).hexdigest(),
        "curves": hashlib.sha256(study.curves.write_csv().encode()).hexdigest(),
    }
    for path in sorted(out.glob("units/*/checkpoint/agents.npz")):
        with np.load(path) as file:
            for name in file.files:
                place = f"{path.parts[-3]}/{name}"
                found[place] = hashlib.sha256(file[name].tobytes()).hexdigest()
    for path in sorted((out / "report").rglob("*")):
        if path.suffix in (".md", ".tex", ".csv"):
            found[str(path.relative_to(out))] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def main() -> None:
    """Four times, and compare."""
    every = sorted(os.sched_getaffinity(0))
    if len(every) < 2:
        print("needs two CPUs")
        sys.exit(2)
    first: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="cosmo-cpus-") as name:
        plan = Path(name) / "plan.toml"
        plan.write_text(PLAN)
        for cpus, workers in ((1, 1), (1, 2), (2, 1), (2, 2)):
            out, start = Path(name) / f"{cpus}-{workers}", time.monotonic()
            chosen = set(every[:cpus])
            cosmo(chosen, "study", "run", str(plan), "--out", str(out), "--workers", str(workers))
            cosmo(chosen, "report", str(out))
            found = digests(out)
            first = first or found
            differ = sorted(
                key for key in first.keys() | found.keys() if first.get(key) != found.get(key)
            )
            took = f"{time.monotonic() - start:.0f} s"
            print(f"{cpus} CPUs, {workers} workers: {len(found)} digests, {took}, differ: {differ}")
            if differ:
                sys.exit(1)


if __name__ == "__main__":
    main()
