"""Fuzzing of everything that a command reads: the corpus first, then cases by grammar.

    python campaigns/fuzz/run.py --cases 2000 --seed 1     what continuous integration does
    make fuzz CASES=200000                                 a night

Every case goes through the command line's `main` in this process, or through one of the `doors`
that are no command. What must hold is in `judge`; a
case for which it does not is written to `found/`, one for each way to fail, and the exit code is 1.

A kind of which everything is refused tests nothing behind the first check. So the undamaged base of
every kind must be accepted, and a tenth of its cases; the exit code is 1 if they are not. ONNX
files are left out where onnxruntime is not installed, unless `--kinds` asks for them.
"""

import argparse
import json
import os
import sys
import time
import warnings
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import bases
import hypothesis
from grammar import KINDS as GRAMMAR
from grammar import METHODS, as_json
from grammar_doors import DOOR_KINDS
from grammar_nodes import NODE_KINDS
from judge import Case, Found, judged
from undamaged import undamaged

from cosmo import load, method, simulate
from cosmo.cli.console import prepare_engine
from cosmo.workload.effort import LIMIT

HERE = Path(__file__).parent
# Cheap kinds more often; the others draw worlds or write files.
SHARES = {
    "set": 5, "scenario": 4, "plan": 3, "csv": 2, "parquet": 2, "controller": 4, "onnx": 1,
    "method": 4, "command": 3, "live": 3, "daemon": 3, "log": 3, "store": 3, "import": 1,
    "any-log": 3, "picker": 4, "page": 1, "endpoints": 2, "http": 1,
}  # fmt: skip
KINDS = GRAMMAR | NODE_KINDS | DOOR_KINDS
LEAST_ACCEPTED = 0.1
# Of fewer cases a share says little: kinds accept about a quarter, or more. Where there is room for
# as many of each kind, every kind has them.
LEAST_CASES = 80


class Campaign:
    """Counts, and keeps one example for each way to fail."""

    def __init__(self, keep: Path) -> None:
        self.codes: Counter[tuple[str, int]] = Counter()
        self.accepted: Counter[str] = Counter()
        self.ways: dict[str, Case] = {}
        self.wrong, self.slowest, self.keep = 0, 0.0, keep

    def note(self, case: Case, found: Found) -> None:
        """One case more."""
        self.codes[case.kind, found.code] += 1
        self.accepted[case.kind] += found.accepted
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
        door = told.get("door", "")
        case = Case(
            f"corpus/{path.stem}", tuple(told["arguments"]), files, outputs=outputs, door=door
        )
        found = judged(case)
        says = told.get("says", "")
        if not found.wrong and (found.code != told["code"] or says not in found.err):
            line = f"exit code {found.code}, must be {told['code']} and say {says!r}: {found.err!r}"
            found = Found(found.code, found.out, found.err, found.seconds, line)
        campaign.note(case, found)
    return len(paths)


def refused_base(kind: str) -> str:
    """Why an undamaged base of this kind is not accepted, in a line; empty if all are."""
    for case in undamaged(kind):
        found = judged(case)
        if not found.accepted:
            last = (found.trace or found.err).strip().split("\n")[-1]
            return f"{' '.join(case.arguments)}: exit code {found.code}, {found.wrong} {last}"
    return ""


def refusing(campaign: Campaign, kinds: list[str]) -> list[str]:
    """A line for each kind of which nearly everything was refused."""
    lines = []
    for kind in kinds:
        total = sum(count for (name, _), count in campaign.codes.items() if name == kind)
        if total >= LEAST_CASES and campaign.accepted[kind] < LEAST_ACCEPTED * total:
            told = f"{campaign.accepted[kind]} of {total} cases accepted"
            lines.append(f"{kind}: {told}, must be at least {LEAST_ACCEPTED:.0%}")
    return lines


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
    options.add_argument("--kinds", default="", help="separated by commas; all by default")
    options.add_argument("--keep", type=Path, default=HERE / "found")
    chosen = options.parse_args()
    os.environ[LIMIT] = "3000"  # what is accepted must also be played, thousands of times
    warnings.simplefilter("ignore", hypothesis.errors.NonInteractiveExampleWarning)
    prepare_engine()  # compiled once, which takes longer than any case may
    for name in METHODS:
        simulate(load("paper", bases.SHORT), method(name))
    start, campaign = time.monotonic(), Campaign(chosen.keep)
    kinds = chosen.kinds.split(",") if chosen.kinds else list(KINDS)
    if not chosen.kinds and find_spec("onnxruntime") is None:
        kinds.remove("onnx")
        print("onnx: left out, onnxruntime is not installed")
    for kind in kinds:
        if why := refused_base(kind):
            sys.exit(f"{kind}: the undamaged base is not accepted: {why}")
    count = corpus(campaign)
    whole = sum(SHARES[kind] for kind in kinds)
    least = max(1, min(LEAST_CASES, chosen.cases // len(kinds)))
    for kind in kinds:
        share = chosen.cases * SHARES[kind] // whole
        generated(campaign, kind, max(least, share), chosen.seed)
        print(f"{kind}: {time.monotonic() - start:.0f} s", flush=True)
    total = sum(campaign.codes.values())
    print(
        f"{total} cases ({count} of the corpus), seed {chosen.seed},"
        f" {time.monotonic() - start:.0f} s"
    )
    told = (f"{kind} {code}: {campaign.codes[kind, code]}" for kind in kinds for code in (0, 2))
    print("exit codes:", ", ".join(told))
    print(f"wrong: {campaign.wrong} in {len(campaign.ways)} ways; slowest {campaign.slowest:.1f} s")
    too_strict = refusing(campaign, kinds)
    for line in too_strict:
        print(f"TESTS NOTHING {line}")
    sys.exit(1 if campaign.wrong or too_strict else 0)


if __name__ == "__main__":
    main()
