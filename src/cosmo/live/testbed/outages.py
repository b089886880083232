"""SNs of a test bed that fail and come back (R38): their processes are killed and replaced.

A replacement knows nothing of the process before it. It was started before the load, so that
no start takes processor time from the measurement, and listens from the moment of the return on.
"""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from cosmo.errors import EngineError, InputError
from cosmo.files import temporary_folder
from cosmo.live.config import changed_config
from cosmo.live.processes import Running
from cosmo.live.testbed.networks import Network
from cosmo.scenario import Scenario
from cosmo.workload import Episode
from cosmo.workload.table import FAILS, RETURNS

_MOST = 100  # outages of an episode: each has a process of its own
_LAST_WORDS_S = 0.25  # for a daemon to write down its facts before it is killed
_PATIENCE_S = 60.0


@dataclass
class _Sn:
    """One SN: its processes in order, the first of which is running, and when each ends."""

    starts: list[Running]
    down_ms: list[float] = field(default_factory=list)
    up_ms: list[float] = field(default_factory=list)


class Outages:
    """All of an episode."""

    def __init__(self, sns: list[_Sn]) -> None:
        self._sns = [each for each in sns if each.down_ms]
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []
        self._error: EngineError | None = None

    @property
    def starts(self) -> list[Running]:
        """All replacement processes, in no order."""
        return [start for sn in self._sns for start in sn.starts[1:]]

    def begin(self, start_s: float, scale: float) -> None:
        """Play them; the episode's time is 0 at this moment of the monotonic clock."""
        for sn in self._sns:
            thread = threading.Thread(target=self._play, args=(sn, start_s, scale), daemon=True)
            self._threads.append(thread)
            thread.start()

    def end(self) -> None:
        """The load is over: no more of them. EngineError if an SN did not come back."""
        self._over.set()
        for thread in self._threads:
            thread.join(_PATIENCE_S)
        if self._error is not None:
            raise self._error

    def _play(self, sn: _Sn, start_s: float, scale: float) -> None:
        for number, (down_ms, up_ms) in enumerate(zip(sn.down_ms, sn.up_ms, strict=True)):
            old, new = sn.starts[number : number + 2]
            down_s = start_s + down_ms * scale / 1000.0
            if not self._wait_until(down_s - _LAST_WORDS_S):
                return
            old.process.send_signal(signal.SIGUSR1)
            if not self._wait_until(down_s):
                return
            old.process.kill()
            old.process.wait()  # its port is free then
            up_s = start_s + up_ms * scale / 1000.0
            if not self._wait_until(up_s):
                return
            new.process.send_signal(signal.SIGUSR1)
            try:
                new.wait_for("serving")
            except EngineError as error:
                self._error = error
                return

    def _wait_until(self, moment_s: float) -> bool:
        """False if the load is over before that."""
        left_s = min(max(moment_s - time.monotonic(), 0.0), threading.TIMEOUT_MAX)
        return not self._over.wait(left_s)


@contextmanager
def prepared(
    scenario: Scenario, episode: Episode, sns: list[Running], network: Network
) -> Iterator[Outages]:
    """The outages of an episode, with all replacements of `sns` standing by."""
    made = [_Sn([each]) for each in sns]
    events = episode.events
    for time_ms, node, what in zip(events.time_ms, events.node, events.what, strict=True):
        if what in (FAILS, RETURNS):
            sn = made[int(node) - scenario.en.count]
            (sn.down_ms if what == FAILS else sn.up_ms).append(float(time_ms))
    many = sum(len(sn.down_ms) for sn in made)
    if many > _MOST:
        raise InputError(
            f"sn.outage: {many} outages in an episode, must be at most {_MOST} with the engine live"
        )
    with temporary_folder() as folder:
        try:
            for sn in made:
                _stand_by(sn, network, folder)
            outages = Outages(made)
            for start in outages.starts:
                start.wait_for("standing by")
            yield outages
        finally:
            for sn in made:
                for start in sn.starts[1:]:
                    start.process.kill()
                    start.process.wait()


def _stand_by(sn: _Sn, network: Network, folder: Path) -> None:
    """Start a process for each return of an SN; of one that never returns there is none."""
    sn.up_ms += [float("inf")] * (len(sn.down_ms) - len(sn.up_ms))
    first = sn.starts[0]
    host = first.config.listen.rpartition(":")[0]
    config = changed_config(first.config, {"listen": f"{host}:{first.port}", "standby": True})
    prefix = network.command(config.name)
    for number in range(len(sn.down_ms)):
        sn.starts.append(Running(config, folder, prefix, f"{config.name}-{number + 1}"))
