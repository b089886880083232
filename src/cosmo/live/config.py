"""The TOML file of a daemon, validated like a scenario: errors are one line."""

import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, create_model, model_validator

from cosmo.documents import Documents, dump
from cosmo.live.config_fields import Address, Group, Index, Millis, Name, Seconds
from cosmo.live.config_services import AgentGroup, HttpGroup, PickerGroup
from cosmo.scenario.fields import Count, Hops, NotNegative, Positive, Range
from cosmo.scenario.topology import Node, fields_of_nodes


class Peer(Node):
    """A node of the other kind, and the link to it."""

    name: Name
    address: Address | Literal[""] = ""  # of an SN; ENs come by themselves
    http: Address | Literal[""] = ""  # of the HTTP service on an SN's machine
    up_mbps: Positive
    down_mbps: Positive

    @property
    def node(self) -> Node:
        """The node itself, as of an `Endpoint`."""
        return self


class _Columns(Group):
    @model_validator(mode="before")
    @classmethod
    def _with_defaults(cls, given: Any) -> Any:
        """A column that is not there has the default of the field, if it has one."""
        if not isinstance(given, dict) or not isinstance(given.get("slots"), list | tuple):
            return given
        count = len(given["slots"])
        optional = {k: one for k, one in Node.model_fields.items() if not one.is_required()}
        return {name: [one.default] * count for name, one in optional.items()} | given

    @model_validator(mode="after")
    def _complete(self) -> "_Columns":
        if len({len(column) for column in self.model_dump().values()}) > 1:
            raise ValueError("slots: every column must have a number for each node")
        return self

    def __len__(self) -> int:
        return len(next(iter(self.model_dump().values())))


def _several_of(one: Any) -> Any:
    return tuple[one, ...]


NodeColumns = create_model(
    "NodeColumns",
    __base__=_Columns,
    __doc__="Several nodes: of each field of `Node` a number a node.",
    **fields_of_nodes(_several_of, lambda field: ()),
)


class SiteGroup(Group):
    """All ENs and SNs, where several SNs are shared: who keeps to whom depends on all of them."""

    reach: tuple[tuple[Index, ...], ...] = ()  # of each EN, the SNs in the order of its peers
    en: NodeColumns = NodeColumns()
    sn: NodeColumns = NodeColumns()

    @model_validator(mode="after")
    def _complete(self) -> "SiteGroup":
        if len(self.reach) != len(self.en):
            raise ValueError(f"reach: must have a row for each of {len(self.en)} ENs")
        for row in self.reach:
            if len(set(row)) < len(row) or max(row, default=0) >= max(len(self.sn), 1):
                raise ValueError(
                    f"reach: {list(row)} must be different numbers below {len(self.sn)}, of SNs"
                )
        return self

    def peers_of(self, role: str, number: int) -> int:
        """How many nodes an EN reaches, or reach an SN."""
        if role == "en":
            return len(self.reach[number])
        return sum(number in row for row in self.reach)


class MethodGroup(Group):
    """The methods that decide, their fallback and their shadow."""

    use: str  # as in `cosmo simulate --method`
    fallback: str  # decides while the method misbehaves
    shadow: str  # is asked too and never obeyed; empty: nobody
    slow_ms: Millis  # a decision that takes longer is a fault
    seed: Annotated[
        int, Field(strict=True, ge=0, lt=2**63)
    ]  # of a method's own random draws, and the run of a training


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return []


class Handler(Group):
    """Who does the work: `emulate` holds a slot, `python` calls a function, `command` a program.

    `testbed` holds a slot for as long as the input says, and takes the node's speed and tasks of
    tenants from whoever calls (`emulation`).
    """

    kind: Literal["emulate", "testbed", "python", "command"]
    target: str  # module:function, or the command line

    @model_validator(mode="after")
    def _complete(self) -> "Handler":
        if (self.kind in ("emulate", "testbed")) != (not self.target):
            raise ValueError(f"target = {self.target!r}: must be given unless kind is emulate")
        if self.kind == "python" and len([part for part in self.target.split(":") if part]) != 2:
            raise ValueError(f"target = {self.target!r}: must look like module:function")
        if self.kind == "command" and not _words(self.target):
            raise ValueError(
                f"target = {self.target!r}: must be a command line, with closed quotes"
            )
        return self


class Expected(Group):
    """What tasks are expected: methods scale what they see by it."""

    input_bytes: Range
    cycles: Range
    deadline_ms: Range
    rate: Positive  # a second
    squared_variation: NotNegative
    residual_ms: Positive  # until a UE leaves the cell, where it does not say
    reservation_floor_bytes: NotNegative  # R9


class LinkGroup(Group):
    """What the links are like (R13)."""

    hops: Hops
    hop_delay_ms: NotNegative
    packet_bytes: Positive
    result_bytes: Positive
    emulate: bool  # hold messages back for as long as such a link would: for a test bed
    emulate_rate: bool  # false: only for the delay of its hops, as the network itself is slow


class Behaviour(Group):
    """What a node does when others do not."""

    late: Literal["drop", "finish"]  # tasks whose budget is gone: stop, or go on as R11 says
    # Tasks whose SN has vanished: the EN runs them, or waits for their deadline as R38 says.
    lost: Literal["rerun", "expire"]
    guard: bool  # subtract the measured overhead of the path from budgets
    most_guard_ms: NotNegative
    silent_ms: Millis  # an SN that nothing is heard of for so long is not offloaded to
    heartbeat_ms: Annotated[Millis, Field(ge=1)]
    most_updates_per_s: Positive  # to each EN
    refresh_ms: NotNegative  # a status that says nothing new waits for so long
    updates_per_task: NotNegative  # statuses to an EN for each task of it, …
    idle_ms: Millis  # … and one more in this time, whether it sends tasks or not
    update_burst: Annotated[float, Field(ge=1, le=1e6)]  # that may be saved up
    fresh_ms: Millis  # after so long without a task an EN's method starts without memory
    drain_s: Annotated[NotNegative, Field(le=1e6)]  # after SIGTERM, for tasks in flight


class Limits(Group):
    """What strangers can ask for."""

    input_bytes: Annotated[int, Field(strict=True, ge=1, le=10**9)]
    calls: Count  # at a time
    calls_per_s: Positive  # of each client
    burst: Count
    connections: Annotated[int, Field(strict=True, ge=1, le=20_000)]
    idle_s: Seconds  # a connection without a call is closed
    receive_s: Seconds  # a call whose input is not whole after so long is refused


class Tls(Group):
    """Certificates; all empty: none, which is for one machine only."""

    certificate: str
    key: str
    authority: str  # who signs those that may talk to this node
    shared_key: bool  # take a key that others than its owner can read
    allowed: tuple[str, ...]  # names (SAN) that may; empty: all that the authority has signed

    @model_validator(mode="after")
    def _complete(self) -> "Tls":
        given = [bool(self.certificate), bool(self.key), bool(self.authority)]
        if any(given) and not all(given):
            raise ValueError("certificate: must come with key and authority")
        return self


class Log(Group):
    """What is written down."""

    level: Literal["debug", "info", "warning"]
    decisions: str  # a CSV or Parquet file, a row a task; empty: none
    rows: Count  # in a file; then the next begins
    seconds: Positive = 60.0  # after which a file is written, whatever it has


class Scales(Group):
    """Scales that the inputs of learned methods are divided by (R18)."""

    wait_ms: Positive
    work_ms: Positive
    throughput_mbps: Positive
    residual_ms: Positive
    age_ms: Positive
    most_age: Positive


class Prices(Group):
    """Prices that methods weigh updates by (R16)."""

    success: Positive
    per_number: NotNegative


class NodeConfig(Group):
    """All fields of a daemon's file."""

    role: Literal["en", "sn", "picker", "agent"]
    name: Name
    description: str
    listen: Address
    admin: Address | Literal[""]  # metrics and a page; empty: none
    admin_hosts: tuple[str, ...]  # names by which the admin port may be called, beside its own
    scale: Annotated[Positive, Field(ge=1e-3, le=1e6)]  # of time: 5 is five times slower
    standby: bool  # do not listen before SIGUSR1: for a test bed
    reflection: bool
    orca: bool  # an SN tells its load to balancers that know nothing of this package
    neighbours: Index  # other ENs that share the SNs, as methods count them
    # Which of all these ENs it is, from 0, or of the site's SNs: each EN keeps to others of them.
    number: Index
    node: Node
    method: MethodGroup
    handler: Handler
    expected: Expected
    links: LinkGroup
    behaviour: Behaviour
    limits: Limits
    tls: Tls
    log: Log
    scales: Scales
    prices: Prices
    site: SiteGroup = (
        SiteGroup()
    )  # empty: what the node knows is itself, its neighbours and its peers
    picker: PickerGroup = PickerGroup()
    agent: AgentGroup = AgentGroup()
    http: HttpGroup = HttpGroup()
    peers: tuple[Peer, ...]

    @model_validator(mode="after")
    def _consistent(self) -> "NodeConfig":
        if self.orca and self.role != "sn":
            raise ValueError("orca = true: must be false unless the node is an SN")
        if (self.role == "picker") != bool(self.picker.endpoints):
            raise ValueError("picker.endpoints: must be given for a picker, and for no other node")
        if (self.role == "agent") != bool(self.agent.url or self.agent.service):
            raise ValueError("agent.url: must be given for an agent, and for no other node")
        self._check_services()
        alone = self.role in ("picker", "agent")
        if alone and (self.peers or self.site.reach):
            raise ValueError("peers: must be empty for a picker or an agent")
        if self.site.reach:
            self._check_place()
        elif self.role == "sn" and self.number:
            raise ValueError(f"number = {self.number}: must be 0 unless site describes all SNs")
        elif self.number > self.neighbours:
            raise ValueError(f"number = {self.number}: must be at most neighbours")
        if not self.peers and not alone:
            raise ValueError("peers: must name at least one node")
        names = [peer.name for peer in self.peers]
        if len(set(names)) < len(names):
            raise ValueError("peers: every one must have a name of its own")
        for number, peer in enumerate(self.peers):
            if self.role == "en" and not (peer.address or (peer.http and self.http.listen)):
                raise ValueError(f"peers.{number}.address: an SN must have one")
        if self.http.listen and self.role == "en":
            self._check_http()
        return self

    def _check_services(self) -> None:
        """What is asked of services, and how."""
        agent, http = self.agent, self.http.listen
        if agent.url and agent.service:
            raise ValueError('agent.url: must be "" where agent.service is given')
        if agent.service and (not http or http == agent.service):
            raise ValueError(
                f"http.listen = {http!r}: must be a port in front of agent.service ="
                f" {agent.service!r}"
            )
        if http and not (self.role == "en" or agent.service):
            raise ValueError(
                f"http.listen = {http!r}: must be empty unless for an EN, or with agent.service"
            )
        encrypted = {
            "agent.url": agent.url.startswith("https:"),
            "picker.scrape_tls": self.picker.scrape_tls,
            "picker.endpoints": self.picker.endpoints.startswith("eds:https:"),
        }
        for name, wanted in encrypted.items():
            if wanted and not self.tls.certificate:
                raise ValueError(f"tls.certificate: must be given, as {name} asks for encryption")

    def _check_http(self) -> None:
        if not any(peer.http for peer in self.peers):
            raise ValueError("peers.0.http: at least one SN must have an HTTP service")
        for number, peer in enumerate(self.peers):
            if peer.http == self.http.listen:
                raise ValueError(f"peers.{number}.http = {peer.http!r}: is the EN itself")

    def _check_place(self) -> None:
        """That the description of the site knows this node, with as many peers as it has."""
        known = len(self.site.en if self.role == "en" else self.site.sn)
        if self.number >= known:
            raise ValueError(f"number = {self.number}: must be less than {known}, as in site")
        peers = self.site.peers_of(self.role, self.number)
        if peers != len(self.peers):
            raise ValueError(f"peers: must be {peers}, as site.reach says, not {len(self.peers)}")


DOCUMENTS = Documents("config", NodeConfig, "cosmo.live", "en", "method.use=priced-books")


def load_config(source: str | Path, settings: Iterable[str] = ()) -> NodeConfig:
    """A preset (`en`, `sn`, `picker`, `agent`) or a TOML file that extends one, with fields set."""
    return DOCUMENTS.load(source, settings)


def changed_config(config: NodeConfig, fields: dict[str, object]) -> NodeConfig:
    """The same with fields set by name."""
    return DOCUMENTS.validated(config.model_dump(), fields)


def config_text(config: NodeConfig) -> str:
    """As a complete TOML file."""
    return dump(config)
