"""Mistakes made on purpose, one at a time, and whether a test notices.

    python campaigns/mutants/score.py --once                  the mutants that once survived
    make mutants MUTANTS=140 SEED=1                         a random sample of the formulas

A mutant is made in a copy of the sources. Tests that enter its function run there (`knowledge`),
the shortest first, at first with the kernel as plain Python (`interpreted`), then compiled. The
score counts a mutant as caught if a test fails, or does not end; equivalent ones (`known.toml`) do
not count. Survivors are printed to be looked at.
"""

import argparse
import sys
import time
from collections import Counter

from changes import ROOMS, sampled
from known import once, reasons
from trial import Trial


def main() -> None:
    """Parse, run, tell."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--mutants", type=int, default=40)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--without-seeds", type=int, nargs="*", default=[], metavar="SEED")
    options.add_argument("--rooms", nargs="*", help="rooms, folders or files of the package")
    options.add_argument("--only", help="those whose place or text contains this")
    options.add_argument(
        "--plain", action="store_true", help="none of the tests that need the compiled kernel"
    )
    options.add_argument("--once", action="store_true", help="those that went unnoticed once")
    chosen = options.parse_args()
    rooms = chosen.rooms or list(ROOMS)
    mutants = (
        list(once())
        if chosen.once
        else sampled(chosen.mutants, chosen.seed, rooms, chosen.without_seeds)
    )
    equivalent, known = reasons("equivalent"), reasons("open")
    found: Counter[tuple[str, str]] = Counter()
    survivors = []
    trial = Trial(compiled=not chosen.plain)
    for mutant in mutants:
        if chosen.only and chosen.only not in str(mutant):
            continue
        room, key = mutant.file.partition("/")[0], (mutant.file, mutant.line, mutant.becomes)
        if key in equivalent:
            word, by = "equivalent", equivalent[key]
            print(f"equivalent {mutant} ({by})", flush=True)
        else:
            start = time.monotonic()
            by = trial.caught_by(mutant)
            word = "caught" if by else "SURVIVED"
            took = time.monotonic() - start
            print(f"{word} {mutant} ({took:.0f} s{', ' * bool(by)}{by})", flush=True)
        found[room, word] += 1
        if not by:
            survivors.append(f"{mutant}  ({known.get(key, 'not looked at yet')})")
    trial.end()
    for room in sorted({room for room, _ in found}):
        _tell(room, *(found[room, word] for word in ("caught", "SURVIVED", "equivalent")))
    everywhere = Counter[str]()
    for (_, word), count in found.items():
        everywhere[word] += count
    _tell("all", *(everywhere[word] for word in ("caught", "SURVIVED", "equivalent")))
    print("\n".join(["survivors:", *survivors] if survivors else ["no survivors"]))
    sys.exit(1 if chosen.once and survivors else 0)


def _tell(room: str, caught: int, survived: int, equivalent: int) -> None:
    total = caught + survived
    share = f"{caught / total:.1%}" if total else "-"
    print(f"{room}: {caught} of {total} caught ({share}), {equivalent} equivalent")


if __name__ == "__main__":
    main()
