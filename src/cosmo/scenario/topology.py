"""Nodes, and the links between them, as a scenario describes them (R9 to R13, R30)."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from cosmo.scenario.fields import (
    Chosen,
    Count,
    Finite,
    Hops,
    NodeCount,
    NotNegative,
    Number,
    Part,
    PerLink,
    PerNode,
    PerNodeCount,
    Positive,
    listed,
)


class UnlikeNodes(Part):
    """Nodes of a kind, by number (-1 is the last), that differ from the others in what is given."""

    at: Chosen
    slots: Count | None = None
    cycles_per_ms: Positive | None = None
    storage_bytes: Positive | None = None
    queue_capacity: Count | None = None


class Nodes(Part):
    """A kind of node (R9 to R11)."""

    count: NodeCount
    slots: PerNodeCount
    cycles_per_ms: PerNode
    storage_bytes: PerNode
    queue_capacity: PerNodeCount
    # Where the nodes are, in any unit of length, for `backhaul.reach.nearest`: given one by one, or
    # spread evenly over a square of side 1.
    positions: Literal["spread"] | tuple[tuple[Finite, Finite], ...] = "spread"
    unlike: tuple[UnlikeNodes, ...] = ()

    @model_validator(mode="after")
    def _one_value_each(self) -> Self:
        for name in ("slots", "cycles_per_ms", "storage_bytes", "queue_capacity", "positions"):
            value = getattr(self, name)
            if isinstance(value, tuple) and len(value) != self.count:
                one = '"spread"' if name == "positions" else "one number"
                raise ValueError(
                    f"{name} = {listed(value)}: must be {one} or a list of {self.count}"
                )
        for group in self.unlike:
            for number in _several(group.at):
                if not -self.count <= number < self.count:
                    raise ValueError(
                        f"unlike.at = {number}: must be from 0 to {self.count - 1}, or from"
                        f" {-self.count} to -1, counted from the last"
                    )
        return self

    def each(self, name: str) -> tuple[float, ...]:
        """The value of a field for every node."""
        value = getattr(self, name)
        found = list(value) if isinstance(value, tuple) else [value] * self.count
        for group in self.unlike:
            other = getattr(group, name)
            if other is not None:
                for number in _several(group.at):
                    found[number] = other
        return tuple(found)


class Reach(Part):
    """Of every EN the so many SNs that are nearest to it, and some that all ENs reach."""

    nearest: Annotated[int, Field(strict=True, ge=0)]
    also: tuple[Number, ...] = ()  # numbers of SNs (-1 is the last); they do not count as near


class UnlikeLinks(Part):
    """Links, by the numbers of their ENs and SNs, that differ from the others in what is given."""

    en: Literal["all"] | Chosen = "all"
    sn: Literal["all"] | Chosen = "all"
    up_mbps: Positive | None = None
    down_mbps: Positive | None = None
    hops: Hops | None = None
    hop_delay_ms: NotNegative | None = None


class Backhaul(Part):
    """The links between ENs and SNs (R13), and which there are (R30)."""

    up_mbps: PerLink
    down_mbps: PerLink
    hops: Hops
    hop_delay_ms: NotNegative
    packet_bytes: Positive
    result_bytes: Positive
    # Which SNs an EN reaches: all, a list of SNs for each EN, or by nearness.
    reach: Literal["all"] | tuple[tuple[Number, ...], ...] | Reach = "all"
    links: tuple[UnlikeLinks, ...] = ()


def _several(numbers: int | tuple[int, ...]) -> tuple[int, ...]:
    return numbers if isinstance(numbers, tuple) else (numbers,)
