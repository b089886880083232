"""Which ENs and SNs are linked, and what each link is like: R30, from what a scenario says."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from cosmo.node import NO_NODE
from cosmo.scenario.topology import Backhaul, Nodes

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Number = TypeVar("Number", np.float64, np.int64)

# What makes the fractional parts of multiples of two numbers fill a square evenly.
_PLASTIC = 1.32471795724474602596


@dataclass(frozen=True, eq=False)
class Links:
    """All links, one a place: those of an EN side by side, its SNs in order of their numbers."""

    ens: int
    sns: int
    first: Ints  # [EN + 1] where the links of each EN begin
    en: Ints  # [link]
    sn: Ints
    up_mbps: Floats
    down_mbps: Floats
    hops: Ints
    hop_delay_ms: Floats

    def __len__(self) -> int:
        return len(self.sn)

    @cached_property
    def most_sns(self) -> int:
        """SNs that the EN with the widest reach has."""
        return int(np.diff(self.first).max())

    @cached_property
    def most_ens(self) -> int:
        """ENs that reach the SN which most of them do."""
        return int(np.bincount(self.sn, minlength=self.sns).max())

    @cached_property
    def reach(self) -> Ints:
        """[EN, k] number of the k-th SN that an EN reaches; -1 where it reaches fewer."""
        return self.by_en(self.sn, NO_NODE)

    def by_en(self, values: NDArray[Number], blank: float) -> NDArray[Number]:
        """[EN, k] from [link], with `blank` where an EN reaches fewer SNs than others do."""
        table: NDArray[Number] = np.full((self.ens, self.most_sns), blank, values.dtype)
        table[self.en, np.arange(len(self)) - self.first[self.en]] = values
        return table

    @cached_property
    def by_sn(self) -> tuple[Ints, Ints]:
        """([SN + 1] where an SN's links begin in the other, [place] links by SN, then EN)."""
        order = np.argsort(self.sn, kind="stable")
        counts = np.bincount(self.sn, minlength=self.sns)
        return np.concatenate([[0], np.cumsum(counts)]), order


def links_between(en: Nodes, sn: Nodes, backhaul: Backhaul) -> Links:
    """The links of a scenario; ValueError names what is wrong with `reach` or `links`."""
    reached = _reached(en, sn, backhaul)
    counts = np.array([len(each) for each in reached], np.int64)
    ends, places = np.repeat(np.arange(en.count), counts), np.concatenate(reached)
    found = Links(
        ens=en.count,
        sns=sn.count,
        first=np.concatenate([[0], np.cumsum(counts)]),
        en=ends,
        sn=places,
        up_mbps=_each(backhaul.up_mbps, ends, places),
        down_mbps=_each(backhaul.down_mbps, ends, places),
        hops=np.full(len(places), backhaul.hops, np.int64),
        hop_delay_ms=np.full(len(places), backhaul.hop_delay_ms, np.float64),
    )
    for number, group in enumerate(backhaul.links):
        chosen = _chosen(f"links.{number}.en", group.en, ends, en.count)
        chosen &= _chosen(f"links.{number}.sn", group.sn, places, sn.count)
        if not chosen.any():
            raise ValueError(
                f"backhaul.links.{number}: EN {group.en} does not reach SN {group.sn}, so there is"
                " no such link"
            )
        for name in ("up_mbps", "down_mbps", "hops", "hop_delay_ms"):
            if getattr(group, name) is not None:
                getattr(found, name)[chosen] = getattr(group, name)
    return found


def _reached(en: Nodes, sn: Nodes, backhaul: Backhaul) -> list[Ints]:
    """Of each EN, its SNs in order."""
    reach = backhaul.reach
    if isinstance(reach, str):
        return [np.arange(sn.count)] * en.count
    if not isinstance(reach, tuple):
        return _nearest(en, sn, reach.nearest, reach.also)
    if len(reach) != en.count:
        raise ValueError(
            f'backhaul.reach: has {len(reach)} lists of SNs, must be "all", one list for each of'
            f" {en.count} ENs, or {{nearest = …, also = […]}}"
        )
    found = []
    for number, each in enumerate(reach):
        if len(each) == 0 or len(set(each)) < len(each) or not all(0 <= k < sn.count for k in each):
            raise ValueError(
                f"backhaul.reach.{number} = {list(each)}: must be SNs from 0 to {sn.count - 1},"
                " each once, and at least one"
            )
        found.append(np.array(sorted(each), np.int64))
    return found


def _nearest(en: Nodes, sn: Nodes, count: int, also: Iterable[int]) -> list[Ints]:
    always = set()
    for number in also:
        if not -sn.count <= number < sn.count:
            raise ValueError(
                f"backhaul.reach.also = {number}: must be from 0 to {sn.count - 1}, or from"
                f" {-sn.count} to -1, counted from the last"
            )
        always.add(number % sn.count)
    near = np.array([number for number in range(sn.count) if number not in always], np.int64)
    if count + len(always) < 1 or count > len(near):
        raise ValueError(
            f"backhaul.reach.nearest = {count}: must be from {0 if always else 1} to {len(near)}"
        )
    here, there = _positions(en), _positions(sn)[near]
    found = []
    for place in here:
        distance = ((there - place) ** 2).sum(axis=1)
        # Of equally near ones the first.
        chosen = near[np.argsort(distance, kind="stable")[:count]]
        found.append(np.sort(np.concatenate([chosen, np.array(sorted(always), np.int64)])))
    return found


def _positions(nodes: Nodes) -> Floats:
    """[node, (x, y)]."""
    if isinstance(nodes.positions, tuple):
        return np.array(nodes.positions, np.float64).reshape(-1, 2)
    steps = np.arange(1, nodes.count + 1)[:, None] * np.array([_PLASTIC**-1, _PLASTIC**-2])
    return np.asarray((0.5 + steps) % 1.0)


def _each(value: float | tuple[tuple[float, ...], ...], en: Ints, sn: Ints) -> Floats:
    """[link] from one number, or a table with a row an EN and a column an SN."""
    if isinstance(value, tuple):
        return np.array(value, np.float64)[en, sn]
    return np.full(len(sn), value, np.float64)


def _chosen(
    field: str, numbers: str | int | tuple[int, ...], node: Ints, count: int
) -> NDArray[np.bool_]:
    """[link] whether its node is among these."""
    if isinstance(numbers, str):
        return np.ones(len(node), np.bool_)
    several = numbers if isinstance(numbers, tuple) else (numbers,)
    for number in several:
        if not -count <= number < count:
            raise ValueError(
                f"backhaul.{field} = {number}: must be from 0 to {count - 1}, or from {-count} to"
                " -1, counted from the last"
            )
    return np.isin(node, np.array(several) % count)
