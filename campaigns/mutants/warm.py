"""Pytest in processes that need not import the libraries again, which takes longer than most tests.

A server imports them once and forks for every call. It imports nothing of the package, which is
another one for each mutant.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_HERE = Path(__file__).resolve().parent
_POLL_S = 0.02


class Warm:
    """The server, for sources in `copy`.

    Caches of machine code are there, too. JAX names entries by what is compiled, so that one cache
    is right for all mutants; Numba by sources (see `world.compiled`).
    """

    def __init__(self, copy: Path) -> None:
        self._printed = copy / "printed.txt"
        self._has_kernel = False
        self._there: dict[str, Any] = {
            "cwd": copy,
            "env": os.environ | {
                "PYTHONPATH": f"{copy / 'src'}{os.pathsep}{_HERE}",
                "NUMBA_CACHE_DIR": str(copy / "numba"),
                "JAX_COMPILATION_CACHE_DIR": str(copy / "jax"),
                "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            },
        }  # fmt: skip
        self._server = subprocess.Popen(
            [sys.executable, "-B", str(_HERE / "warm.py")], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, **self._there,
        )  # fmt: skip

    def compile_kernel(self) -> None:
        """Once, if it is not on disk: no test has the time for it that it may compute."""
        if not self._has_kernel:
            plays = "import cosmo; cosmo.simulate('paper', 'random')"
            subprocess.run([sys.executable, "-c", plays], check=True, **self._there)
        self._has_kernel = True

    def pytest(
        self, options: Sequence[str], variables: Mapping[str, str], limit_s: float
    ) -> tuple[int | None, str]:
        """The exit code (None: it took longer than the limit) and what was printed."""
        # Libraries that bring a plugin are there before pytest looks for it.
        quiet = "-Wignore::pytest.PytestAssertRewriteWarning"
        arguments = ["-q", "-n", "0", "-p", "no:cacheprovider", quiet, *options]
        call = {
            "arguments": arguments,
            "variables": dict(variables),
            "limit_s": limit_s,
            "printed": str(self._printed),
        }
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        print(json.dumps(call), file=self._server.stdin, flush=True)
        code = json.loads(self._server.stdout.readline())
        return code, self._printed.read_text(errors="replace")

    def end(self) -> None:
        """No more calls."""
        self._server.communicate()


def _serve() -> None:
    import hypothesis  # noqa: F401
    import jax.numpy  # noqa: F401
    import numba  # noqa: F401
    import optax  # noqa: F401
    import polars  # noqa: F401
    import pydantic  # noqa: F401
    import pytest
    import scipy.optimize
    import scipy.special  # noqa: F401

    for line in sys.stdin:
        call = json.loads(line)
        child = os.fork()
        if child == 0:
            os.setsid()
            into = os.open(call["printed"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            nothing = os.open(os.devnull, os.O_RDONLY)
            for one, other in ((nothing, 0), (into, 1), (into, 2)):
                os.dup2(one, other)
            os.environ.update(call["variables"])
            code = int(pytest.main(call["arguments"]))
            sys.stdout.flush()
            os._exit(code)
        print(json.dumps(_ended(child, call["limit_s"])), flush=True)


def _ended(child: int, limit_s: float) -> int | None:
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(_POLL_S)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


if __name__ == "__main__":
    _serve()
