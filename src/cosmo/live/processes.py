"""Daemons as processes of this one: started, heard of, ended whatever happens."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cosmo.errors import EngineError
from cosmo.files import temporary_folder
from cosmo.live.config import NodeConfig, changed_config, config_text

_START_S = 60.0  # long after the slowest machine, and still an end
_STEP_S = 0.02


class Running:
    """A daemon, and what it has said."""

    def __init__(
        self, config: NodeConfig, folder: Path, prefix: tuple[str, ...] = (), label: str = ""
    ) -> None:
        """`prefix` goes before the command, as in `chrt -f 10`; files are called by the label, or
        by the node's name.
        """
        self.config, self._asked = config, False
        path = folder / f"{label or config.name}.toml"
        path.write_text(config_text(config), encoding="utf-8")
        self.file = path
        self._log = folder / f"{label or config.name}.log"
        command = [sys.executable, "-m", "cosmo", "serve", config.role, "--config", str(path)]
        with self._log.open("ab") as out:
            self.process = subprocess.Popen(
                [*prefix, *command],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,  # an interrupt of the terminal is for its owner
                env=dict(os.environ),
            )

    def said(self, event: str) -> list[dict[str, Any]]:
        """All lines of its log about an event, in order."""
        found = []
        for line in self._log.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                told = json.loads(line)
            except ValueError:
                continue
            if told.get("event") == event:
                found.append(told)
        return found

    def wait_for(self, event: str, count: int = 1) -> dict[str, Any]:
        """The line in which it says so for the `count`-th time; EngineError if it never does."""
        limit = time.monotonic() + _START_S
        while len(found := self.said(event)) < count:
            if self.process.poll() is not None or time.monotonic() > limit:
                last = self._log.read_text(errors="replace").strip().splitlines()[-1:]
                raise EngineError(f"{self.config.name}: never said {event!r} ({' '.join(last)})")
            time.sleep(_STEP_S)
        return found[count - 1]

    @property
    def port(self) -> int:
        """The port on which the process listens; waits until it does."""
        return int(self.wait_for("serving")["port"])

    @property
    def address(self) -> str:
        """The same, with its host."""
        return f"{self.config.listen.rpartition(':')[0]}:{self.port}"

    def stop(self) -> None:
        """Ask it to stop, once: a second signal could end it before it has said how it went."""
        if not self._asked and self.process.poll() is None:
            self.process.terminate()
        self._asked = True

    def end(self, patience_s: float = 10.0) -> int:
        """Have it stop; killed if it takes too long. Its exit code."""
        self.stop()
        if self.process.poll() is None:
            try:
                self.process.wait(patience_s)
            except subprocess.TimeoutExpired:
                self.process.kill()
        return self.process.wait()


class Loopback:
    """Where daemons stand: all on loopback of this machine, on ports that are free."""

    def command(self, name: str) -> tuple[str, ...]:
        """What goes before the command of a daemon, as in `chrt -f 10`."""
        return ()

    def listen(self, name: str) -> str:
        """The address that a daemon listens on; port 0 is any."""
        return "127.0.0.1:0"

    def address(self, caller: str, name: str, port: int) -> str:
        """Where a caller finds a daemon that listens on a port."""
        return f"127.0.0.1:{port}"


@contextmanager
def nodes(
    ens: list[NodeConfig], sns: list[NodeConfig], network: Loopback | None = None
) -> Iterator[tuple[list[Running], list[Running]]]:
    """Daemons that listen where there is room; all have met when this begins, and end with it."""
    started: list[Running] = []
    network = network or Loopback()

    def start(config: NodeConfig, fields: dict[str, object]) -> None:
        told = changed_config(config, {"listen": network.listen(config.name), **fields})
        started.append(Running(told, folder, network.command(config.name)))

    with temporary_folder() as folder:
        try:
            for config in sns:
                start(config, {})
            ports = {each.config.name: each.port for each in started}
            for config in ens:
                peers = [
                    {
                        **peer.model_dump(),
                        "address": network.address(config.name, peer.name, ports[peer.name]),
                    }
                    for peer in config.peers
                ]
                start(config, {"peers": peers})
            for each in started[len(sns) :]:
                each.wait_for("sn connected", len(each.config.peers))
            yield started[len(sns) :], started[: len(sns)]
        finally:
            for each in reversed(started):
                each.stop()
            for each in started:
                each.end()
