"""Live nodes for the map: what they say of themselves on their admin ports, read and never asked.

Beliefs are the statuses that ENs hold; the truth about an SN is what it reports of itself. What no
node says is null, and drawn as unknown.
"""

import asyncio
import math
import time
from collections.abc import AsyncIterator
from contextlib import suppress
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


class Site:
    """The nodes that have been heard of, in order; those that do not answer stay, as absent."""

    def __init__(self) -> None:
        self.ens: dict[str, dict[str, Any]] = {}
        self.sns: dict[str, dict[str, Any]] = {}
        self._names: dict[str, str] = {}  # of the node at an address, once it has answered
        self._spoken_of: dict[str, set[str]] = {}  # by address, the SNs in its last answer

    def read(self, readings: dict[str, list[Sample]]) -> dict[str, Any]:
        """Take a reading of each address ([] of nodes that do not answer); what is to be drawn."""
        for node in (*self.ens.values(), *self.sns.values()):
            node |= {"here": False}
        links: list[dict[str, Any]] = []
        for address, samples in readings.items():
            if samples:
                self._take(address, samples, links)
        spoken_of = set(self._names.values()).union(*self._spoken_of.values())
        self.ens = {name: each for name, each in self.ens.items() if name in spoken_of}
        self.sns = {name: each for name, each in self.sns.items() if name in spoken_of}
        names = list(self.sns)
        for link in links:  # SNs that only ENs speak of are drawn as well
            if link["sn"] not in names:
                names.append(link["sn"])
                self.sns[link["sn"]] = _node(link["sn"], "", None, None, False, False)
        ens = list(self.ens)
        for link in links:
            link |= {"en": ens.index(link["en"]), "sn": names.index(link["sn"])}
        silent = [address for address in readings if address not in self._names]
        return {
            "ens": list(self.ens.values()),
            "sns": list(self.sns.values()),
            "links": links,
            "silent": silent,
        }

    def _take(self, address: str, samples: list[Sample], links: list[dict[str, Any]]) -> None:
        def values(name: str, label: str) -> dict[str, float]:
            wanted = f"cosmo_{name}"
            return {
                s.labels.get(label, ""): s.value
                for s in samples
                if s.name == wanted and abs(s.value) <= _MOST
            }

        name = samples[0].labels.get("node", address)
        self._names[address] = name
        tasks, work = (values(each, "node").get(name) for each in ("tasks_in_node", "work_cycles"))
        methods = [
            each.labels.get("method", "") for each in samples if each.name == "cosmo_method_info"
        ]
        mcycles = None if work is None else work / _MCYCLES
        kind = self.ens if methods else self.sns
        kind[name] = _node(name, "".join(methods[:1]), tasks, mcycles, True, True)
        if not methods:
            return
        raw = _sends_raw(methods[0])
        decided, statuses = values("decisions_total", "action"), values("statuses_total", "sn")
        silent = values("sn_silent", "sn")
        status: dict[str, dict[str, float]] = {}
        for each in samples:
            if each.name == "cosmo_status_value" and abs(each.value) <= _MOST:
                own = status.setdefault(each.labels.get("sn", ""), {})
                own[each.labels.get("number", "")] = each.value
        ages = values("status_age_seconds", "sn")
        named = [s.labels.get("sn", "") for s in samples if s.name == "cosmo_status_age_seconds"]
        self._spoken_of[address] = set(named)
        for sn in dict.fromkeys(named):
            numbers = status.get(sn, {})
            told = numbers.get(str(WORK)) if raw and len(numbers) == RAW else None
            known = statuses.get(sn, 0.0) > 0 and sn in ages
            links.append(
                {
                    "en": name,
                    "sn": sn,
                    "age_ms": 1000.0 * ages[sn] if known else None,
                    "told": told / _MCYCLES if known and told is not None else None,
                    "silent": silent.get(sn, 0.0) > 0,
                    "tasks": decided.get(sn, 0.0),
                    "statuses": statuses.get(sn, 0.0),
                }
            )


def _node(
    name: str, method: str, tasks: float | None, work: float | None, here: bool, known: bool
) -> dict[str, Any]:
    """`known`: it has answered by itself at some time; work is in Mcycles."""
    return {
        "name": name,
        "method": method,
        "tasks": tasks,
        "work": work,
        "here": here,
        "known": known,
    }


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
        self._last: dict[str, Any] | None = None
        self._read_at = -math.inf
        self._turn = asyncio.Lock()

    async def events(self) -> AsyncIterator[dict[str, Any]]:
        """A reading after another; however many look, nodes are read no more often."""
        while True:
            async with self._turn:
                wait_s = self._read_at + self._every_s - time.monotonic()
                if wait_s <= 0 or self._last is None:
                    self._read_at = time.monotonic()
                    reads = (asyncio.to_thread(scraped, each) for each in self._addresses)
                    found = dict(zip(self._addresses, await asyncio.gather(*reads), strict=True))
                    self._last = self._site.read(found)
                told = {"kind": "reading", "every_ms": 1000.0 * self._every_s, **self._last}
            yield told
            await asyncio.sleep(max(0.01, self._read_at + self._every_s - time.monotonic()))


def watching_application(port: int, token: str, addresses: list[str], every_s: float) -> Starlette:
    """The map of live nodes behind a token."""
    watching = Watching(addresses, every_s)
    return application("live", "CoSMO: live nodes", port, token, watching.events, {})
