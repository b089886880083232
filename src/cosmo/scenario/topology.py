"""Nodes, and the links between them, as a scenario describes them (R9 to R13, R30)."""

from collections.abc import Callable
from typing import Annotated, Any, Literal, Self

from pydantic import Field, create_model, model_validator
from pydantic.fields import FieldInfo

from cosmo.scenario.fields import (
    Chosen,
    Count,
    Dwell,
    Finite,
    Hops,
    NodeCount,
    NotNegative,
    Number,
    Part,
    PerLink,
    Positive,
    Range,
    later,
    listed,
)


class Node(Part):
    """One node (R9 to R11): the one list of a node's fields, for scenarios and daemons' files.

    A field that comes later has a default, so that files of before stay what they are.
    """

    slots: Count
    cycles_per_ms: Positive  # of one slot
    storage_bytes: Positive
    queue_capacity: Count  # waiting and running tasks


NODE_FIELDS = tuple(Node.model_fields)


def fields_of_nodes(
    kind: Callable[[Any], Any], default: Callable[[FieldInfo], Any]
) -> dict[str, Any]:
    """The fields of a node for `create_model`, each with the type that `kind` makes of its own and
    the default that `default` makes of the field; ... for none.
    """
    return {
        name: (kind(Annotated[field.annotation, *field.metadata]), default(field))
        for name, field in Node.model_fields.items()
    }


def _one_or_each(one: Any) -> Any:
    return one | Annotated[tuple[one, ...], Field(min_length=1)]


def _later_if_given(field: FieldInfo) -> Any:
    return ... if field.is_required() else later(field.default)


class _At(Part):
    at: Chosen


UnlikeNodes = create_model(
    "UnlikeNodes",
    __base__=_At,
    __doc__="Nodes of a kind, by number (-1 is the last), that differ in what is given.",
    **fields_of_nodes(lambda one: one | None, lambda field: None),
)


class Speed(Part):
    """R37: each node by itself alternates between two factors of its speed, after exponential dwell
    times with these means.
    """

    factors: Range
    dwell_ms: tuple[Dwell, Dwell]


class Outage(Part):
    """R38: each SN by itself fails after an exponential time of this mean, and comes back, with
    nothing, after another.
    """

    up_ms: Dwell
    down_ms: Dwell


class _Counted(Part):
    count: NodeCount


_Described = create_model(
    "_Described", __base__=_Counted, **fields_of_nodes(_one_or_each, _later_if_given)
)


class Nodes(_Described):
    """A kind of node: of each field of `Node` one value for all of them, or one a node."""

    # Where the nodes are, in any unit of length, for `backhaul.reach.nearest`: given one by one, or
    # spread evenly over a square of side 1.
    positions: Literal["spread"] | tuple[tuple[Finite, Finite], ...] = "spread"
    unlike: tuple[UnlikeNodes, ...] = ()
    speed: Speed | None = later(None)

    @model_validator(mode="after")
    def _one_value_each(self) -> Self:
        for name in (*NODE_FIELDS, "positions"):
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

    @property
    def mean_speed(self) -> float:
        """The factor of the speed in the long run."""
        if self.speed is None:
            return 1.0
        (fast, slow), (first, second) = self.speed.factors, self.speed.dwell_ms
        return (fast * first + slow * second) / (first + second)

    @property
    def availability(self) -> float:
        """The share of time that a node is up in the long run."""
        return 1.0

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

    def columns(self) -> dict[str, tuple[float, ...]]:
        """Each field of a node, with a value for every node."""
        return {name: self.each(name) for name in NODE_FIELDS}


class ServiceNodes(Nodes):
    """SNs, which may fail; ENs never do."""

    outage: Outage | None = later(None)

    @property
    def availability(self) -> float:
        """The share of time that an SN is up in the long run (R38)."""
        if self.outage is None:
            return 1.0
        return self.outage.up_ms / (self.outage.up_ms + self.outage.down_ms)


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


_NEAREST, _FARTHEST = 0.65, 0.85  # of the radius, as the paper's four UEs are
_GOLDEN = 0.6180339887498949  # multiples of it fill an interval evenly


def distances_m(count: int, radius_m: float) -> list[float]:
    """Distances to the EN of so many UEs that are not placed one by one, spread evenly."""
    places = ((number * _GOLDEN) % 1.0 for number in range(1, count + 1))
    return [round(radius_m * (_NEAREST + (_FARTHEST - _NEAREST) * place), 3) for place in places]


def _several(numbers: int | tuple[int, ...]) -> tuple[int, ...]:
    return numbers if isinstance(numbers, tuple) else (numbers,)
