"""An agent that counts the requests of its service, which pass through it."""

import asyncio
import io
import math
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from cosmo.errors import InputError
from cosmo.live.config import changed_config, load_config
from cosmo.live.logs import Log
from cosmo.live.serving import Serving
from cosmo.node import IDLE, LATENCY, REQUESTS
from live.http_scenes import Service, got, told
from live.nodes import play, until
from live.picker_scenes import Proxy, picker

LSQ = {"method__use": "lsq:interval_ms=20"}


def config_of(service, **fields):
    given = {name.replace("__", "."): value for name, value in fields.items()}
    known = {"listen": "127.0.0.1:0", "http.listen": "127.0.0.1:0", "agent.url": "",
             "agent.service": service, "agent.read_ms": 5.0, "node.slots": 2,
             "method.use": "lsq:interval_ms=20", "behaviour.idle_ms": 1.0,
             "behaviour.heartbeat_ms": 20.0, "behaviour.most_updates_per_s": 1000.0}  # fmt: skip
    return changed_config(load_config("agent"), {**known, **given})


@asynccontextmanager
async def counting(service, **fields):
    """(the agent, its port for requests)."""
    serving = Serving(config_of(service, **fields), Log("a", "info", io.StringIO()))
    await serving.start()
    try:
        await until(lambda: serving.node._there, "the agent has found its service")
        yield serving, serving._listener.http_port
    finally:
        await serving.stop(0)


def held():
    """(a handler that answers when it is told to, what tells it)."""
    go = asyncio.Event()

    async def handle(request):
        await go.wait()
        return web.Response(text="done")

    return handle, go


def state(agent):
    return agent.node.core.station.state(0.0)


def test_the_count_rises_with_requests_and_falls_with_their_answers():
    async def scene():
        handle, go = held()
        async with Service(handle) as service, counting(service.address) as (agent, port):
            assert (state(agent)[REQUESTS], state(agent)[IDLE]) == (0.0, 2.0)
            asked = [asyncio.ensure_future(got(port))]
            await until(lambda: state(agent)[REQUESTS] == 1.0, "one is there")
            assert state(agent)[IDLE] == 1.0
            asked += [asyncio.ensure_future(got(port)) for _ in range(4)]
            await until(lambda: len(service.requests) == 5, "all are")
            assert (state(agent)[REQUESTS], state(agent)[IDLE]) == (5.0, 0.0)
            assert agent.node.in_flight == 5  # and a drain would wait for them
            await asyncio.sleep(0.05)
            go.set()
            assert [(await each)[::2] for each in asked] == [(200, b"done")] * 5
            await until(lambda: state(agent)[REQUESTS] == 0.0, "all have gone")
            assert state(agent)[LATENCY] >= 50.0

    play(scene())


def test_statuses_and_streams_pass_through_and_count_until_they_end():
    async def handle(request):
        if request.path == "/odd":
            return web.Response(status=418, text="tea", headers={"X-Own": "1"})
        made = web.StreamResponse(status=206)
        await made.prepare(request)
        async for piece in request.content.iter_any():
            await made.write(piece.upper())
        return made

    async def scene():
        async with Service(handle) as service, counting(service.address) as (agent, port):
            status, headers, body = await got(port, "/odd")
            assert (status, dict(headers)["X-Own"], body) == (418, "1", b"tea")
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            head = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
            writer.write(head + b"2\r\nab\r\n")
            assert b" 206 " in await reader.readuntil(b"\r\n\r\n")
            assert await reader.readexactly(7) == b"2\r\nAB\r\n"  # before the request has ended
            assert state(agent)[REQUESTS] == 1.0
            writer.write(b"0\r\n\r\n")
            assert await reader.readexactly(5) == b"0\r\n\r\n"
            await until(lambda: state(agent)[REQUESTS] == 0.0, "it has gone")
            writer.close()

    play(scene())


def test_a_client_that_goes_takes_its_request_along():
    async def scene():
        handle, _ = held()
        async with Service(handle) as service, counting(service.address) as (agent, port):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            await until(lambda: state(agent)[REQUESTS] == 1.0, "it is there")
            writer.transport.abort()
            await until(lambda: state(agent)[REQUESTS] == 0.0, "it has gone")

    play(scene())


def test_a_dead_service_gives_502_counts_nothing_and_does_not_look_idle():
    async def scene():
        handle, go = held()
        go.set()
        service = Service(handle)
        await service.__aenter__()
        async with counting(service.address) as (agent, port):
            where = f"static:127.0.0.1:{port} slots=2 push={agent.port}"
            async with picker(where, **LSQ, picker__inputs="push") as serving:
                core = serving.node.core
                await until(lambda: core.caches[0].sequence >= 0, "a status has come")
                await service.__aexit__()
                assert [(await got(port))[0] for _ in range(3)] == [502] * 3
                assert (agent.node._open, agent.node.in_flight) == (0, 0)
                await until(
                    lambda: math.isnan(core.caches[0].source_ms), "nothing is believed of it"
                )
                again = web.ServerRunner(web.Server(handle), shutdown_timeout=0.01)
                await again.setup()
                host, _, number = service.address.rpartition(":")
                await web.TCPSite(again, host, int(number), reuse_address=True).start()
                await until(
                    lambda: not math.isnan(core.caches[0].source_ms), "it is heard of again"
                )
                assert (await got(port))[0] == 200
                await again.cleanup()

    play(scene())


def test_a_service_that_dies_while_it_is_idle_does_not_look_idle():
    async def scene():
        handle, _ = held()
        service = Service(handle)
        await service.__aenter__()
        async with counting(service.address) as (agent, _):
            assert agent.node._readable
            await service.__aexit__()
            await until(lambda: not agent.node._readable, "nobody has asked, and it is known")

    play(scene())


def test_a_service_whose_name_is_none_is_looked_for_again_and_again():
    async def scene():
        log = io.StringIO()
        serving = Serving(config_of("a..b:80"), Log("a", "info", log))
        await serving.start()
        await until(lambda: "UnicodeError" in log.getvalue(), "it is said why there is none")
        assert not serving.node._trying.done()
        await serving.stop(0)

    play(scene())


def test_a_service_that_breaks_off_is_502_or_an_answer_that_is_not_whole():
    async def handle(request):
        if request.path == "/begun":
            made = web.StreamResponse(headers={"Content-Length": "9"})
            await made.prepare(request)
            await made.write(b"half")
        request.transport.abort()
        return web.Response()

    async def scene():
        async with Service(handle) as service, counting(service.address) as (agent, port):
            assert (await got(port))[0] == 502
            try:
                text = await told(port, "GET /begun HTTP/1.1\nHost: a\nConnection: close\n\n")
            except ConnectionResetError:
                text = b""
            head, _, body = text.partition(b"\r\n\r\n")
            assert not text or (b"content-length: 9" in head.lower() and len(body) < 9)
            assert (agent.node._open, agent.node.in_flight) == (0, 0)
            assert agent.node._readable  # it is there, however it behaves

    play(scene())


def test_a_picker_hears_of_requests_that_it_has_not_sent():
    async def scene():
        handle, go = held()
        async with (
            Service(handle) as first,
            Service(handle) as second,
            counting(first.address) as (busy, port),
            counting(second.address) as (idle, other),
        ):
            where = ",".join(
                f"127.0.0.1:{each} slots=2 push={agent.port}"
                for agent, each in ((busy, port), (idle, other))
            )
            async with (
                picker(f"static:{where}", **LSQ, picker__inputs="push") as serving,
                Proxy(serving.address) as proxy,
            ):
                asked = [asyncio.ensure_future(got(port)) for _ in range(6)]
                caches = serving.node.core.caches
                await until(
                    lambda: (
                        all(each.sequence >= 0 for each in caches) and caches[0].numbers[0] == 6.0
                    ),
                    "both are known",
                )
                assert (await proxy.request())[0] == f"127.0.0.1:{other}"
                go.set()
                await asyncio.gather(*asked)

    play(scene())


def test_an_agent_that_stops_waits_for_the_requests_that_pass_through_it():
    async def scene():
        handle, go = held()
        async with Service(handle) as service, counting(service.address) as (agent, port):
            asked = asyncio.ensure_future(got(port))
            await until(lambda: len(service.requests) == 1, "it is there")
            draining = asyncio.ensure_future(agent.drain())
            await until(lambda: agent.node.draining, "it is about to stop")
            assert (await got(port))[0] == 503
            assert not draining.done()
            go.set()
            assert (await asked)[0] == 200
            await draining

    play(scene())


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"agent__url": "http://127.0.0.1:1/metrics"}, 'agent.url: must be ""'),
        ({"http__listen": ""}, "http.listen = '': must be a port in front of agent.service"),
        ({"http__listen": "127.0.0.1:8001"}, "must be a port in front of agent.service"),
        ({"agent__service": "", "agent__url": "http://a/"}, "unless for an EN, or with agent"),
        ({"agent__service": ""}, "agent.url: must be given for an agent"),
    ],
)
def test_what_an_agent_counts_and_reads_is_said_once(fields, why):
    with pytest.raises(InputError, match=why):
        config_of("127.0.0.1:8001", **fields)
