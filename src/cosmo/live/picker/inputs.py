"""What a picker hears of its endpoints: metrics that it reads itself, statuses of agents beside
them, and load reports on their answers. All of it becomes statuses of the method that decides.
"""

import asyncio
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cosmo.errors import InputError
from cosmo.live import wire
from cosmo.live.config import NodeConfig
from cosmo.live.config_services import PickerGroup
from cosmo.live.peers import client_ssl
from cosmo.live.picker.endpoints import Endpoint, Place
from cosmo.live.readings.load_reports import reading_of, report_of, reported_state
from cosmo.live.readings.metering import ImplausibleError, Meter, Reading
from cosmo.live.readings.metric_names import MetricNames, load_names
from cosmo.live.readings.pages import Page
from cosmo.live.readings.scraper import IMPLAUSIBLE, MOST_BYTES, READ, Scraper
from cosmo.live.readings.states import Floats, StatusMaker, state_of
from cosmo.live.sn_connection import SnConnection, WatchedSn
from cosmo.node import IDLE, NOTHING, STORAGE, Method

if TYPE_CHECKING:
    from cosmo.live.picker.serve_picker import PickerServer


@dataclass
class _Heard:
    """Where statuses of an endpoint come from."""

    endpoint: Endpoint
    scraper: Scraper | None
    agent: SnConnection | None


# Of a picker's table: how endpoints are asked. An endpoint has its ports itself.
_HOW = ("metrics_labels", "scrape_ms", "scrape_tls", "service_name", "agent_name")


class Wanted(NamedTuple):
    """What is asked of endpoints, and how."""

    config: PickerGroup
    names: MetricNames
    encrypted: ssl.SSLContext | None  # of pages; None: in the clear

    @property
    def questions(self) -> tuple[Any, ...]:
        """Equal where endpoints are asked for the same in the same way."""
        return self.names, *(getattr(self.config, name) for name in _HOW)


def wanted(config: NodeConfig, method: Method) -> Wanted:
    """InputError if the method goes by no statuses and some are to be asked for, or if a file
    cannot be used.
    """
    picker = config.picker
    if method.carries == NOTHING and picker.kinds:
        raise InputError(f"picker.inputs: method.use = {config.method.use!r} goes by no statuses")
    encrypted = client_ssl(config.tls) if picker.scrape_tls else None
    return Wanted(picker, load_names(picker.metrics), encrypted)


class Inputs:
    """Of all endpoints of a picker."""

    def __init__(self, server: "PickerServer", method: Method) -> None:
        """InputError as from `wanted`."""
        self._server, self._method = server, method
        self._wanted = wanted(server.config, method)
        self._maker: StatusMaker | None = None
        self._heard: dict[int, _Heard] = {}  # by column
        self._closing: set[asyncio.Task[None]] = set()

    def change(self, to: Wanted) -> None:
        """Ask in another way from now on, if it is another one. What a page has said stays until
        it is replaced; what an agent has said is forgotten until the agent is heard again.
        """
        before, self._wanted = self._wanted, to
        if before.questions != to.questions:
            self._end_all()
            self.settle(self._server.core.places)

    def expect(self, method: Method) -> None:
        """Statuses are those of this method from now on, if it goes by any."""
        if method.carries != NOTHING:
            self._method = method
            self.settle(self._server.core.places)
            for each in self._heard.values():
                if each.agent is not None:
                    each.agent.expect(method)

    def settle(self, places: Sequence[Place]) -> None:
        """Listen to those who are there, and to nobody else."""
        if self._method.carries == NOTHING:
            self._warn(places)
            return
        self._maker = StatusMaker(self._method, self._server.site)
        wanted = {k: each.endpoint for k, each in enumerate(places) if each.present}
        for column, heard in list(self._heard.items()):
            if wanted.get(column) != heard.endpoint:
                del self._heard[column]
                self._end(heard)
        for column, endpoint in wanted.items():
            if column not in self._heard:
                self._heard[column] = self._begun(column, endpoint)

    def _warn(self, places: Sequence[Place]) -> None:
        asked = [each for each in places if (each.endpoint.scrape_port, each.endpoint.push_port)
                 != (None, None)]  # fmt: skip
        if asked:
            use = self._server.config.method.use
            self._server.log.warning("the method goes by no statuses", method=use)

    def _begun(self, column: int, endpoint: Endpoint) -> _Heard:
        server, (config, names, encrypted) = self._server, self._wanted
        scraper = agent = None
        if endpoint.scrape_port is not None:
            scheme = "http" if encrypted is None else "https"
            url = f"{scheme}://{endpoint.host}:{endpoint.scrape_port}{names.path}"
            page = Page(url, MOST_BYTES, encrypted, config.service_name)
            meter = Meter(names, config.metrics_labels, endpoint.node.slots)
            silent_ms = server.config.behaviour.silent_ms
            scraper = Scraper(page, meter, server.clock, config.scrape_ms, silent_ms)
            told = partial(self._scraped, endpoint.address)
            unheard = partial(server.core.unheard, column, False)
            scraper.begin(partial(self._read, column), told, unheard)
        if endpoint.push_port is not None:
            place = f"{endpoint.host}:{endpoint.push_port}"
            certified = config.agent_name or endpoint.host.strip("[]")
            shape = endpoint.node.slots, endpoint.node.cycles_per_ms
            beside = WatchedSn(endpoint.address, place, certified, *shape)
            agent = SnConnection(server, column, self._method, beside)
            agent.begin()
        return _Heard(endpoint, scraper, agent)

    # Statuses.

    def _scraped(self, address: str, result: str, why: str) -> None:
        self._server.counters.add("scrapes_total", sn=address, result=result)
        if result == IMPLAUSIBLE:
            self._server.counters.add("implausible_messages_total", sn=address)

    def _read(self, column: int, reading: Reading, made_ms: float) -> None:
        self._take(column, state_of(reading, self._server.site, column), made_ms)

    def _take(self, column: int, state: Floats, made_ms: float) -> None:
        assert self._maker is not None
        try:
            numbers = self._maker.numbers(column, state, made_ms)
        except InputError as error:  # the method's own fault
            self._server.log.warning("no status can be made", why=str(error))
            return
        self._server.core.heard(column, made_ms, numbers)
        self._server.counters.add("statuses_total", sn=self._heard[column].endpoint.address)

    def take_report(self, column: int, headers: Mapping[bytes, bytes]) -> None:
        """The status that rides on an answer of an endpoint, if there is one (ORCA)."""
        heard = self._heard.get(column)
        if heard is None:
            return
        endpoint, counters = heard.endpoint, self._server.counters
        try:
            state = self._reported(column, endpoint, headers)
        except ImplausibleError:
            counters.add("load_reports_total", sn=endpoint.address, result=IMPLAUSIBLE)
            counters.add("implausible_messages_total", sn=endpoint.address)
            return
        if state is not None:
            counters.add("load_reports_total", sn=endpoint.address, result=READ)
            self._take(column, state, self._server.clock.now())

    def _reported(
        self, column: int, endpoint: Endpoint, headers: Mapping[bytes, bytes]
    ) -> Floats | None:
        report = report_of(headers)
        if report is None:
            return None
        told = reported_state(report)
        if told is not None:  # no more than the endpoint is known to have
            state = np.array(told)
            state[IDLE] = min(state[IDLE], endpoint.node.slots)
            state[STORAGE] = min(state[STORAGE], endpoint.node.storage_bytes)
            return state
        # This answer's request is about to end, if the picker has sent it there.
        own = max(self._server.core.open[column] - 1, 0)
        reading = reading_of(report, self._wanted.names, endpoint.node.slots, own)
        return None if reading is None else state_of(reading, self._server.site, column)

    def acknowledge(self, column: int, sequence: int) -> None:
        """Tell an agent that its status is known."""
        heard = self._heard.get(column)
        if heard is not None and heard.agent is not None:
            heard.agent.send(wire.FromEn(ack=wire.Ack(sequence=sequence)))

    # Ends.

    def _end(self, heard: _Heard) -> None:
        loop = asyncio.get_running_loop()
        for each in (heard.scraper, heard.agent):
            if each is not None:
                each.stop()  # at once: its column may have another owner in a moment
                task = loop.create_task(each.close())
                self._closing.add(task)
                task.add_done_callback(self._closing.discard)

    def _end_all(self) -> None:
        for heard in self._heard.values():
            self._end(heard)
        self._heard.clear()

    async def close(self) -> None:
        """End all connections to agents and all readings of pages."""
        self._end_all()
        await asyncio.gather(*self._closing, return_exceptions=True)
