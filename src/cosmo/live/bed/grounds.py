"""Where daemons stand: on loopback, with or without real-time priority, and who dies with whom."""

import shutil
import subprocess

from cosmo.errors import InputError
from cosmo.live.processes import Loopback


class Ground(Loopback):
    """Loopback of this machine; daemons end with this process, even if it is killed."""

    name = "loopback"
    slow_links = False  # whether links are as slow as they should be, without anybody's help

    def __init__(self, fifo: int = 0) -> None:
        """`fifo` is the daemons' priority; the load generator gets half of it."""
        self._fifo = fifo
        # Where there is no setpriv, daemons of a killed process stay until somebody ends them.
        self._bound = ("setpriv", "--pdeathsig", "TERM") if shutil.which("setpriv") else ()

    def command(self, name: str) -> tuple[str, ...]:
        """What goes before the command of a daemon, or of the UEs (`ues`)."""
        fifo = max(self._fifo // 2, 1) if name == "ues" else self._fifo
        return (*self._bound, *(("chrt", "-f", str(fifo)) if self._fifo else ()))


def check_fifo(fifo: int) -> None:
    """Refuse a priority that this process may not ask for, in one line."""
    try:
        done = subprocess.run(["chrt", "-f", str(fifo), "true"], capture_output=True)
    except FileNotFoundError:
        raise InputError(f"fifo = {fifo}: there is no chrt here; set fifo=0") from None
    if done.returncode != 0:
        raise InputError(
            f"fifo = {fifo}: real-time priority is not permitted (root or CAP_SYS_NICE); set fifo=0"
        )
