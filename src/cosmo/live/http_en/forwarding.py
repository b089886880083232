"""The way of one HTTP request: from its client to a service, and back."""

import asyncio
from typing import TYPE_CHECKING

import aiohttp
from aiohttp import web

from cosmo.live.http_en.messages import said
from cosmo.live.http_en.services import UNREACHED, HttpCall, Services, streamed
from cosmo.live.tasks import Fate, Item

if TYPE_CHECKING:
    from cosmo.live.http_en.serve_http import HttpEnServer


class Forwarder:
    """Sends requests to services, and their answers back."""

    def __init__(self, node: "HttpEnServer") -> None:
        self._node, self._services = node, Services(node.config)
        self._addresses = [peer.http for peer in node.config.peers]

    async def close(self) -> None:
        """Close the connections to all services."""
        await self._services.close()

    async def forward(self, call: HttpCall, item: Item) -> web.StreamResponse:
        """Decide, send, and pass the answer on."""
        node = self._node
        try:
            async with asyncio.timeout(None) as call.patience:
                node.core.pick(item, None)
                found = await self._asked(call, item) if call.own is None else None
        except TimeoutError:
            found = None
        if found is None:
            status, why = call.fault or call.own or (504, "the deadline has passed")
            # A body that was not read to its end is in the way of the next request.
            return said(status, why, close=call.request.can_read_body)
        node.core.begun(item)
        async with found:
            return await self._passed_on(call, item, found)

    async def _asked(self, call: HttpCall, item: Item) -> aiohttp.ClientResponse | None:
        """The head of the answer; None if there is none, and the call has an answer of the EN's."""
        node, core = self._node, self._node.core
        for _ in range(node.config.http.tries):
            sn = item.action - 1
            try:
                return await self._services.asked(call, self._addresses[sn])
            except UNREACHED:
                node.counters.add("execute_errors_total", code="connect")
                core.broke(sn, True)
                if not core.try_another(item):
                    break
            except ValueError as error:  # of which aiohttp's InvalidURL is one
                call.fault = 400, f"cannot be passed on ({error})"[:200]
                core.cancel(item)
                return None
            except (aiohttp.ClientError, OSError) as error:
                if call.fault is None:
                    node.counters.add("execute_errors_total", code="broken")
                    core.broke(sn, False)
                call.own = 502, "the service has broken the connection"
                core.failed(item, Fate.FAILED, f"{type(error).__name__}: {error}"[:200])
                return None
        call.own = 503, "no service can be reached"
        core.failed(item, Fate.FAILED, "no service can be reached")
        return None

    async def _passed_on(
        self, call: HttpCall, item: Item, found: aiohttp.ClientResponse
    ) -> web.StreamResponse:
        node, core, sn = self._node, self._node.core, item.action - 1
        made, whole = await streamed(call, found, node.config.limits.receive_s)
        if not whole:
            if call.fault is None:
                node.counters.add("execute_errors_total", code="broken")
                core.broke(sn, False)
            core.failed(item, Fate.FAILED, "the answer has broken off")
        elif found.status >= 500:
            core.broke(sn, False)
            core.failed(item, Fate.FAILED, f"status {found.status}")
        else:
            core.worked(sn)
            core.result(item, b"")
        return made
