"""Licences of all that requirements.lock names, from what is installed; needs no network.

    python campaigns/licences.py

Permissive licences may be there, and the MPL, which asks for changes of its own files only. Any
other, or none, is named, and the exit code is 1. What is locked for other platforms and is not
installed here is counted and not judged.
"""

import re
import sys
from importlib import metadata
from pathlib import Path

LOCK = Path(__file__).resolve().parent.parent / "requirements.lock"
ALLOWED = re.compile(
    r"\b(MIT|BSD|0BSD|Apache|ISC|PSF|Python Software Foundation|Zlib|CC0|MPL|Mozilla Public)\b",
    re.I,
)
FORBIDDEN = re.compile(r"\b(A?GPL|GNU (Affero )?General|SSPL|Commons Clause|Proprietary)", re.I)


def locked(text: str) -> list[str]:
    """The names in a lock, each once."""
    return sorted(set(re.findall(r"^([A-Za-z0-9._-]+)==", text, re.M)))


def licence(told: metadata.PackageMetadata) -> str:
    """What a package says of itself: an expression, else classifiers, else the text's beginning."""
    words = [str(told["License-Expression"] or "")] if "License-Expression" in told else []
    classifiers = told.get_all("Classifier") or []
    words += [each.rpartition(" :: ")[2] for each in classifiers if each.startswith("License")]
    text = str(told["License"] or "") if "License" in told else ""
    return "; ".join(filter(None, words)) or " ".join(text.split())[:200]


def judged(found: str) -> bool:
    """Whether it may be there."""
    return bool(ALLOWED.search(found)) and not FORBIDDEN.search(found)


def main() -> None:
    """Go through the lock."""
    absent, wrong, names = [], [], locked(LOCK.read_text())
    for name in names:
        try:
            found = licence(metadata.metadata(name))
        except metadata.PackageNotFoundError:
            absent.append(name)
            continue
        if not judged(found):
            wrong.append(f"{name}: {found or 'says nothing'}")
    checked = len(names) - len(absent)
    print(f"{checked} packages have licences that may be there, but for {len(wrong)}")
    print("\n".join([f"not installed here: {', '.join(absent)}", *wrong] if absent else wrong))
    sys.exit(1 if wrong or not checked else 0)


if __name__ == "__main__":
    main()
