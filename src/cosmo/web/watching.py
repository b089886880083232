"""Live nodes for the map: what they say of themselves on their admin ports, read and never asked.

Beliefs are the statuses that ENs hold, and the requests that a picker has sent itself; the truth
about an SN is what it reports of itself. What no node says is null, and drawn as unknown.
"""

import asyncio
import math
import time
from collections import Counter
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from prometheus_client.samples import Sample
from starlette.applications import Starlette

from cosmo.control.registry import kind_of
from cosmo.errors import InputError
from cosmo.live.top import scraped
from cosmo.node import RAW, WORK
from cosmo.web.server import application

FASTEST_S = 0.1
_MCYCLES = 1e6
_MOST = 1e15  # no number of a node is larger
_MOST_READERS = 32
# Of an EN, for each of its SNs: what it writes down grows with them, and being watched must take
# less than 1 % of a core (benchmarks/live_watch.py).
_LEAST_GAP_S = 0.02
# What the map shows; nodes need not write down the rest.
MAP_METRICS = tuple(
    f"cosmo_{name}"
    for name in (
        "decisions_total", "endpoints", "method_info", "requests_in_flight", "sn_silent",
        "status_age_seconds", "status_value", "statuses_total", "tasks_in_node", "work_cycles",
    )
)  # fmt: skip


@dataclass
class _Answered:
    """The node at an address, as it was when it answered last."""

    node: dict[str, Any]
    links: list[dict[str, Any]] = field(default_factory=list)  # of an EN, to SNs by name


class Site:
    """What the addresses have answered; a node that no longer does stays, as absent.

    Nothing else is kept: an SN that only ENs speak of goes when they no longer do.
    """

    def __init__(self) -> None:
        self._last: dict[str, _Answered] = {}

    def read(self, readings: dict[str, list[Sample]]) -> dict[str, Any]:
        """Take a reading of each address ([] of nodes that do not answer); what is to be drawn."""
        for address, samples in readings.items():
            if samples:
                self._last[address] = _answered(address, samples)
            elif (gone := self._last.get(address)) is not None:
                gone.node["here"] = False
                for link in gone.links:  # what it holds now, nobody knows
                    link |= {"age_ms": None, "told": None, "in_flight": None}
        there = [self._last[address] for address in readings if address in self._last]
        ens = [each for each in there if each.node["kind"] != "SN"]
        sns = {each.node["name"]: each.node for each in there if each.node["kind"] == "SN"}
        for name in (link["sn"] for each in ens for link in each.links):
            sns.setdefault(name, _node(name, "SN") | {"here": False, "known": False})
        places = {name: place for place, name in enumerate(sns)}
        links = [
            link | {"en": en, "sn": places[link["sn"]]}
            for en, each in enumerate(ens)
            for link in each.links
        ]
        silent = [address for address in readings if address not in self._last]
        return {
            "ens": [each.node for each in ens],
            "sns": list(sns.values()),
            "links": links,
            "silent": silent,
        }


def _answered(address: str, samples: list[Sample]) -> _Answered:
    def values(name: str, label: str) -> dict[str, float]:
        wanted = f"cosmo_{name}"
        found = (each for each in samples if each.name == wanted and abs(each.value) <= _MOST)
        return {each.labels.get(label, ""): each.value for each in found}

    name = samples[0].labels.get("node", address)
    tasks, work = (values(each, "node").get(name) for each in ("tasks_in_node", "work_cycles"))
    methods = [
        each.labels.get("method", "") for each in samples if each.name == "cosmo_method_info"
    ]
    if not methods:
        return _Answered(_node(name, "SN", "", tasks, work))
    picks = bool(values("endpoints", "node"))  # a picker, which runs nothing itself
    decided, statuses = values("decisions_total", "action"), values("statuses_total", "sn")
    ages, open_requests = values("status_age_seconds", "sn"), values("requests_in_flight", "sn")
    raw = _sends_raw(methods[0])
    numbers: dict[str, dict[str, float]] = {}
    for each in samples:
        if each.name == "cosmo_status_value" and abs(each.value) <= _MOST:
            of = numbers.setdefault(each.labels.get("sn", ""), {})
            of[each.labels.get("number", "")] = each.value
    links, silent = [], values("sn_silent", "sn")
    about_sns = "cosmo_sn_silent", "cosmo_status_age_seconds"
    for sn in dict.fromkeys(s.labels.get("sn", "") for s in samples if s.name in about_sns):
        age_s, told = ages.get(sn, math.nan), numbers.get(sn, {})
        known = statuses.get(sn, 0.0) > 0 and math.isfinite(age_s)
        told_work = told.get(str(WORK), math.nan) if raw and len(told) == RAW else math.nan
        links.append(
            {
                "sn": sn,
                "age_ms": 1000.0 * age_s if known else None,
                "told": told_work / _MCYCLES if known and math.isfinite(told_work) else None,
                "in_flight": open_requests.get(sn) if picks else None,
                "silent": silent.get(sn, 0.0) > 0,
                "tasks": decided.get(sn, 0.0),
                "statuses": statuses.get(sn, 0.0),
            }
        )
    if picks:
        node = _node(name, "picker", methods[0], sum(open_requests.values()))
        return _Answered(node, links)
    return _Answered(_node(name, "EN", methods[0], tasks, work), links)


def _node(
    name: str, kind: str, method: str = "", tasks: float | None = None, cycles: float | None = None
) -> dict[str, Any]:
    """A node that answers; `known`: it has, by itself, at some time. Work is in Mcycles."""
    work = None if cycles is None else cycles / _MCYCLES
    found = {"name": name, "kind": kind, "method": method, "tasks": tasks, "work": work}
    return {**found, "here": True, "known": True}


def _sends_raw(name: str) -> bool:
    """Whether statuses of a method are N, W, B, M, so that the work in them can be read.

    The name is a stranger's: files of methods, which it may name, are not run.
    """
    with suppress(InputError):
        return kind_of(name, known_only=True)[0].carries == RAW
    return False


class Watching:
    """Reads all nodes together, while somebody looks."""

    def __init__(self, addresses: list[str], every_s: float) -> None:
        self._addresses, self._every_s, self._site = addresses, every_s, Site()
        self._readers = ThreadPoolExecutor(min(len(addresses), _MOST_READERS), "admin port")
        self._reads: dict[str, asyncio.Future[list[Sample]]] = {}  # that have not ended
        self._last: dict[str, Any] | None = None
        self._read_at, self._gap_s = -math.inf, every_s
        self._turn = asyncio.Lock()

    async def events(self) -> AsyncIterator[dict[str, Any]]:
        """A reading after another; however many look, nodes are read no more often."""
        told_at = -math.inf
        while True:
            async with self._turn:
                if self._last is None or time.monotonic() >= self._read_at + self._gap_s:
                    self._read_at = time.monotonic()
                    self._last = self._site.read(await self._readings())
                    most = max(
                        Counter(link["en"] for link in self._last["links"]).values(), default=0
                    )
                    self._gap_s = max(self._every_s, _LEAST_GAP_S * most)
                told = {"kind": "reading", "every_ms": 1000.0 * self._gap_s, **self._last}
            if self._read_at > told_at:  # timers may be early: nothing is sent twice
                told_at = self._read_at
                yield told
            await asyncio.sleep(max(0.01, self._read_at + self._gap_s - time.monotonic()))

    async def _readings(self) -> dict[str, list[Sample]]:
        """Of each address. One that hangs holds up nobody: it is waited for no longer than until
        the next reading, and asked again once it has answered or failed.
        """
        loop = asyncio.get_running_loop()
        for address in self._addresses:
            if address not in self._reads:
                self._reads[address] = loop.run_in_executor(
                    self._readers, scraped, address, MAP_METRICS
                )
        done, _ = await asyncio.wait(self._reads.values(), timeout=max(self._every_s, 0.5))
        found = {
            address: read.result() if read in done else [] for address, read in self._reads.items()
        }
        self._reads = {a: read for a, read in self._reads.items() if read not in done}
        return {address: found[address] for address in self._addresses}


def watching_application(port: int, token: str, addresses: list[str], every_s: float) -> Starlette:
    """The map of live nodes behind a token."""
    watching = Watching(addresses, every_s)
    return application("live", "CoSMO: live nodes", port, token, watching.events, {})
