"""A daemon's configuration as the `Site` of its method."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosmo.live.config import NodeConfig
from cosmo.node import NO_NODE, Links, Nodes, Prices, Scales, Site, Tasks
from cosmo.scenario.topology import NODE_FIELDS, Node
from cosmo.seeds import Draws

Ints = NDArray[np.int64]


def site_of_node(config: NodeConfig, peers: Sequence[Any] | None = None) -> Site:
    """What the node knows: the whole site if its file describes it; else ENs like itself, of
    which it is one, or itself alone of SNs, and its peers in their order.

    Of itself, its peers and the links to them it goes by its own fields. `peers` are those of the
    configuration unless others are given.
    """
    peers = config.peers if peers is None else peers
    en, sn, reach = _whole(config) if config.site.reach else _own(config, peers)
    expected, links = config.expected, config.links
    return Site(
        en=en,
        sn=sn,
        links=Links(
            reach=reach,
            up_mbps=_rates(config, peers, reach, "up_mbps"),
            down_mbps=_rates(config, peers, reach, "down_mbps"),
            hops=np.full(reach.shape, links.hops),
            hop_delay_ms=np.full(reach.shape, links.hop_delay_ms),
            packet_bytes=links.packet_bytes,
            result_bytes=links.result_bytes,
        ),
        reservation_floor_bytes=expected.reservation_floor_bytes,
        tasks=Tasks(
            input_bytes=expected.input_bytes,
            cycles=expected.cycles,
            deadline_ms=expected.deadline_ms,
            rate=expected.rate,
            squared_variation=expected.squared_variation,
        ),
        scales=Scales(**config.scales.model_dump()),
        prices=Prices(**config.prices.model_dump()),
        draws=(Draws.of(config.method.seed, 0),),
    )


def _own(config: NodeConfig, given: Sequence[Any]) -> tuple[Nodes, Nodes, Ints]:
    """(ENs, SNs, who reaches whom) without a description of the site."""
    peers = nodes_of([each.node for each in given])
    if config.role == "sn":
        return peers, nodes_of([config.node]), np.zeros((len(peers), 1), np.int64)
    reach = np.tile(np.arange(len(peers)), (1 + config.neighbours, 1))
    return nodes_of([config.node] * len(reach)), peers, reach


def _whole(config: NodeConfig) -> tuple[Nodes, Nodes, Ints]:
    """The same with one."""
    site = config.site
    reach = np.full((len(site.reach), max(map(len, site.reach))), NO_NODE, np.int64)
    for row, sns in zip(reach, site.reach, strict=True):
        row[: len(sns)] = sns
    en, sn = Nodes.of(site.en.model_dump()), Nodes.of(site.sn.model_dump())
    if config.role != "sn":
        _write(en, [config.number], [config.node])
        _write(sn, list(site.reach[config.number]), config.peers)
    else:
        _write(sn, [config.number], [config.node])
        _write(en, np.nonzero(reach == config.number)[0].tolist(), config.peers)
    return en, sn, reach


def _rates(config: NodeConfig, peers: Sequence[Any], reach: Ints, name: str) -> NDArray[np.float64]:
    """[EN, k]; links of others are like its own, as far as the node knows."""
    own = np.array([getattr(peer, name) for peer in peers])
    rates = np.full(reach.shape, own.mean())
    if config.role != "sn":
        rates[:, : len(own)] = own
    else:
        rates[reach == config.number] = own
    return rates


def nodes_of(nodes: Sequence[Node]) -> Nodes:
    """The columns of these nodes."""
    return Nodes.of({name: [getattr(node, name) for node in nodes] for name in NODE_FIELDS})


def _write(into: Nodes, places: list[int], nodes: Sequence[Node]) -> None:
    for field, values in vars(nodes_of(nodes)).items():
        getattr(into, field)[places] = values
