"""A share of the connections for each address, so that nobody can hold all of them.

gRPC has one limit for all callers together and does not say who they are. So this process looks at
its own sockets, and hangs up on whoever has more than a share once few connections are left.
"""

import contextlib
import ipaddress
import os
import resource
import socket
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import unquote

EVERY_S = 0.5
_FULL = 0.75  # of all connections: from then on nobody has more than a share
_SHARE = 0.25
_FOLDER = "/proc/self/fd"  # where there is none, gRPC's own limit is all there is

Place = tuple[str, int]  # address, port


class _Connection(NamedTuple):
    """In the order in which they go."""

    busy: bool
    descriptor: int  # negative: the highest, which tend to be the newest, go first
    place: Place


class Connections:
    """Those of callers of one port."""

    def __init__(self, most: int) -> None:
        """`most` is gRPC's limit; what the system lets a process open may be less than that."""
        may_open = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        limited = may_open != resource.RLIM_INFINITY
        self._most = min(most, max(may_open // 2, 1)) if limited else most
        self._calls: Counter[str] = Counter()  # that are open, by gRPC's name of the caller
        self.busy_too: Callable[[], Iterable[str]] = tuple  # further callers that are not idle

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

        Idle connections go first. If those who keep to their share are so many that few connections
        are left all the same, idle connections of whoever has most of them go, too; everybody keeps
        one. Returns the owner of each connection that went.
        """
        try:
            numbers = [int(name) for name in os.listdir(_FOLDER)]
        except OSError:
            return []
        if len(numbers) < _FULL * self._most:
            return []
        busy = {_place(peer) for peer in (*self._calls, *self.busy_too())}
        found: dict[str, list[_Connection]] = {}
        for number in numbers:
            with _accepted(number, port) as connection:
                if connection is not None:
                    place = _place_of(connection)
                    held = found.setdefault(_owner(place[0]), [])
                    held.append(_Connection(place in busy, -number, place))
        return [
            owner
            for owner, each in _beyond_share(found, self._most)
            if _hung_up(-each.descriptor, port, each.place)
        ]


def _beyond_share(
    found: dict[str, list[_Connection]], most: int
) -> Iterator[tuple[str, _Connection]]:
    """Owners, and connections of theirs that are to go so that some of `most` are left."""
    if sum(map(len, found.values())) < _FULL * most:
        return
    share = max(int(_SHARE * most), 1)
    for owner, held in found.items():
        held.sort()
        for each in held[: max(len(held) - share, 0)]:
            yield owner, each
        del held[: max(len(held) - share, 0)]
    while share > 1 and sum(map(len, found.values())) >= _FULL * most:
        share -= 1
        for owner, held in found.items():
            if len(held) > share and not held[0].busy:
                yield owner, held.pop(0)


@contextmanager
def _accepted(number: int, port: int) -> Iterator[socket.socket | None]:
    """A second handle of a connection that was accepted on this port; None if it is none.

    gRPC's threads open and close descriptors meanwhile: what is looked at is what was duplicated.
    It is held as shortly as can be, as the system tells gRPC of what happens to a connection until
    its last handle is closed.
    """
    try:
        copy = os.dup(number)
    except OSError:
        yield None
        return
    try:
        found = socket.socket(fileno=copy)
    except OSError:  # no socket
        os.close(copy)
        yield None
        return
    with found:
        yield found if _is_accepted(found, port) else None


def _is_accepted(found: socket.socket, port: int) -> bool:
    if found.family not in (socket.AF_INET, socket.AF_INET6) or found.type != socket.SOCK_STREAM:
        return False
    try:
        found.getpeername()
        return bool(found.getsockname()[1] == port)
    except OSError:  # the one that listens
        return False


def _hung_up(number: int, port: int, place: Place) -> bool:
    """End a connection if it is still the one of this place; whether it was."""
    with _accepted(number, port) as connection, contextlib.suppress(OSError):
        if connection is not None and _place_of(connection) == place:
            connection.shutdown(socket.SHUT_RDWR)  # gRPC sees its end, and closes it
            return True
    return False


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
    """Without the zone of IPv6, which is not reported everywhere; IPv4 as such."""
    address = address.partition("%")[0]
    return address.removeprefix("::ffff:") if "." in address else address


def _owner(address: str) -> str:
    """Whom an address belongs to: of IPv6 everybody has at least 2^64."""
    if ":" not in address:
        return address
    return str(ipaddress.ip_network(f"{address}/64", strict=False))


def owner_of(peer: str) -> str:
    """Who a caller is, as far as limits go, by gRPC's name of it: an address, a network of IPv6."""
    return _owner(_place(peer)[0]) or peer
