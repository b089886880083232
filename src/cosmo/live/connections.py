"""A share of the connections for each address, so that nobody can hold all of them.

gRPC has one limit for all callers together and does not say who they are. So this process looks at
its own sockets, and hangs up on whoever has more than a share once few connections are left.
"""

import contextlib
import ipaddress
import os
import socket
import stat
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote

EVERY_S = 0.5
_FULL = 0.75  # of all connections: from then on nobody has more than a share
_SHARE = 0.25
_FOLDER = "/proc/self/fd"  # where there is none, gRPC's own limit is all there is

Place = tuple[str, int]  # address, port


class Connections:
    """Those of callers of one port."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._calls: Counter[str] = Counter()  # that are open, by gRPC's name of the caller

    @contextmanager
    def busy(self, context: Any) -> Iterator[None]:
        """While the block runs, the caller's connection is not idle."""
        peer = context.peer()
        self._calls[peer] += 1
        try:
            yield
        finally:
            self._calls[peer] -= 1
            if not self._calls[peer]:
                del self._calls[peer]

    def thin_out(self, port: int) -> list[str]:
        """Hang up on those who have more than a share, if few connections are left.

        Idle connections go first, and of these the newest. Returns the address of each that went.
        """
        try:
            numbers = [int(name) for name in os.listdir(_FOLDER)]
        except OSError:
            return []
        if len(numbers) < _FULL * self._most:
            return []
        busy = {_place(peer) for peer in self._calls}
        with contextlib.ExitStack() as opened:
            found: dict[str, list[tuple[bool, int, socket.socket]]] = {}
            for number in sorted(numbers, reverse=True):
                connection = _accepted(number, port)
                if connection is not None:
                    opened.enter_context(connection)
                    place = _place_of(connection)
                    found.setdefault(_who(place[0]), []).append(
                        (place in busy, -number, connection)
                    )
            return self._hang_up(found)

    def _hang_up(self, found: dict[str, list[tuple[bool, int, socket.socket]]]) -> list[str]:
        share, gone = max(int(_SHARE * self._most), 1), []
        if sum(map(len, found.values())) < _FULL * self._most:
            return []
        for who, connections in found.items():
            connections.sort(key=lambda each: each[:2])
            for _, _, connection in connections[: max(len(connections) - share, 0)]:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)  # gRPC sees its end, and closes it
                    gone.append(who)
        return gone


def _accepted(number: int, port: int) -> socket.socket | None:
    """A second handle of a connection that was accepted on this port; None if it is none."""
    try:
        if not stat.S_ISSOCK(os.fstat(number).st_mode):
            return None
        found = socket.socket(fileno=os.dup(number))
    except OSError:
        return None
    try:
        if found.family in (socket.AF_INET, socket.AF_INET6) and found.getsockname()[1] == port:
            found.getpeername()
            return found
    except OSError:  # the one that listens
        pass
    found.close()
    return None


def _place_of(connection: socket.socket) -> Place:
    try:
        address, port = connection.getpeername()[:2]
    except OSError:
        return "", 0
    return _plain(address), port


def _place(peer: str) -> Place:
    """Of a caller as gRPC names it: ipv4:10.0.0.1:5, ipv6:%5B::1%5D:5."""
    address, _, port = unquote(peer).partition(":")[2].rpartition(":")
    return _plain(address.strip("[]")), int(port) if port.isdigit() else 0


def _plain(address: str) -> str:
    return address.removeprefix("::ffff:") if "." in address else address


def _who(address: str) -> str:
    """Whom an address belongs to: of IPv6 everybody has at least 2^64."""
    if ":" not in address:
        return address
    return str(ipaddress.ip_network(f"{address.partition('%')[0]}/64", strict=False))
