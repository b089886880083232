"""A daemon's configuration as a `Site`, and a scenario as the configurations of its daemons."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from cosmo.errors import InputError
from cosmo.live.config import Node, NodeConfig, Peer
from cosmo.node import NOBODY, Links, Nodes, Prices, Scales, Site, Tasks

if TYPE_CHECKING:
    from cosmo.scenario import Scenario


def site_of_node(config: NodeConfig) -> Site:
    """What the node is told: ENs like itself, of which it is one, or itself alone of SNs; and its
    peers in their order.
    """
    own = [config.node] * (1 + (config.neighbours if config.role == "en" else 0))
    peers = config.peers
    up = np.array([peer.up_mbps for peer in peers])
    down = np.array([peer.down_mbps for peer in peers])
    is_en = config.role == "en"
    shape = (len(own), len(peers)) if is_en else (len(peers), 1)
    expected = config.expected
    return Site(
        en=_nodes(own if is_en else peers),
        sn=_nodes(peers if is_en else own),
        links=Links(
            reach=np.broadcast_to(np.arange(shape[1]), shape).copy(),
            up_mbps=np.broadcast_to(up, shape).copy() if is_en else up[:, None],
            down_mbps=np.broadcast_to(down, shape).copy() if is_en else down[:, None],
            hops=np.full(shape, config.links.hops),
            hop_delay_ms=np.full(shape, config.links.hop_delay_ms),
            packet_bytes=config.links.packet_bytes,
            result_bytes=config.links.result_bytes,
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
        streams=((config.method.seed, 0),),
    )


def _nodes(nodes: Sequence[Node]) -> Nodes:
    return Nodes(
        slots=np.array([node.slots for node in nodes], np.int64),
        cycles_per_ms=np.array([node.cycles_per_ms for node in nodes]),
        storage_bytes=np.array([node.storage_bytes for node in nodes]),
        queue_capacity=np.array([node.queue_capacity for node in nodes], np.int64),
    )


def configs_of(
    scenario: "Scenario", en: NodeConfig, sn: NodeConfig
) -> tuple[list[NodeConfig], list[NodeConfig]]:
    """The daemons of a scenario's ENs and SNs; what a scenario does not say is as in `en`, `sn`.

    Addresses of SNs are theirs in `sn`, one port after another.
    """
    from cosmo.world import site_of

    site, seen = site_of(scenario), scenario.observation
    told = {
        "expected": {
            "input_bytes": site.tasks.input_bytes,
            "cycles": site.tasks.cycles,
            "deadline_ms": site.tasks.deadline_ms,
            "rate": site.tasks.rate,
            "squared_variation": site.tasks.squared_variation,
            "residual_ms": seen.residual_scale_ms,
            "reservation_floor_bytes": site.reservation_floor_bytes,
        },
        "scales": {
            "wait_ms": site.scales.wait_ms,
            "work_ms": site.scales.work_ms,
            "throughput_mbps": site.scales.throughput_mbps,
            "residual_ms": site.scales.residual_ms,
            "age_ms": site.scales.age_ms,
            "most_age": site.scales.most_age,
        },
        "prices": {"success": site.prices.success, "per_number": site.prices.per_number},
    }
    between = site.links
    for name, table in (("hops", between.hops), ("hop_delay_ms", between.hop_delay_ms)):
        if len(set(table[between.exist].tolist())) > 1:
            raise InputError(f"backhaul.{name}: must be the same of all links for daemons")
    links = {
        "hops": int(between.hops[between.exist][0]),
        "hop_delay_ms": float(between.hop_delay_ms[between.exist][0]),
        "packet_bytes": site.links.packet_bytes,
        "result_bytes": site.links.result_bytes,
    }
    ens, sns = len(site.en), len(site.sn)

    def peer(kind: str, nodes: Nodes, number: int, place: tuple[int, int]) -> Peer:
        return Peer(
            name=f"{kind}{number}",
            address=_next(sn.listen, number) if kind == "sn" else "",
            **_node(nodes, number).model_dump(),
            up_mbps=float(site.links.up_mbps[place]),
            down_mbps=float(site.links.down_mbps[place]),
        )

    def made(base: NodeConfig, kind: str, number: int, peers: list[Peer]) -> NodeConfig:
        fields = {
            **base.model_dump(),
            **told,
            "name": f"{kind}{number}",
            "listen": _next(base.listen, number),
            "admin": _next(base.admin, number) if base.admin else "",
            "neighbours": ens - 1,
            "number": number if kind == "en" else 0,
            "links": {**base.links.model_dump(), **links},
            "node": _node(site.en if kind == "en" else site.sn, number).model_dump(),
            "peers": [each.model_dump() for each in peers],
        }
        return NodeConfig.model_validate(fields)

    return (
        [
            made(
                en,
                "en",
                k,
                [
                    peer("sn", site.sn, int(between.reach[k, column]), (k, column))
                    for column in np.flatnonzero(between.exist[k]).tolist()
                ],
            )
            for k in range(ens)
        ],
        [
            made(
                sn,
                "sn",
                s,
                [
                    peer("en", site.en, int(k), (int(k), int(column)))
                    for k, column in zip(*(table[s] for table in between.told), strict=True)
                    if k != NOBODY
                ],
            )
            for s in range(sns)
        ],
    )


def _node(nodes: Nodes, number: int) -> Node:
    return Node(
        slots=int(nodes.slots[number]),
        cycles_per_ms=float(nodes.cycles_per_ms[number]),
        storage_bytes=float(nodes.storage_bytes[number]),
        queue_capacity=int(nodes.queue_capacity[number]),
    )


def _next(address: str, number: int) -> str:
    host, _, port = address.rpartition(":")
    return f"{host}:{int(port) + number if int(port) else 0}"
