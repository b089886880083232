"""An EN that takes HTTP requests: what its clients and the services behind it can rely on."""

import asyncio
import ssl
from collections import Counter

import aiohttp
import pytest
from aiohttp import web

from cosmo.errors import InputError
from cosmo.live import AsyncClient
from live.certificates import Authority
from live.http_scenes import Service, en_config, got, http_en, told
from live.nodes import play, started, until


def named(name):
    async def handle(request):
        return web.Response(text=name)

    return handle


async def echoed(request):
    """Says what it was sent."""
    body = await request.read()
    headers = [[name, value] for name, value in request.headers.items()]
    return web.json_response([request.method, request.raw_path, headers, body.decode()])


def test_a_request_reaches_the_service_as_its_client_has_sent_it():
    async def scene():
        async with Service(echoed) as service, http_en([service.address]) as (_, port):
            path = "/a/../b%2Fc//d;x=1?q=%20+&r=%C3%A4&q=2"
            body = b"x" * 300_000
            async with (
                aiohttp.ClientSession() as session,
                session.put(
                    aiohttp.client.URL(f"http://127.0.0.1:{port}{path}", encoded=True),
                    data=body,
                    headers={
                        "X-Own": "1", "Accept-Encoding": "br", "TE": "trailers",
                        "Connection": "keep-alive, X-Hop", "X-Hop": "2", "Host": "shop.example",
                    },
                ) as answer,
            ):  # fmt: skip
                method, seen, pairs, back = await answer.json()
            headers = {name.lower(): value for name, value in pairs}
            assert (method, seen, back) == ("PUT", path, body.decode())
            assert headers["x-own"] == "1"
            assert headers["host"] == "shop.example"
            assert headers["accept-encoding"] == "br"
            assert headers["content-length"] == str(len(body))
            assert headers["x-forwarded-for"] == "127.0.0.1"
            assert headers["via"] == "1.1 cosmo"
            assert not headers.keys() & {"x-hop", "te", "connection"}

    play(scene())


def test_a_request_without_headers_gets_none_but_those_of_its_way():
    async def scene():
        async with Service(echoed) as service, http_en([service.address]) as (_, port):
            await told(port, "GET /x HTTP/1.1\nHost: a\nConnection: close\n\n")
            [request] = service.requests
            assert {name.lower() for name in request.headers} == {"host", "via", "x-forwarded-for"}

    play(scene())


def test_an_answer_reaches_the_client_as_the_service_has_sent_it():
    async def handle(request):
        raw = b"HTTP/1.1 299 Odd Reason\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nX-Own: 3\r\n"
        raw += (
            b"Connection: X-Hop\r\nX-Hop: 4\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\n"
        )
        request.transport.write(raw + b"abc")
        await asyncio.Event().wait()

    async def scene():
        async with Service(handle) as service, http_en([service.address]) as (_, port):
            text = await told(port, "GET / HTTP/1.1\nHost: a\nConnection: close\n\n")
            head, _, body = text.decode().partition("\r\n\r\n")
            first, *lines = head.split("\r\n")
            headers = [tuple(line.split(": ", 1)) for line in lines]
            assert (first, body) == ("HTTP/1.1 299 Odd Reason", "abc")
            names = {name for name, _ in headers}
            assert [value for name, value in headers if name == "Set-Cookie"] == ["a=1", "b=2"]
            assert dict(headers)["X-Own"] == "3"
            assert dict(headers)["Content-Encoding"] == "gzip"
            assert dict(headers)["Content-Length"] == "3"
            assert not names & {"X-Hop", "Server", "Content-Type"}

    play(scene())


def test_heads_have_lengths_and_no_bodies_and_a_connection_serves_several_requests():
    async def handle(request):
        return web.Response(body=b"12345", headers={"X-Way": request.method})

    async def scene():
        async with Service(handle) as service, http_en([service.address]) as (_, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            for method in ("HEAD", "GET", "HEAD", "GET"):
                writer.write(f"{method} / HTTP/1.1\r\nHost: a\r\n\r\n".encode())
                head = await reader.readuntil(b"\r\n\r\n")
                assert b"Content-Length: 5\r\n" in head
                assert f"X-Way: {method}\r\n".encode() in head
                if method == "GET":
                    assert await reader.readexactly(5) == b"12345"
            writer.close()

    play(scene())


def test_bodies_stream_in_both_directions_while_neither_has_ended():
    async def handle(request):
        made = web.StreamResponse()
        await made.prepare(request)
        async for piece in request.content.iter_any():
            await made.write(piece.upper())
        return made

    async def scene():
        async with Service(handle) as service, http_en([service.address]) as (en, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
            writer.write(b"3\r\nabc\r\n")
            head = await reader.readuntil(b"\r\n\r\n")
            assert b"Transfer-Encoding: chunked" in head
            for sent, back in ((b"", b"ABC"), (b"2\r\nde\r\n", b"DE"), (b"1\r\nf\r\n", b"F")):
                writer.write(sent)
                assert await reader.readuntil(b"\r\n") == f"{len(back):x}\r\n".encode()
                assert await reader.readexactly(len(back) + 2) == back + b"\r\n"
            assert en.node.in_flight == 1
            writer.write(b"0\r\n\r\n")
            assert await reader.readuntil(b"0\r\n\r\n") == b"0\r\n\r\n"
            await until(lambda: en.node.in_flight == 0, "the request has ended")
            assert en.node.counters.get("tasks_total", fate="DONE") == 1
            writer.close()

    play(scene())


def test_the_method_decides_and_busy_services_are_spared():
    async def scene():
        free = asyncio.Event()

        async def busy(request):
            await free.wait()
            return web.Response(text="busy")

        async with (
            Service(busy) as first,
            Service(named("idle")) as second,
            http_en([first.address, second.address]) as (en, port),
        ):
            asking = []
            while not en.node.core.open[0]:  # until a request waits at the busy one
                asking.append(asyncio.create_task(got(port)))
                await until(lambda: asking[-1].done() or en.node.core.open[0], "it was decided")
            for _ in range(10):
                assert (await got(port))[2] == b"idle"
                await until(lambda: not en.node.core.open[1], "the EN knows that it has ended")
            free.set()
            assert [each[2] for each in await asyncio.gather(*asking)][-1] == b"busy"
            await until(lambda: en.node.core.open == [0, 0], "nothing is under way")

    play(scene())


def test_a_service_that_cannot_be_connected_to_costs_nobody_a_request():
    async def scene():
        async with Service(named("alive")) as alive:
            async with Service(named("dead")) as dead:
                address = dead.address
            async with http_en([address, alive.address]) as (en, port):
                for _ in range(20):
                    async with (
                        aiohttp.ClientSession() as session,
                        session.post(f"http://127.0.0.1:{port}/", data=b"x" * 1000) as answer,
                    ):
                        assert (answer.status, await answer.text()) == (200, "alive")
                assert en.node.counters.get("execute_errors_total", code="connect") >= 1
                assert [len(request.headers) for request in alive.requests][1:]
                assert en.node.core.open == [0, 0]

    play(scene())


def test_reject_is_429_none_ready_503_deadline_504_broken_502():
    async def handle(request):
        if request.path == "/broken":
            request.transport.abort()
        if request.path in ("/slow", "/broken"):
            await asyncio.Event().wait()
        return web.Response(text="fast")

    async def scene():
        async with Service(handle) as service:
            fields = {"expected.cycles": [1000.0, 2000.0], "method.use": "priced-books"}
            async with http_en([service.address], fields) as (en, port):
                slow = await got(port, "/slow", x_cosmo_demand_ms="1", grpc_timeout="1S")
                assert (slow[0], slow[2]) == (504, b"the deadline has passed\n")
                shed = await got(port, x_cosmo_deadline_ms="5")
                assert (shed[0], shed[2]) == (429, b"too busy to be in time\n")
                assert len(service.requests) == 1
                assert (await got(port, "/fast"))[0] == 200
                assert (await got(port, "/broken"))[0] == 502
                await until(lambda: en.node.in_flight == 0, "nothing is under way")
                fates = {
                    fate: en.node.counters.get("tasks_total", fate=fate)
                    for fate in ("DONE", "REJECTED", "EXPIRED", "FAILED")
                }
                assert fates == {"DONE": 1, "REJECTED": 1, "EXPIRED": 1, "FAILED": 1}
                assert en.node.core.redirected == 0  # the method never thought of the EN itself
                address = service.address
        async with http_en([address]) as (_, port):
            assert (await got(port))[0] == 503

    play(scene())


def test_a_body_is_never_sent_twice_even_if_its_method_could_be():
    async def handle(request):
        body = await request.read()
        if request.path == "/break":
            request.transport.abort()
        return web.Response(body=body)

    async def scene():
        async with Service(handle) as service, http_en([service.address]) as (_, port):
            async with aiohttp.ClientSession() as session:
                url = f"http://127.0.0.1:{port}"
                async with session.put(f"{url}/", data=b"first") as answer:  # is kept open
                    assert await answer.read() == b"first"
                async with session.put(f"{url}/break", data=b"second") as answer:
                    assert answer.status == 502
                async with session.put(f"{url}/", data=b"third") as answer:
                    assert await answer.read() == b"third"
            assert [each.path for each in service.requests] == ["/", "/break", "/"]

    play(scene())


def test_with_certificates_clients_of_http_must_show_one(tmp_path):
    async def scene():
        authority = Authority(tmp_path / "ca", "ours")
        own = authority.signed("en0")
        allowed, other = authority.signed("shop"), authority.signed("stranger")
        fields = {
            "tls.certificate": str(own[0]), "tls.key": str(own[1]),
            "tls.authority": str(authority.authority), "tls.allowed": ["shop"],
        }  # fmt: skip
        async with (
            Service(named("inside")) as service,
            http_en([service.address], fields) as (_, port),
        ):
            for files, status in ((allowed, 200), (other, 403), (None, None)):
                context = ssl.create_default_context(cafile=str(authority.authority))
                context.check_hostname = False
                if files is not None:
                    context.load_cert_chain(*map(str, files))
                async with aiohttp.ClientSession() as session:
                    try:
                        async with session.get(f"https://127.0.0.1:{port}/", ssl=context) as answer:
                            assert answer.status == status
                    except aiohttp.ClientError:
                        assert status is None

    play(scene())


def test_an_answer_that_has_begun_in_time_is_passed_on_beyond_the_deadline():
    async def scene():
        go_on = asyncio.Event()

        async def handle(request):
            made = web.StreamResponse()
            await made.prepare(request)
            await made.write(b"first ")
            await go_on.wait()
            await made.write(b"last")
            return made

        async with Service(handle) as service, http_en([service.address]) as (en, port):
            async with (
                aiohttp.ClientSession() as session,
                session.get(
                    f"http://127.0.0.1:{port}/", headers={"x-cosmo-deadline-ms": "2000"}
                ) as answer,
            ):
                begun = en.clock.now()
                assert await answer.content.readexactly(6) == b"first "
                await until(lambda: en.clock.now() > begun + 2100.0, "the deadline has passed")
                go_on.set()
                assert await answer.text() == "last"
            await until(lambda: en.node.in_flight == 0, "nothing is under way")
            assert en.node.counters.get("tasks_total", fate="LATE") == 1

    play(scene())


def test_an_answer_that_breaks_off_does_not_look_whole():
    async def handle(request):
        made = web.StreamResponse()
        await made.prepare(request)
        await made.write(b"half")
        request.transport.abort()
        return made

    async def scene():
        async with Service(handle) as service, http_en([service.address]) as (en, port):
            try:
                text = await told(port, "GET / HTTP/1.1\nHost: a\n\n")
            except ConnectionResetError:
                text = b""
            assert not text.endswith(b"0\r\n\r\n")
            await until(lambda: en.node.in_flight == 0, "nothing is under way")
            assert en.node.counters.get("tasks_total", fate="FAILED") == 1

    play(scene())


def test_a_client_that_leaves_takes_its_request_along():
    async def scene():
        left = asyncio.Event()

        async def handle(request):
            try:
                await asyncio.Event().wait()
            finally:
                left.set()

        service = Service(handle)
        async with service, http_en([service.address]) as (en, port):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            await until(lambda: service.requests, "the service works on it")
            writer.transport.abort()
            await until(lambda: en.node.in_flight == 0, "the request has ended")
            assert en.node.core.open == [0]
            assert en.node.counters.get("cancelled_total") == 1
            await until(
                lambda: service.requests[0].transport is None, "the service sees that it has gone"
            )

    play(scene())


def test_a_client_that_stops_reading_gives_its_place_back_and_the_service_is_not_blamed():
    async def scene():
        async def handle(request):
            answer = web.StreamResponse()
            await answer.prepare(request)
            while True:
                await answer.write(bytes(100_000))

        fields = {"limits.receive_s": 0.2}
        async with Service(handle) as service, http_en([service.address], fields) as (en, port):
            _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1)
            writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            await until(lambda: en.node.in_flight == 1, "it is under way")
            await until(lambda: en.node.in_flight == 0, "it has ended")
            assert en.node.core.open == [0]
            assert en.node.core._faults == [0]
            assert en.node.counters.get("cancelled_total") == 1
            writer.transport.abort()

    play(scene())


def test_a_demand_beyond_all_tasks_is_cut():
    async def scene():
        async with Service(echoed) as service, http_en([service.address]) as (en, port):
            core, seen, pick = en.node.core, [], en.node.core.pick
            en.node._cycles_per_ms = 27_000.0
            core.pick = lambda item, allowed: (seen.append(item.cycles), pick(item, allowed))
            assert (await got(port, x_cosmo_demand_ms="1000000000000000"))[0] == 429
            assert seen == [1e15]

    play(scene())


def test_what_a_client_sends_has_bounds():
    async def scene():
        fields = {"limits.input_bytes": 1000, "limits.receive_s": 0.2, "limits.calls": 1}
        async with Service(echoed) as service, http_en([service.address], fields) as (en, port):
            declared = "POST / HTTP/1.1\nHost: a\nContent-Length: 1001\n\n"
            assert (await told(port, declared)).startswith(b"HTTP/1.1 413 ")
            chunked = "POST / HTTP/1.1\nHost: a\nConnection: close\nTransfer-Encoding: chunked\n\n"
            more = chunked + f"3e8\n{'x' * 1000}\n1\nx\n0\n\n"
            assert (await told(port, more)).startswith(b"HTTP/1.1 413 ")
            assert (await told(port, chunked + "3\nabc\n")).startswith(b"HTTP/1.1 408 ")
            for odd in (
                f"GET /{'x' * 20_000} HTTP/1.1\nHost: a\n\n",
                f"GET / HTTP/1.1\nHost: a\nX: {'x' * 20_000}\n\n",
                "GET / HTTP/1.1\nHost: a\nContent-Length: 1\nTransfer-Encoding: chunked\n\n",
                "POST / HTTP/1.1\nHost: a\nContent-Length: -1\n\n",
                "no request\n\n",
            ):
                assert (await told(port, odd))[8:10] == b" 4", odd[:40]
            connect = "CONNECT a:1 HTTP/1.1\nHost: a\n\n"
            assert (await told(port, connect)).startswith(b"HTTP/1.1 501 ")
            socket = "GET / HTTP/1.1\nHost: a\nConnection: upgrade\nUpgrade: websocket\n\n"
            assert (await told(port, socket)).startswith(b"HTTP/1.1 501 ")
            await until(lambda: en.node.in_flight == 0, "nothing is under way")
            # Not a fault of the service.
            assert en.node.core.is_reachable(0)
            assert (await got(port, "/still", x_cosmo_deadline_ms="nonsense"))[0] == 200
            assert en.node.counters.get("odd_headers_total") == 1

    play(scene())


def test_calls_beyond_the_limit_are_turned_away():
    async def scene():
        free = asyncio.Event()

        async def handle(request):
            await free.wait()
            return web.Response()

        fields = {"limits.calls": 2}
        async with Service(handle) as service, http_en([service.address], fields) as (en, port):
            asking = [asyncio.create_task(got(port)) for _ in range(2)]
            await until(lambda: en.node.in_flight == 2, "both are under way")
            assert (await got(port))[0] == 429
            free.set()
            assert [each[0] for each in await asyncio.gather(*asking)] == [200, 200]

    play(scene())


def test_a_draining_en_ends_what_it_has_begun_and_takes_nothing_more():
    async def scene():
        free = asyncio.Event()

        async def handle(request):
            await free.wait()
            return web.Response(text="whole")

        async with Service(handle) as service, http_en([service.address]) as (en, port):
            asking = asyncio.create_task(got(port))
            await until(lambda: en.node.in_flight, "a request is under way")
            draining = asyncio.create_task(en.drain())
            await until(lambda: en.node.draining, "the EN drains")
            assert (await got(port))[0] == 503
            free.set()
            assert (await asking)[2] == b"whole"
            await draining

    play(scene())


def test_tasks_of_the_grpc_protocol_stay_what_they_were_beside_requests():
    async def scene():
        async with (
            started("sn", {"method.use": "in-flight"}) as sn,
            Service(named("http")) as first,
            Service(named("other")) as second,
        ):
            services, daemons = [first.address, second.address], [sn.address]
            async with (
                http_en(services, addresses=daemons) as (en, port),
                AsyncClient(en.address) as client,
            ):
                await until(lambda: en.node.connections[0].connected, "the SN is there")
                where = Counter()
                for _ in range(20):
                    outcome = await client.submit(b"x", deadline_ms=5000.0, cycles=1.0)
                    assert outcome.in_time
                    where[outcome.where] += 1
                    where[(await got(port))[2].decode()] += 1
                # Tasks never go to an SN without a daemon, requests never stay at the EN.
                assert where.keys() <= {"local", "sn0", "http", "other"}
                assert where["http"] + where["other"] == 20
                assert where["http"]
                assert where["other"]

    play(scene())


def test_a_silent_daemon_keeps_requests_away_and_loses_none_that_are_under_way():
    async def scene():
        free = asyncio.Event()

        async def held(request):
            await free.wait()
            return web.Response(text="held")

        async with Service(held) as first, Service(named("other")) as second:
            async with started("sn", {"method.use": "in-flight"}) as sn:
                scene = http_en([first.address, second.address], addresses=[sn.address])
                en, port = await scene.__aenter__()
                await until(lambda: en.node.connections[0].connected, "the SN is there")
                asking = []
                while not en.node.core.open[0]:
                    asking.append(asyncio.create_task(got(port)))
                    await until(lambda: asking[-1].done() or en.node.core.open[0], "decided")
            try:
                await until(lambda: en.node.core.caches[0].silent, "the daemon has gone")
                # The idle service gets all, though the method would try both.
                burst = await asyncio.gather(*(got(port) for _ in range(10)))
                assert {each[2] for each in burst} == {b"other"}
                en.node.abandon(0)  # as when its connection breaks
                assert en.node.core.open[0] == 1
                free.set()
                assert (await asking[-1])[2] == b"held"
                await until(lambda: en.node.in_flight == 0, "nothing is under way")
                assert not en.node.counters.get("reruns_total")
                assert not en.node.counters.get("tasks_total", fate="FAILED")
            finally:
                await scene.__aexit__(None, None, None)

    play(scene())


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"http.listen": ""}, "peers.0.address"),
        ({"http.listen": "127.0.0.1:8001"}, "is the EN itself"),
        ({"role": "picker"}, "picker.endpoints"),
        ({"http.tries": 0}, "http.tries"),
    ],
)
def test_what_cannot_be_served_is_refused_in_one_line(fields, why):
    with pytest.raises(InputError, match=why) as error:
        en_config(["127.0.0.1:8001"], fields)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("method", "body", "times"), [("GET", b"", 2), ("PUT", b"hello", 1), ("POST", b"", 1)]
)
def test_a_body_is_sent_once_even_if_the_service_breaks_off(method, body, times):
    """A second attempt would have nothing left to send: an empty document in place of a whole."""
    seen = []

    async def handle(request):
        seen.append(await request.read())
        request.transport.abort()
        return web.Response()

    async def scene():
        async with Service(handle) as service, http_en([service.address]) as (_, port):
            head = f"{method} / HTTP/1.1\nHost: a\nConnection: close\n"
            if body:
                head += "Transfer-Encoding: chunked\n\n5\nhello\n0\n"
            assert (await told(port, head + "\n")).startswith(b"HTTP/1.1 502 ")
            assert seen == [body] * times

    play(scene())
