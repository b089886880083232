"""A scenario as the files of its daemons, each with what its node knows."""

from typing import TYPE_CHECKING

import numpy as np

from cosmo.errors import InputError
from cosmo.live.config import NodeConfig, Peer
from cosmo.node import NO_NODE, Nodes, Site

if TYPE_CHECKING:
    from cosmo.scenario import Scenario


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
    _check_peers(site)
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
    described = _described(site) if ens + sns > 2 else {}  # a pair needs no more than its peer

    def peer(kind: str, nodes: Nodes, number: int, place: tuple[int, int]) -> Peer:
        return Peer(
            name=f"{kind}{number}",
            address=_next(sn.listen, number) if kind == "sn" else "",
            **nodes.row(number),
            up_mbps=float(site.links.up_mbps[place]),
            down_mbps=float(site.links.down_mbps[place]),
        )

    def made(base: NodeConfig, kind: str, number: int, peers: list[Peer]) -> NodeConfig:
        given = {
            **base.model_dump(),
            **told,
            "name": f"{kind}{number}",
            "listen": _next(base.listen, number),
            "admin": _next(base.admin, number) if base.admin else "",
            "neighbours": ens - 1,
            "number": number,
            "site": described,
            "links": {**base.links.model_dump(), **links},
            "node": (site.en if kind == "en" else site.sn).row(number),
            "peers": [each.model_dump() for each in peers],
        }
        return NodeConfig.model_validate(given)

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
                    for k, column in zip(*(table[s] for table in between.reached_by), strict=True)
                    if k != NO_NODE
                ],
            )
            for s in range(sns)
        ],
    )


def _check_peers(site: Site) -> None:
    """An SN without an EN has nobody to talk to; an EN always reaches one."""
    lonely = sorted(set(range(len(site.sn))) - set(site.links.reach[site.links.exist].tolist()))
    if lonely:
        raise InputError(f"backhaul.reach: no EN reaches sn{lonely[0]}: with daemons one must")


def _described(site: Site) -> dict[str, object]:
    """All nodes: ENs and SNs must agree on who keeps to whom."""
    links = site.links
    return {
        "reach": [row[exist].tolist() for row, exist in zip(links.reach, links.exist, strict=True)],
        "en": site.en.columns(),
        "sn": site.sn.columns(),
    }


def _next(address: str, number: int) -> str:
    host, _, port = address.rpartition(":")
    return f"{host}:{int(port) + number if int(port) else 0}"
