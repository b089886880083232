"""Mistakes made on purpose, one at a time, and whether a test notices.

    make mutants MUTANTS=60 SEED=1        a random sample of all rooms, within 15 minutes

A mutant is made in a copy of the sources, one copy for each core. Test files that may notice it
are looked for (`knowledge`), and their tests that enter its function run there, the shortest first,
with the kernel as plain Python (`interpreted`). The score counts a mutant as caught if a test fails
or does not end; equivalent ones (`known.toml`) do not count, nor do those for which not all tests
were tried: these are undecided, and counted beside the score. There was no time, or tests of large
worlds need a kernel that is compiled of the mutant itself, which takes a minute (`--compiled`).
Survivors are printed. When the time is over, the score is that of the mutants that were tried. On a
busy machine, or the first time, give more minutes: tests are measured when they are needed, and
measurements are kept.
"""

import argparse
import os
import queue
import threading
import time
from collections import Counter

from changes import ROOMS, Mutant, sampled
from knowledge import Knowledge
from known import reasons
from trial import Trial

_GENEROUS = 3.0  # times its share of what is left, for one mutant: most need far less
_LEAST_S = 12.0


class Campaign:
    """A sample, tried by some threads until it is done or the time is over."""

    def __init__(self, mutants: list[Mutant], minutes: float, compiled: bool) -> None:
        self._end = time.monotonic() + 60.0 * minutes
        self._compiled = compiled
        self._left: queue.SimpleQueue[Mutant] = queue.SimpleQueue()
        for mutant in mutants:
            self._left.put(mutant)
        self._equivalent, self._open = reasons("equivalent"), reasons("open")
        self._knowledge = Knowledge()
        self.found: Counter[tuple[str, str]] = Counter()  # (room, word)
        self.survivors: list[str] = []

    def run(self, workers: int) -> None:
        """Try them all, `workers` at a time."""
        threads = [
            threading.Thread(target=self._work, args=(number, workers)) for number in range(workers)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _work(self, number: int, workers: int) -> None:
        trial = Trial(number, self._knowledge, self._compiled)
        while (left_s := self._end - time.monotonic()) > 1.0:
            share_s = left_s * workers / max(self._left.qsize(), 1)
            try:
                mutant = self._left.get_nowait()
            except queue.Empty:
                break
            self._try(trial, mutant, min(left_s, max(_GENEROUS * share_s, _LEAST_S)))
        trial.end()

    def _try(self, trial: Trial, mutant: Mutant, limit_s: float) -> None:
        room, key = mutant.file.partition("/")[0], (mutant.file, mutant.line, mutant.becomes)
        if key in self._equivalent:
            word, told = "equivalent", self._equivalent[key]
        else:
            start = time.monotonic()
            by, why = trial.caught_by(mutant, limit_s, self._end)
            word = "caught" if by else "undecided" if why else "SURVIVED"
            why = by or why
            told = f"{time.monotonic() - start:.0f} s{', ' * bool(why)}{why}"
            if not by:
                reason = self._open.get(key, why or "not looked at yet")
                self.survivors.append(f"{mutant}  ({reason})")
        print(f"{word} {mutant} ({told})", flush=True)
        self.found[room, word] += 1

    @property
    def untried(self) -> int:
        """Mutants for which there was no time."""
        return self._left.qsize()


def main() -> None:
    """Parse, run, print the score."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--mutants", type=int, default=60)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--without-seeds", type=int, nargs="*", default=[], metavar="SEED")
    options.add_argument("--rooms", nargs="*", help="rooms, folders or files of the package")
    options.add_argument("--only", help="those whose place or text contains this")
    options.add_argument("--minutes", type=float, default=15.0, help="limit; then the score so far")
    options.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    options.add_argument(
        "--compiled", action="store_true", help="also tests that need the compiled kernel (slow)"
    )
    chosen = options.parse_args()
    rooms = chosen.rooms or list(ROOMS)
    mutants = sampled(chosen.mutants, chosen.seed, rooms, chosen.without_seeds)
    picked = [each for each in mutants if not chosen.only or chosen.only in str(each)]
    campaign = Campaign(picked, chosen.minutes, chosen.compiled)
    campaign.run(chosen.workers)
    found = campaign.found
    words = ("caught", "SURVIVED", "equivalent", "undecided")
    for room in sorted({room for room, _ in found}):
        _tell(room, *(found[room, word] for word in words))
    _tell("all", *(sum(n for (_, each), n in found.items() if each == word) for word in words))
    if campaign.untried:
        print(f"out of time: {campaign.untried} of {len(picked)} mutants were not tried")
    survivors = campaign.survivors
    print("\n".join(["survivors:", *survivors] if survivors else ["no survivors"]))


def _tell(room: str, caught: int, survived: int, equivalent: int, undecided: int) -> None:
    total = caught + survived
    share = f"{caught / total:.1%}" if total else "-"
    counted = f"{room}: {caught} of {total} caught ({share}), {equivalent} equivalent"
    print(f"{counted}, {undecided} without all their tests")


if __name__ == "__main__":
    main()
