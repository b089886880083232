"""What the world is, as immutable, validated data. The numbers live in `presets/*.toml`.

A value of a node may be one number for all nodes of that kind or a list with one number a node,
and `unlike` says in what some of them differ. A value of a link may be one number; a rate may be a
table with a row an EN and a column an SN; `backhaul.links` says in what some of them differ.
"""

from functools import cached_property
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from cosmo.scenario.fields import (
    MOST_MS,
    Count,
    Dwell,
    Finite,
    NotNegative,
    Part,
    Positive,
    Range,
    Share,
    later,
    listed,
    ordered,
)
from cosmo.scenario.links import Links, links_between
from cosmo.scenario.loads import Background, Workload
from cosmo.scenario.topology import Backhaul, Nodes, ServiceNodes, distances_m

Arrivals = Literal["deterministic", "poisson", "bursty", "steps"]  # those that are generated
Engine = Literal["embedded", "ns3", "live"]
_MOST_NODES = 32  # processes that one machine is asked to run by the engine live


class Episode(Part):
    """The time that is simulated and the part of it that is measured (R2, R4, R17)."""

    window_ms: Annotated[Positive, Field(le=MOST_MS)]
    warmup_ms: NotNegative
    undecided_after_ms: NotNegative

    @model_validator(mode="after")
    def _warmup_inside(self) -> Self:
        if self.warmup_ms >= self.window_ms:
            raise ValueError(
                f"warmup_ms = {self.warmup_ms:g}: must be less than window_ms = {self.window_ms:g}"
            )
        return self


class Access(Part):
    """The channel that the UEs of a cell share (R6, R8)."""

    rate_mbps: Positive
    overhead_ms: NotNegative
    contention_ms: NotNegative
    throughput_weight: Share


class Wifi(Part):
    """The access channel of the engine `ns3`, in place of R6: 802.11n at 5 GHz, one cell an EN."""

    channel_mhz: Literal[20, 40]
    mcs: Annotated[int, Field(strict=True, ge=0, le=7)]
    short_guard_interval: Annotated[bool, Field(strict=True)]
    rts: Annotated[bool, Field(strict=True)]  # an exchange of RTS and CTS before every frame
    ampdu_bytes: Annotated[int, Field(strict=True, ge=0, le=65535)]
    datagram_bytes: Annotated[int, Field(strict=True, ge=64, le=1472)]
    queue_packets: Count  # of a device; what does not fit waits in ns-3's FqCoDel, not for long
    queue_ms: Annotated[Positive, Field(le=1e6)]  # how long a packet may wait in it
    transport: Literal["udp", "tcp"]


class Live(Part):
    """How the engine `live` runs the nodes of a scenario as daemons of this machine."""

    slower: Annotated[Finite, Field(ge=0.1, le=1000)] = 1.0  # how many times slower than real time
    transport: Literal["loopback", "netns"] = "loopback"  # netns: a network namespace for each node
    fifo: Annotated[int, Field(strict=True, ge=0, le=50)] = 0  # real-time priority; 0: none
    most_late_ms: Annotated[Positive, Field(le=1000)] = 2.0  # p99 of timers; refused beyond


class Ues(Part):
    """How many UEs a cell has, if `mobility` does not list them one by one."""

    count: Annotated[Count, Field(le=10_000)] | None = None


class Mobility(Part):
    """The UEs of a cell (R7). A heading of 0 degrees leads straight through the EN."""

    distances_m: Annotated[tuple[NotNegative, ...], Field(min_length=1)]
    headings_deg: Annotated[tuple[Finite, ...], Field(min_length=1)]
    speed_m_per_s: NotNegative
    radius_m: Positive
    at_edge: Literal["leave", "turn"]
    residual_cap_ms: Positive

    @model_validator(mode="after")
    def _one_heading_each(self) -> Self:
        if len(self.headings_deg) != len(self.distances_m):
            raise ValueError(
                f"headings_deg = {list(self.headings_deg)}: must have {len(self.distances_m)} "
                "entries, as distances_m has"
            )
        return self


class Fading(Part):
    """Link rates that change: every `period_ms` a factor is drawn from `factors`, for each link and
    direction on its own. Factors of [1, 1] mean constant rates.
    """

    period_ms: Dwell
    factors: Range

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        ordered("factors", self.factors)
        return self


class Status(Part):
    """Status messages and their acknowledgements (R14)."""

    header_bytes: Positive
    bytes_per_dimension: Positive
    ack_bytes: Positive
    notice_bytes: Positive  # of a refusal (R27)
    loss_probability: Annotated[NotNegative, Field(lt=1)]
    jitter_ms: NotNegative


class Storage(Part):
    """R9: an accepted task reserves at least this much."""

    reservation_floor_bytes: NotNegative


class Utility(Part):
    """Values and weights of outcomes, delays and updates (R16)."""

    value: Positive
    true_positive: Positive
    false_positive: Positive
    true_negative: Positive
    false_negative: Positive
    delay_per_ms: NotNegative
    transfer_per_byte: NotNegative
    cost_weight: NotNegative
    update_weight: NotNegative
    update_cost_per_dimension: NotNegative


class Observation(Part):
    """How far back statistics look (R19), and what makes a node's state comparable (R18)."""

    history_ms: Positive
    latency_weight: Share
    wait_scale_ms: Positive
    work_scale_ms: Positive
    throughput_scale_mbps: Positive
    residual_scale_ms: Positive
    age_scale_ms: Positive
    most_age: Positive  # in units of the above


class Scenario(Part):
    """A whole world: nodes, links, channel, workload and utilities. Made by `cosmo.load`."""

    name: Annotated[str, Field(min_length=1)]
    description: str
    engine: Engine
    episode: Episode
    workload: Workload
    background: Background
    access: Access
    wifi: Wifi
    mobility: Mobility
    en: Nodes
    sn: ServiceNodes
    storage: Storage
    backhaul: Backhaul
    fading: Fading
    status: Status
    utility: Utility
    observation: Observation
    live: Live = later(Live())
    ue: Ues = later(Ues())

    @model_validator(mode="before")
    @classmethod
    def _as_many_ues(cls, data: Any) -> Any:
        """With `ue.count`, positions for that many UEs, unless `mobility` has as many."""
        told = data.get("ue") if isinstance(data, dict) else None
        walk = data.get("mobility") if isinstance(data, dict) else None
        count = told.get("count") if isinstance(told, dict) else None
        if type(count) is not int or not 1 <= count <= 10_000 or not isinstance(walk, dict):
            return data  # validation says what is wrong, if anything is
        listed_ones, radius = walk.get("distances_m"), walk.get("radius_m")
        if isinstance(listed_ones, list | tuple) and len(listed_ones) == count:
            return data
        if not isinstance(radius, int | float):
            return data
        spread = {"distances_m": distances_m(count, radius), "headings_deg": [0.0] * count}
        return {**data, "mobility": {**walk, **spread}}

    @model_validator(mode="after")
    def _tables_fit(self) -> Self:
        for name in ("up_mbps", "down_mbps"):
            value = getattr(self.backhaul, name)
            if isinstance(value, tuple) and (
                len(value) != self.en.count or any(len(row) != self.sn.count for row in value)
            ):
                raise ValueError(
                    f"backhaul.{name} = {listed(value)}: must be one number or a table of "
                    f"{self.en.count} rows (ENs) and {self.sn.count} columns (SNs)"
                )
        _ = self.links  # says what is wrong with reach and links
        return self

    @model_validator(mode="after")
    def _tenants_fit(self) -> Self:
        for name in ("rates", "dwell_ms"):
            value = getattr(self.background, name)
            if isinstance(value[0], tuple) and len(value) != self.sn.count:
                raise ValueError(
                    f"background.{name} = {listed(value)}: must be two numbers, or a list of"
                    f" {self.sn.count} such pairs, one for each SN"
                )
        return self

    @model_validator(mode="after")
    def _one_weight_each(self) -> Self:
        weights = self.workload.weights
        if weights and len(weights) != self.en.count:
            raise ValueError(
                f"workload.weights = {listed(weights)}: must be a list of {self.en.count}, one for"
                " each EN"
            )
        return self

    @model_validator(mode="after")
    def _packets_fit(self) -> Self:
        packet = self.backhaul.packet_bytes
        if self.engine == "ns3" and not (64 <= packet <= 65535 and packet == int(packet)):
            raise ValueError(
                f"backhaul.packet_bytes = {packet:g}: must be a whole number from 64 to 65535 with"
                " the engine ns3"
            )
        return self

    @model_validator(mode="after")
    def _daemons_can(self) -> Self:
        """Refuse what the daemons of the engine `live` cannot emulate."""
        if self.engine != "live":
            return self
        status = self.status
        for name, value, right, allowed in (
            ("fading.factors", list(self.fading.factors), [1.0, 1.0], "[1, 1]"),
            ("status.loss_probability", status.loss_probability, 0.0, "0"),
            ("status.jitter_ms", status.jitter_ms, 0.0, "0"),
        ):
            if value != right:
                raise ValueError(f"{name} = {value}: must be {allowed} with the engine live")
        count = self.en.count + self.sn.count
        if count > _MOST_NODES:
            raise ValueError(
                f"en.count + sn.count = {count}: must be at most {_MOST_NODES} with the engine"
                " live, which has a process for each"
            )
        return self

    @cached_property
    def links(self) -> Links:
        """All links between ENs and SNs, with what is known of each (R13, R30)."""
        return links_between(self.en, self.sn, self.backhaul)

    def without_load(self) -> dict[str, Any]:
        """All but how many tasks come, and when: what runs that are played together share."""
        load = {
            *("arrivals", "rate", "rates_of_interest", "burst", "steps", "trace", "block_ms"),
            *("weights", "wave"),
        }
        return self.model_dump(exclude={"workload": load})

    @property
    def ues(self) -> int:
        """UEs in each cell."""
        return len(self.mobility.distances_m)

    @property
    def ues_stay(self) -> bool:
        """Whether UEs are in reach at all times: a trace says by its uploads when they are."""
        return bool(self.workload.trace) and self.workload.trace_ues == "present"

    @property
    def capacity_cycles_per_ms(self) -> float:
        """Aggregate service rate of all ENs and SNs, in the long run."""
        return sum(
            slots * rate * nodes.mean_speed * nodes.availability
            for nodes in (self.en, self.sn)
            for slots, rate in zip(nodes.each("slots"), nodes.each("cycles_per_ms"), strict=True)
        )
