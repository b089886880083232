"""Where daemons stand: on loopback, or each in a network namespace with links of its own.

In namespaces there is a pair of virtual Ethernet devices between an EN and an SN, with a token
bucket at either end that lets through what R13's link would, with a burst of two packets. Delays,
which they do not have, are added by the daemons. Only namespaces that were made here are touched.
They are removed by a process that waits for this one to end, however it ends.
"""

import itertools
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from cosmo.errors import InputError
from cosmo.live.processes import Loopback
from cosmo.scenario import Scenario
from cosmo.scenario.model import Live
from cosmo.world import site_of

_PACKET, _PAYLOAD = 1514, 1448  # bytes on the wire, and what of it is the message's
_BURST = 2 * _PACKET
_LIMIT = 8_000_000  # bytes that may wait: nothing is ever dropped
_UES = "ues"
_REMOVAL_S = 20.0
# Waits for the end of its input, then ends what is in the namespaces, and removes them.
_KEEPER = """
trap "" INT TERM HUP
read -r nothing
for name in "$@"; do
  for signal in TERM KILL; do
    for tick in 1 2 3 4 5 6 7 8 9 10; do
      inside=$(ip netns pids "$name" 2>/dev/null)
      [ -z "$inside" ] && break
      kill -s $signal $inside 2>/dev/null
      sleep 0.1
    done
  done
  ip netns del "$name" 2>/dev/null
done
"""
_count = itertools.count()


class Network(Loopback):
    """Loopback of this machine; daemons end with this process, even if it is killed."""

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


class Namespaces(Network):
    """Nodes in namespaces of their own; UEs have one, too, with fast links to all ENs."""

    slow_links = True

    def __init__(self, fifo: int) -> None:
        super().__init__(fifo)
        self._names: dict[str, str] = {}
        self._addresses: dict[tuple[str, str], str] = {}  # (who calls, whom): of the latter

    def command(self, name: str) -> tuple[str, ...]:
        """Return the command that starts the node within its network namespace."""
        return ("ip", "netns", "exec", self._names[name], *super().command(name))

    def listen(self, name: str) -> str:
        """On all addresses of the namespace, which nobody else has."""
        return "0.0.0.0:0"

    def address(self, caller: str, name: str, port: int) -> str:
        """Of a node, as another one reaches it."""
        return f"{self._addresses[caller, name]}:{port}"

    def make(self, names: dict[str, str]) -> None:
        """All namespaces, still without links."""
        self._names = names
        for name in names.values():
            _run("ip", "netns", "add", name)
            _run("ip", "-n", name, "link", "set", "lo", "up")

    def join(self, one: str, other: str, mbps: tuple[float, float] | None) -> None:
        """A link, with the rate of messages there and back; as fast as can be without."""
        number = len(self._addresses) // 2
        net = f"10.{77 + number // 256}.{number % 256}"
        ends = (one, other, f"{net}.1"), (other, one, f"{net}.2")
        here, there = self._names[one], self._names[other]
        _run(*f"ip -n {here} link add {other} type veth peer name {one} netns {there}".split())
        for place, (name, peer, address) in enumerate(ends):
            inside = self._names[name]
            _run("ip", "-n", inside, "addr", "add", f"{address}/30", "dev", peer)
            _run("ip", "-n", inside, "link", "set", peer, "up")
            self._addresses[peer, name] = address
            if mbps is not None:
                bits = round(mbps[place] * 1e6 * _PACKET / _PAYLOAD)
                bucket = f"root tbf rate {bits}bit burst {_BURST} limit {_LIMIT}"
                _run(*f"tc -n {inside} qdisc add dev {peer}".split(), *bucket.split())


@contextmanager
def namespaces(scenario: Scenario, scale: float, fifo: int = 0) -> Iterator[Namespaces]:
    """The network of a scenario's ENs and SNs, `scale` times slower, for as long as the block."""
    network, links = Namespaces(fifo), site_of(scenario).links
    mine = f"cosmo-{os.getpid()}-{next(_count)}"
    names = [
        _UES,
        *(f"en{en}" for en in range(scenario.en.count)),
        *(f"sn{sn}" for sn in range(scenario.sn.count)),
    ]
    own = {name: f"{mine}-{name}" for name in names}
    keeper = subprocess.Popen(
        ["sh", "-c", _KEEPER, "keeper", *own.values()],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # an interrupt of the terminal is for its owner
    )
    try:
        network.make(own)
        for en in range(scenario.en.count):
            network.join(_UES, f"en{en}", None)
            for column in np.flatnonzero(links.exist[en]).tolist():
                rates = links.up_mbps[en, column] / scale, links.down_mbps[en, column] / scale
                network.join(f"en{en}", f"sn{links.reach[en, column]}", rates)
        yield network
    finally:
        assert keeper.stdin is not None
        keeper.stdin.close()
        keeper.wait(_REMOVAL_S + 2.0 * len(own))


@contextmanager
def network_of(scenario: Scenario) -> Iterator[Network]:
    """What a scenario's table `live` asks for."""
    chosen = scenario.live
    if chosen.transport == "loopback":
        yield Network(chosen.fifo)
        return
    with namespaces(scenario, chosen.slower, chosen.fifo) as network:
        yield network


def check_permitted(chosen: Live) -> None:
    """Refuse a priority or namespaces that this machine does not allow, in one line."""
    if chosen.fifo:
        check_fifo(chosen.fifo)
    if chosen.transport == "netns":
        name = f"cosmo-{os.getpid()}-{next(_count)}"
        _run("ip", "netns", "add", name)
        _run("ip", "netns", "del", name)


def check_fifo(fifo: int) -> None:
    """Refuse a priority that this process may not ask for, in one line."""
    try:
        done = subprocess.run(["chrt", "-f", str(fifo), "true"], capture_output=True)
    except FileNotFoundError:
        raise InputError(f"live.fifo = {fifo}: there is no chrt here; set it to 0") from None
    if done.returncode != 0:
        raise InputError(
            f"live.fifo = {fifo}: real-time priority is not permitted (it takes root or"
            " CAP_SYS_NICE); set it to 0"
        )


def _run(*command: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        raise InputError(
            f"live.transport = 'netns': there is no {command[0]} here (iproute2); use loopback"
        ) from None
    if done.returncode != 0:
        why = (done.stderr.strip().splitlines() or ["no reason given"])[0]
        raise InputError(
            "live.transport = 'netns': network namespaces are not permitted here, which takes root;"
            f" use loopback ({' '.join(command[:3])}: {why})"
        )
