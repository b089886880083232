"""Nodes in this process, on ports of loopback that nobody else has."""

import asyncio
import io
from contextlib import asynccontextmanager

from cosmo.live.client import AsyncClient
from cosmo.live.config import changed_config, load_config
from cosmo.live.logs import Log
from cosmo.live.serving import Serving

LIMIT_S = 60.0
# A busy machine must make nobody shy, and no method slow: its fallback begins anew.
PATIENT = {"method.slow_ms": 60_000.0}
CALM = {"behaviour.guard": False, "behaviour.silent_ms": 30_000.0, **PATIENT}


async def until(state, what):
    """Wait for a state."""
    async with asyncio.timeout(LIMIT_S):
        while not (found := state()):
            await asyncio.sleep(0.01)
        return found, what


def config(role, fields=None, sns=()):
    made = {"listen": "127.0.0.1:0", **CALM, **(fields or {})}
    base = load_config(role)
    if role == "en":
        peer = base.peers[0].model_dump()
        made["peers"] = [
            {**peer, "name": f"sn{k}", "address": address} for k, address in enumerate(sns)
        ]
    return changed_config(base, made)


@asynccontextmanager
async def started(role, fields=None, sns=()):
    serving = Serving(config(role, fields, sns), Log(role, "info", io.StringIO()))
    await serving.start()
    try:
        yield serving
    finally:
        await serving.stop(0)


@asynccontextmanager
async def pair(en=None, sn=None, method="priced-books"):
    """An EN, its SN, and a client of the EN; they have met."""
    use = {"method.use": method}
    async with (
        started("sn", {**use, **(sn or {})}) as there,
        started("en", {**use, **(en or {})}, [there.address]) as here,
        AsyncClient(here.address) as client,
    ):
        await until(lambda: here.node.connections[0].connected, "the nodes have met")
        yield here, there, client


def play(scene):
    """Run a coroutine to its end."""
    asyncio.run(asyncio.wait_for(scene, 2 * LIMIT_S))
