"""What daemons know of other people's services: pickers, agents, ports of HTTP."""

from typing import Annotated, Literal

from pydantic import Field

from cosmo.live.config_fields import Address, Group, Millis, Name, Port, ReadingMillis, Seconds, Url
from cosmo.scenario.fields import Positive
from cosmo.scenario.topology import Node


class PickerGroup(Group):
    """What a picker chooses from, and what it does beyond a method's word."""

    # static:ADDRESS,… file:PATH dns:NAME:PORT …: where endpoints are listed (`live.picker.sources`)
    endpoints: str = ""
    every_s: Seconds = 1.0  # between two looks at what cannot be watched
    endpoint: Node = Node(
        slots=1, cycles_per_ms=1.0, storage_bytes=1e9, queue_capacity=1000
    )  # what is not said of one
    deadline_ms: Annotated[Millis, Field(le=900_000)] = 15_000.0  # of a request that says nothing
    ranked: Annotated[int, Field(strict=True, ge=1, le=16)] = 3  # endpoints in an answer
    shed: bool = False  # 429 for what the method rejects; else it goes to the least busy endpoint
    link_mbps: Positive = 10_000.0
    # What is heard of endpoints: a picker reads their metrics (scrape), or agents beside them
    # decide when to send a status (push).
    inputs: Literal["none", "scrape", "push"] | tuple[Literal["scrape", "push"], ...] = "none"
    metrics: str = "vllm"  # their names: a preset (`live.readings.metric_names`), or a file
    metrics_labels: dict[str, str] = Field(default_factory=dict)  # that samples must have
    scrape_ms: ReadingMillis = 50.0
    scrape_port: Port = 0  # of the page with metrics; 0: the endpoint's own
    scrape_tls: bool = False  # pages are asked for with the certificates of `tls`
    service_name: Name | Literal[""] = ""  # in certificates of services; empty: their IP address
    push_port: Port = 7700  # of agents, on the endpoints' hosts
    agent_name: Name | Literal[""] = ""  # in certificates of agents; empty: their IP address

    @property
    def kinds(self) -> tuple[str, ...]:
        """The inputs as a tuple."""
        if isinstance(self.inputs, tuple):
            return self.inputs
        return () if self.inputs == "none" else (self.inputs,)


class AgentGroup(Group):
    """The service that an agent stands beside, and whom it tells of it."""

    url: Url | Literal[""] = ""  # of the page with its metrics
    # Instead of a page: where it takes requests, which come by `http.listen` and are counted there.
    service: Address | Literal[""] = ""
    metrics: str = "vllm"  # their names: a preset (`live.readings.metric_names`), or a file
    labels: dict[str, str] = Field(default_factory=dict)  # that samples must have
    read_ms: ReadingMillis = 50.0
    pickers: Annotated[int, Field(strict=True, ge=1, le=256)] = 2  # that may watch it at a time


class HttpGroup(Group):
    """HTTP requests at an EN, which it forwards to the HTTP services of its SNs, or at an agent."""

    listen: Address | Literal[""] = ""  # empty: none are taken
    deadline_ms: Annotated[Millis, Field(le=900_000)] = 15_000.0  # of a request that says nothing
    tries: Annotated[int, Field(strict=True, ge=1, le=16)] = (
        3  # SNs, while none can be connected to
    )
    shed: bool = True  # 429 for what the method rejects; else it goes to the least busy SN
    idle_s: Seconds = 300.0  # an answer of which nothing comes for so long is cut off
