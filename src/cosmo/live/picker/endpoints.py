"""Endpoints as the SNs of a site whose columns stay where they are while endpoints come and go."""

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from cosmo.scenario.topology import NODE_FIELDS, Node

MOST_ENDPOINTS = 4096  # that a list may have
_FEW = 4  # vacant places that are no matter


@dataclass(frozen=True)
class Endpoint:
    """A service behind the proxy, as a node with a link to it."""

    address: str  # as the proxy knows it: IP:PORT
    node: Node
    up_mbps: float
    down_mbps: float
    scrape_port: int | None = None  # of the page with its metrics, if the picker reads that
    push_port: int | None = None  # of the agent beside it, if there is one

    @property
    def shape(self) -> tuple[float, ...]:
        """What a method knows of it."""
        own = (getattr(self.node, name) for name in NODE_FIELDS)
        return (*own, self.up_mbps, self.down_mbps)

    @property
    def host(self) -> str:
        """Its IP address; of IPv6 in brackets."""
        return self.address.rpartition(":")[0]


class Place(NamedTuple):
    """A column of the site: who has it, or had it last."""

    endpoint: Endpoint
    present: bool


def arranged(
    places: Sequence[Place], busy: Iterable[int], endpoints: Sequence[Endpoint]
) -> tuple[list[Place], bool]:
    """The places of these endpoints, and whether every column still means what it meant.

    Whoever stays keeps its column. Whoever comes takes the column of one that has left, if the two
    are alike and nothing is in flight there (`busy` has the other columns), else a new one at the
    end. Columns move only when more than half of them are vacant.
    """
    wanted = {each.address: each for each in endpoints}
    found: list[Place] = []
    for place in places:
        here = wanted.get(place.endpoint.address)
        stays = here is not None and here.shape == place.endpoint.shape
        if stays:
            del wanted[place.endpoint.address]
        found.append(Place(here if here is not None and stays else place.endpoint, stays))
    taken = set(busy)
    free = defaultdict[tuple[float, ...], deque[int]](deque)  # columns, by who can have them
    for k, each in enumerate(found):
        if not each.present and k not in taken:
            free[each.endpoint.shape].append(k)
    for endpoint in wanted.values():
        alike = free.get(endpoint.shape)
        if alike:
            found[alike.popleft()] = Place(endpoint, True)
        else:
            found.append(Place(endpoint, True))
    present = [each for each in found if each.present]
    if present and len(found) - len(present) > max(_FEW, len(present)):
        return present, False
    return found, True
