"""Checks what would be published: `make dist-check`.

Builds the source distribution and the wheel into dist/, checks their descriptions and contents, and
uses the wheel from an empty environment of every Python that must work and is there. A Python that
is not there is named as skipped, and so is a README link that an index cannot follow.

    .venv-tools/bin/python .ci/dist_check.py
"""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import NoReturn

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
PYTHONS = ("3.11", "3.13")
EXTRA = "[lab]"
# Files without which an installation is broken in ways that imports do not show.
NEEDED = (
    "cosmo/py.typed",
    "cosmo/live/cosmo_live.binpb",
    "cosmo/live/protos.binpb",
    "cosmo/scenario/presets/paper.toml",
    "cosmo/study/presets/paper.toml",
)


def fail(message: str) -> NoReturn:
    """End with one line."""
    sys.exit(f"dist-check: {message}")


def run(*command: str | Path, env: dict[str, str] | None = None) -> CompletedProcess[str]:
    """A command that must succeed, or its output and the end."""
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        told = " ".join(map(str, command))
        fail(f"{told}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def version() -> str:
    """The version in the source; the changelog and the citation must know it."""
    text = (ROOT / "src" / "cosmo" / "__init__.py").read_text("utf-8")
    [found] = re.findall(r'^__version__ = "(.+)"$', text, re.MULTILINE)
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    if f"\nversion: {found}\n" not in citation:
        fail(f"CITATION.cff: version must be {found}")
    tag = os.environ.get("RELEASE_TAG", "")
    if tag and tag != f"v{found}":
        fail(f"tag {tag}: must be v{found}")
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    dates = [each.removeprefix(f"{found} – ") for each in headings if each.startswith(f"{found} ")]
    if dates and f"\ndate-released: {dates[0]}\n" not in citation:
        fail(f"CITATION.cff: date-released must be {dates[0]}, as in CHANGELOG.md")
    released = bool(dates)
    if tag and not released:
        fail(f"CHANGELOG.md: no section '## {found} – DATE' for the tag {tag}")
    print(f"version {found}, {'released' if released else 'unreleased'} by the changelog")
    return str(found)


def build() -> tuple[Path, Path]:
    """The source distribution and the wheel that is made of it."""
    shutil.rmtree(DIST, ignore_errors=True)
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", DIST, ROOT)
    [sdist], [wheel] = DIST.glob("*.tar.gz"), DIST.glob("*.whl")
    run(sys.executable, "-m", "twine", "check", "--strict", sdist, wheel)
    print(f"twine: {sdist.name} and {wheel.name} pass")
    return sdist, wheel


def check_contents(sdist: Path, wheel: Path) -> None:
    """Both hold the package as git has it, and nothing else but what describes it."""
    tracked = run("git", "ls-files", "--cached", "--others", "--exclude-standard", "src").stdout
    package = {name.removeprefix("src/") for name in tracked.splitlines()}
    if missing := [name for name in NEEDED if name not in package]:
        fail(f"src: no {', '.join(missing)}")
    with tarfile.open(sdist) as opened:
        held = {name.partition("/")[2] for name in opened.getnames()}
    beside = {"CHANGELOG.md", "CITATION.cff", "LICENSE", "README.md", "pyproject.toml", "PKG-INFO"}
    _same(sdist.name, held - {".gitignore"}, {f"src/{name}" for name in package} | beside)
    with zipfile.ZipFile(wheel) as zipped:
        held = {name for name in zipped.namelist() if ".dist-info/" not in name}
    _same(wheel.name, held, package)
    for path in (sdist, wheel):
        print(f"{path.name}: {path.stat().st_size / 1024:.0f} kB, {len(package)} files of cosmo")


def _same(name: str, held: set[str], expected: set[str]) -> None:
    if missing := sorted(expected - held):
        fail(f"{name}: lacks {', '.join(missing)}")
    if surplus := sorted(held - expected):
        fail(f"{name}: must not have {', '.join(surplus)}")


def interpreters(wanted: str) -> Iterator[Path]:
    """Interpreters that may be Python `wanted`: on the path, or installed by pyenv."""
    for folder in os.get_exec_path():
        yield Path(folder) / f"python{wanted}"
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from sorted(root.glob(f"versions/{wanted}.*/bin/python{wanted}"))


def found(wanted: str) -> Path | None:
    """An interpreter of that version which runs; None if there is none."""
    ask = "import sys, venv; print('%d.%d' % sys.version_info[:2])"
    for path in interpreters(wanted):
        if path.exists():  # shims of pyenv exist and need not run
            said = subprocess.run([path, "-c", ask], capture_output=True, text=True, check=False)
            if said.returncode == 0 and said.stdout.strip() == wanted:
                return path
    return None


def use(wheel: Path, python: Path, expected: str) -> None:
    """The wheel alone, in an empty environment: NumPy is all that comes along."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        run(python, "-m", "venv", folder, env=clean)
        inside, command = folder / "bin" / "python", folder / "bin" / "cosmo"
        run(
            inside,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            wheel,
            env=clean,
        )
        listed = run(inside, "-m", "pip", "list", "--format", "freeze", env=clean).stdout
        names = {line.partition("==")[0] for line in listed.splitlines()}
        if surplus := names - {"cosmo-edge", "numpy", "pip", "setuptools"}:
            fail(f"{python}: the wheel also brings {', '.join(sorted(surplus))}")
        said = run(command, "--version", env=clean).stdout.strip()
        if said != f"cosmo {expected}":
            fail(f"{python}: cosmo --version says {said!r}, must be 'cosmo {expected}'")
        run(inside, "-c", "from cosmo import Dispatcher, Method, load_controller", env=clean)
        refused = subprocess.run(
            [command, "methods"], cwd=folder, env=clean, capture_output=True, text=True, check=False
        )
        lines = refused.stderr.splitlines()
        if refused.returncode != 2 or len(lines) != 1 or EXTRA not in lines[0]:
            fail(
                f"{python}: cosmo methods must be refused in one line that names {EXTRA}: {refused}"
            )
        print(f"Python {python.name.removeprefix('python')}: {said}; {lines[0]}")


def main() -> None:
    """Check everything; one line for each thing that holds."""
    expected = version()
    sdist, wheel = build()
    check_contents(sdist, wheel)
    for wanted in PYTHONS:
        python = found(wanted)
        if python is None:
            print(f"Python {wanted}: SKIPPED, there is none on this machine")
        else:
            use(wheel, python, expected)
    relative = re.findall(r"\]\((?!https?:)([^)]+)\)", (ROOT / "README.md").read_text("utf-8"))
    if relative:
        print(f"README.md: {len(relative)} links are relative and lead nowhere on an index")


if __name__ == "__main__":
    main()
