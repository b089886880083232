"""Fuzzing of everything that a command reads: the corpus first, then cases by grammar.

    python campaigns/fuzz/run.py --cases 2000 --seed 1     what continuous integration does
    make fuzz CASES=200000                                 a night

Every case goes through the command line's `main` in this process. What must hold is in `judge`; a
case for which it does not is written to `found/`, one for each way to fail, and the exit code is 1.
"""

import argparse
import json
import os
import sys
import time
import warnings
from collections import Counter
from pathlib import Path

import bases
import hypothesis
from grammar import KINDS, as_json
from judge import Case, Found, judged

from cosmo import load, method, simulate
from cosmo.cli.console import prepare_engine
from cosmo.workload.effort import LIMIT

HERE = Path(__file__).parent
# Cheap kinds more often; the others draw worlds or write files.
SHARES = {
    "set": 5, "scenario": 4, "plan": 3, "csv": 2, "parquet": 2, "controller": 4, "onnx": 1,
    "method": 4, "command": 3, "log": 3,
}  # fmt: skip


class Campaign:
    """Counts, and keeps one example for each way to fail."""

    def __init__(self, keep: Path) -> None:
        self.codes: Counter[str] = Counter()
        self.ways: dict[str, Case] = {}
        self.wrong, self.slowest, self.keep = 0, 0.0, keep

    def note(self, case: Case, found: Found) -> None:
        """One case more."""
        self.codes[f"{case.kind} {found.code}"] += 1
        self.slowest = max(self.slowest, found.seconds)
        if not found.wrong:
            return
        self.wrong += 1
        last = found.trace.strip().splitlines()[-1:] or [found.wrong]
        place = [line for line in found.trace.splitlines() if line.startswith("  File")][-1:]
        way = f"{case.kind}: {found.wrong}: {last[0][:150]} {''.join(place).strip()}"
        if way in self.ways:
            return
        self.ways[way] = case
        self.keep.mkdir(exist_ok=True)
        path = self.keep / f"{case.kind.replace('/', '-')}-{len(self.ways)}.json"
        path.write_text(as_json(case))
        print(f"WRONG {way}\n      {str(case.arguments)[:300]}\n      kept as {path}", flush=True)


def corpus(campaign: Campaign) -> int:
    """Every case that was ever wrong, and what must come of it."""
    paths = sorted((HERE / "corpus").glob("*.json"))
    for path in paths:
        told = json.loads(path.read_text())
        files = {name: content.encode("latin-1") for name, content in told["files"].items()}
        outputs = tuple(told.get("outputs", ()))
        case = Case(f"corpus/{path.stem}", tuple(told["arguments"]), files, outputs=outputs)
        found = judged(case)
        says = told.get("says", "")
        if not found.wrong and (found.code != told["code"] or says not in found.err):
            line = f"exit code {found.code}, must be {told['code']} and say {says!r}: {found.err!r}"
            found = Found(found.code, found.out, found.err, found.seconds, line)
        campaign.note(case, found)
    return len(paths)


def generated(campaign: Campaign, kind: str, cases: int, seed: int) -> None:
    """Cases of one kind."""

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=cases,
        database=None,
        deadline=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(KINDS[kind])
    def one(case: Case) -> None:
        campaign.note(case, judged(case))

    one()


def main() -> None:
    """Parse, run, tell."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--cases", type=int, default=2000)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--kinds", default=",".join(KINDS))
    options.add_argument("--keep", type=Path, default=HERE / "found")
    chosen = options.parse_args()
    os.environ[LIMIT] = "3000"  # what is accepted must also be played, thousands of times
    warnings.simplefilter("ignore", hypothesis.errors.NonInteractiveExampleWarning)
    prepare_engine()  # compiled once, which takes longer than any case may
    simulate(load("paper", bases.SHORT), method("aoi-threshold"))
    start, campaign = time.monotonic(), Campaign(chosen.keep)
    count = corpus(campaign)
    kinds = chosen.kinds.split(",")
    whole = sum(SHARES[kind] for kind in kinds)
    for kind in kinds:
        generated(campaign, kind, max(1, chosen.cases * SHARES[kind] // whole), chosen.seed)
        print(f"{kind}: {time.monotonic() - start:.0f} s", flush=True)
    total = sum(campaign.codes.values())
    print(
        f"{total} cases ({count} of the corpus), seed {chosen.seed},"
        f" {time.monotonic() - start:.0f} s"
    )
    print("exit codes:", ", ".join(f"{name}: {n}" for name, n in sorted(campaign.codes.items())
                                   if not name.startswith("corpus")))  # fmt: skip
    print(f"wrong: {campaign.wrong} in {len(campaign.ways)} ways; slowest {campaign.slowest:.1f} s")
    sys.exit(1 if campaign.wrong else 0)


if __name__ == "__main__":
    main()
