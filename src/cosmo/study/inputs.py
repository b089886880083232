"""Copies of the files that a study was made of: policies, models, traces, scenarios.

They lie in the study's folder as `inputs/DIGEST/NAME`, and `inputs/index.json` says which file of
the plan each of them is. So a copied folder, on another machine too, gives the same report.
"""

import hashlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from cosmo.documents import dump
from cosmo.files import digest_of, file_name, made_folder, read_record, whole_file, write_record
from cosmo.scenario import Scenario, changed
from cosmo.study import method_files
from cosmo.study.plan import Plan

INPUTS, INDEX, _FORMAT = "inputs", "index.json", 1
_MOST_BYTES = 64 * 2**20  # of one input; of a larger one only the digest is kept


def keep(folder: Path, plan: Plan) -> None:
    """Copy the files that a plan names, once; scenarios in full, with what they extend.

    The index is written last: copies without one are from a run that was killed.
    """
    if (folder / INPUTS / INDEX).exists():
        return
    scenarios = {
        source: dump(plan.scenario(source)) for source in plan.sources if source.endswith(".toml")
    }
    digests = {}
    for name in dict.fromkeys(_named(plan)):
        digests[name] = digest = _digest(Path(name))
        if sum(path.stat().st_size for path in method_files.files(Path(name))) <= _MOST_BYTES:
            for path in method_files.files(Path(name)):
                copy = _place(folder, name, digest) / path.relative_to(name)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, copy)
    for name, text in scenarios.items():
        digests[name] = digest = hashlib.sha256(text.encode()).hexdigest()
        copy = _place(folder, name, digest)
        made_folder(copy.parent)
        with whole_file(copy) as temporary:
            temporary.write_text(text, encoding="utf-8")
    if digests:
        made_folder(folder / INPUTS)
        write_record(folder / INPUTS / INDEX, {"format": _FORMAT, "digests": digests})


def found(folder: Path, name: str) -> str:
    """Where a file of a plan is: its own path if that is unchanged, else the copy, if there is one.

    Raises InputError if the index is damaged.
    """
    index = folder / INPUTS / INDEX
    if not index.is_file():
        return name
    digests = read_record(index, "there is no index", "cosmo study", _FORMAT)["digests"]
    if name not in digests:
        return name
    copy = _place(folder, name, digests[name])
    unchanged = Path(name).exists() and _digest(Path(name)) == digests[name]
    return name if unchanged or not copy.exists() else str(copy)


def found_method(folder: Path, spec: str) -> str:
    """The same method, with the files that are found."""
    return method_files.renamed(spec, lambda name: found(folder, name))


def found_trace(folder: Path, scenario: Scenario) -> Scenario:
    """The same scenario, with its trace and its events where they are found."""
    named = {f"workload.{each}": getattr(scenario.workload, each) for each in ("trace", "events")}
    places = {field: found(folder, name) if name else "" for field, name in named.items()}
    return scenario if places == named else changed(scenario, places)


def _named(plan: Plan) -> Iterator[str]:
    """Files and folders that methods, traces and trainings name, and that are there."""
    texts = [name for spec in plan.methods for name in method_files.named(spec)]
    loads = [scenario.workload for scenario, *_ in plan.points()]
    texts += [file for load in loads for file in (load.trace, load.events)]
    texts += [plan.training.config or "", *(each.config or "" for each in plan.train)]
    yield from (text for text in texts if text and any(method_files.files(Path(text))))


def _place(folder: Path, name: str, digest: str) -> Path:
    return folder / INPUTS / digest[:16] / file_name(Path(name).name)


def _digest(path: Path) -> str:
    """Of a file, or of all files that a folder is read from."""
    if path.is_file():
        return digest_of(path)
    parts = (f"{each.relative_to(path)} {digest_of(each)}" for each in method_files.files(path))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
