"""Work killed at random moments, and files damaged: identical results, or a refusal.

    python campaigns/chaos.py --kills 4 --flips 200       what continuous integration does
    make chaos KILLS=300 FLIPS=5000                       an evening

A small study with a training, a tuning, a report and a live run are carried out undisturbed. Then
each is carried out again while its processes are killed (-9) at random moments, and resumed, until
it is finished; `killed` says what must hold then. Files of the finished study are damaged one at a
time: bits flipped, cut, emptied or deleted. Whatever is read back must be what was written, or
refused in one line; a unit that cannot be believed must say so.
"""

import argparse
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from killed import Killed, kinds, same, study_contents

from cosmo import InputError
from cosmo.arrays import read_arrays
from cosmo.policy.controller import load_controller
from cosmo.study import LocalExecutor, conduct, load_plan, load_study, progress_of


def harmed(path: Path) -> str:
    """Damage a file; how."""
    content = bytearray(path.read_bytes())
    how = random.choice(("flip", "flip", "flip", "flip", "cut", "empty", "delete", "zeros"))
    if how == "delete":
        path.unlink()
    elif how == "empty" or not content:
        path.write_bytes(b"")
    elif how == "cut":
        path.write_bytes(content[: random.randrange(len(content))])
    else:
        place = random.randrange(len(content))
        if how == "zeros":
            content[place : place + 64] = bytes(len(content[place : place + 64]))
        else:
            content[place] ^= 1 << random.randrange(8)
        path.write_bytes(content)
    return how


def readers(out: Path, plan: Path) -> dict[str, Callable[[], Any]]:
    """Every way in which something is read back, and what it then means."""
    training, known = next(out.glob("units/cosmo-*/checkpoint")), load_plan(plan)

    def state() -> Any:
        progress = progress_of(out, known)
        if progress.damaged or progress.done < len(progress.units):
            raise InputError("said to be damaged, or not finished")
        return progress.done

    def controller() -> Any:
        found = load_controller(training)
        return {"told": dict(found.description), **read_arrays(training / "agents.npz")}

    def resumed() -> Any:
        return read_arrays(training / "state.npz")

    def tables() -> Any:
        study = load_study(out)
        told = {"plan": study.plan.model_dump(), "resolved": study.plan.resolved()}
        return {"metrics": study.metrics, "curves": study.curves, **told}

    return {"state": state, "controller": controller, "training": resumed, "tables": tables}


def _concerned(path: Path) -> tuple[str, ...]:
    """The ways that read a file."""
    if "checkpoint" in path.parts:
        return "state", "controller", "training"
    return ("state",) if path.parts[0] == "units" else ("state", "tables")


def flips(plan: Path, out: Path, count: int) -> tuple[int, Counter[str]]:
    """Damage and read; how often something else came back, and what was said."""
    ways = readers(out, plan)
    whole = {name: read() for name, read in ways.items()}
    files = sorted(path for path in out.rglob("*") if path.is_file())
    files = [path for path in files if "tensorboard" not in path.parts and path.name != "plan.toml"]
    wrong, said = 0, Counter[str]()
    for _ in range(count):
        path = random.choice(files)
        before = path.read_bytes()
        how = harmed(path)
        told = []
        for name in _concerned(path.relative_to(out)):
            read = ways[name]
            try:
                if not same(read(), whole[name]):
                    wrong += 1
                    print(f"WRONG: {how} of {path}: {name} is something else", flush=True)
                told.append("identical")
            except InputError as error:
                told.append("refused" if "\n" not in str(error) else "more than a line")
            except Exception as error:
                wrong += 1
                print(f"WRONG: {how} of {path}: {name}: {error!r}", flush=True)
        said["refused" if "refused" in told else "identical"] += 1
        path.write_bytes(before)
    return wrong, said


def repaired(plan: Path, out: Path) -> int:
    """A damaged unit is done again, in a copy: 0 if that gives what was there."""
    whole = study_contents(out)
    out = Path(shutil.copytree(out, out.with_name("repaired")))
    unit = next(out.glob("units/all-local-*"))
    (unit / "metrics.parquet").write_bytes(b"PAR1")
    (out / "metrics.parquet").unlink()
    progress = conduct(load_plan(plan), out, LocalExecutor(1))
    good = list(progress.damaged) == [unit.name] and same(study_contents(out), whole)
    return 0 if good else 1


def main() -> None:
    """Parse, run, tell."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--kills", type=int, default=50)
    options.add_argument("--flips", type=int, default=1000)
    options.add_argument("--kinds", nargs="*", default=["study", "tune", "report", "live"])
    options.add_argument("--seed", type=int, default=1)
    chosen = options.parse_args()
    random.seed(chosen.seed)
    with tempfile.TemporaryDirectory(prefix="cosmo-chaos-") as name:
        folder, wrong = Path(name), 0
        known = kinds(folder)
        # The study is damaged and reported on, so that it is always there.
        works = [Killed(known[kind], folder) for kind in dict.fromkeys(["study", *chosen.kinds])]
        for work in works:
            print(f"{work.name}: undisturbed {work.undisturbed():.0f} s", flush=True)
        plan, out = folder / "study.toml", folder / "whole-study"
        if chosen.flips:
            wrong, said = flips(plan, out, chosen.flips)
            print(f"{chosen.flips} times damaged: {dict(said)}, {wrong} wrong", flush=True)
            wrong += repaired(plan, out)
        works = [work for work in works if work.name in chosen.kinds]
        while (left := chosen.kills - sum(work.done for work in works)) > 0:
            # So that all kinds are killed as often, whatever becomes of each try.
            work = min(works, key=lambda each: each.done)
            work.round(min(left, -(-chosen.kills // len(works)) - work.done))
            print(", ".join(f"{each.name} {each.done} kills" for each in works), flush=True)
        for line in (line for work in works for line in work.wrong):
            print(f"WRONG: {line}")
        spoilt = sum(len(work.wrong) for work in works)
        print(f"{sum(work.done for work in works)} kills: {spoilt} wrong")
        sys.exit(1 if wrong or spoilt else 0)


if __name__ == "__main__":
    main()
