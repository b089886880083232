"""Tools of others, run with a limit: with them ends all that they have started."""

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress

_END_LIMIT_S = 5.0


def run_tool(command: Sequence[str], limit_s: float) -> subprocess.CompletedProcess[str]:
    """What it said and its exit code.

    A compiler is several processes. If it takes too long (TimeoutExpired) or we are interrupted,
    none of them stays behind: it has a session, hence a process group, of its own.
    """
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as tool:
        try:
            out, err = tool.communicate(timeout=limit_s)
        except BaseException:
            _end_group(tool)
            raise
    return subprocess.CompletedProcess(command, tool.returncode, out, err)


def _end_group(leader: subprocess.Popen[str]) -> None:
    """With a chance to clean up first."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(leader.pid, number)
        with suppress(subprocess.TimeoutExpired):
            leader.wait(_END_LIMIT_S)
            return
