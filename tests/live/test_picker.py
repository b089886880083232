"""A picker keeps the Endpoint Picker Protocol, asked by a gRPC client as Envoy asks it."""

import asyncio
from collections import Counter

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from cosmo import InputError
from cosmo.live.picker import ext_proc
from live.certificates import Authority
from live.nodes import play, until
from live.picker_scenes import (
    Proxy,
    answered,
    destination,
    headers,
    picker,
    picker_config,
    quiet,
    with_subset,
)

ALL = {"10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80"}


def test_an_answer_ranks_endpoints_and_requests_spread_over_them():
    async def scene():
        async with picker() as serving, Proxy(serving.address) as proxy:
            asked = [await proxy.ask(headers(host="a")) for _ in range(6)]
            ranked = [destination(answer) for _, answer in asked]
            assert all(set(each) == ALL for each in ranked)
            # None has ended: each endpoint has two requests in flight.
            assert Counter(each[0] for each in ranked) == dict.fromkeys(ALL, 2)
            for (stream, _), named in zip(asked, ranked, strict=True):
                await stream.write(answered(named[0]))
                await stream.done_writing()
            await quiet(serving)
            assert serving.node.core.open == [0, 0, 0]
            assert serving.node.counters.get("tasks_total", fate="DONE") == 6

    play(scene())


def test_in_flight_requests_steer_the_next_ones():
    async def scene():
        async with picker() as serving, Proxy(serving.address) as proxy:
            held, _ = await proxy.ask(with_subset(headers(), "10.0.0.2:80"))
            firsts = [(await proxy.request())[0] for _ in range(12)]
            assert set(firsts) == {"10.0.0.1:80", "10.0.0.3:80"}
            held.cancel()
            await quiet(serving)
            assert serving.node.counters.get("cancelled_total") == 1
            assert serving.node.core.open == [0, 0, 0]

    play(scene())


def test_a_subset_is_kept_and_an_empty_or_foreign_one_is_503():
    async def scene():
        async with picker() as serving, Proxy(serving.address) as proxy:
            for _ in range(5):
                told = with_subset(headers(), "10.0.0.3:80", "9.9.9.9:9")
                stream, answer = await proxy.ask(told)
                assert destination(answer) == ["10.0.0.3:80"]
                stream.cancel()
            for subset in ([], ["9.9.9.9:9"]):
                stream, answer = await proxy.ask(with_subset(headers(), *subset))
                assert answer.immediate_response.status.code == 503
                stream.cancel()
            await quiet(serving)

    play(scene())


def test_metadata_of_others_is_no_subset():
    """Their namespace with our key, and our namespace with their key."""
    for namespace, key in (("others", ext_proc.SUBSET), (ext_proc.SUBSET_NAMESPACE, "theirs")):
        asking = headers()
        entry = asking.metadata_context.filter_metadata.add(key=namespace)
        entry.value.fields[key].string_value = "10.0.0.9:80"
        assert ext_proc.subset_of(asking) is None
    both = with_subset(asking, "10.0.0.3:80")  # after the entry that is none
    assert ext_proc.subset_of(both) == {"10.0.0.3:80"}


def test_no_endpoints_are_503_and_not_ready_and_late_ones_are_429_if_the_picker_sheds(tmp_path):
    async def scene():
        file = tmp_path / "endpoints"
        file.write_text("# none yet\n")
        shed = {"picker__shed": True, "expected__cycles": [1000.0, 3000.0]}
        async with (
            picker(f"file:{file}", picker__every_s=0.02, **shed) as serving,
            Proxy(serving.address) as proxy,
        ):
            check = health_pb2_grpc.HealthStub(proxy.channel).Check

            async def state(name):
                return (await check(health_pb2.HealthCheckRequest(service=name))).status

            assert await proxy.request() == 503
            assert [await state(name) for name in ("liveness", "readiness")] == [1, 2]
            file.write_text("10.0.0.1:80\n10.0.0.2:80 slots=4\n")
            await until(lambda: serving.node.ready, "endpoints are there")
            named = ["", "liveness", "readiness", ext_proc.SERVICE]
            assert [await state(name) for name in named] == [1, 1, 1, 1]
            with pytest.raises(grpc.aio.AioRpcError) as unknown:
                await state("elsewhere")
            assert unknown.value.code() == grpc.StatusCode.NOT_FOUND
            assert await proxy.request(x_cosmo_deadline_ms=10) == 429
            assert len(await proxy.request(x_cosmo_deadline_ms=60_000)) == 2
            await quiet(serving)

    play(scene())


@pytest.mark.parametrize("method", ["random", "all-local", "power-of-d", "self-tracking"])
def test_any_method_decides_and_what_it_cannot_mean_goes_to_the_least_busy(method):
    async def scene():
        async with picker(method__use=method) as serving, Proxy(serving.address) as proxy:
            for _ in range(20):
                assert (await proxy.request(x_cosmo_demand_ms=5))[0] in ALL
            assert serving.node.core.runner.name == method
            assert (serving.node.core.redirected == 20) == (method == "all-local")
            await quiet(serving)

    play(scene())


def test_bodies_of_a_full_duplex_stream_come_back_and_the_answers_end_ends_the_request():
    async def scene():
        async with picker() as serving, Proxy(serving.address) as proxy:
            first = headers(end=False)
            first.protocol_config.request_body_mode = 4
            first.protocol_config.response_body_mode = 4
            stream, answer = await proxy.ask(first)
            named = destination(answer)
            for phase in ("request_body", "response_body"):
                if phase == "response_body":
                    await stream.write(answered(named[0], end=False))
                    assert (await stream.read()).HasField("response_headers")
                for number, body in enumerate((b"x" * 70_000, b"y" * 300_000, b"")):
                    part = ext_proc.ProcessingRequest()
                    getattr(part, phase).body = body
                    getattr(part, phase).end_of_stream = number == 2
                    assert serving.node.in_flight == 1
                    await stream.write(part)
                    back = getattr(await stream.read(), phase).response.body_mutation
                    assert back.streamed_response.body == body
                    assert back.streamed_response.end_of_stream == (number == 2)
            assert serving.node.in_flight == 0
            await stream.done_writing()
            assert await stream.code() == grpc.StatusCode.OK

    play(scene())


def test_trailers_are_answered_and_end_a_request_whose_body_has_no_end():
    async def scene():
        async with picker() as serving, Proxy(serving.address) as proxy:
            first = headers(end=False)
            first.protocol_config.response_body_mode = 4
            stream, answer = await proxy.ask(first)
            await stream.write(answered(destination(answer)[0], end=False))
            await stream.read()
            for phase in ("request_trailers", "response_trailers"):
                assert serving.node.in_flight == 1
                part = ext_proc.ProcessingRequest()
                getattr(part, phase).SetInParent()
                await stream.write(part)
                assert (await stream.read()).HasField(phase)
            assert serving.node.in_flight == 0

    play(scene())


def test_a_dead_endpoint_is_left_alone_at_once_and_tried_again_later():
    async def scene():
        async with picker() as serving, Proxy(serving.address) as proxy:
            core = serving.node.core
            [dead, second, *_] = await proxy.request()
            while (await proxy.request(served=second))[0] != dead:  # until the dead one is chosen
                pass
            assert serving.node.counters.get("served_elsewhere_total") >= 1
            firsts = Counter()
            while not core.is_reachable(serving.node._columns[dead]):
                firsts[(await proxy.request())[0]] += 1
            assert firsts[dead] <= 1  # the one that was decided while it came back
            await until(lambda: not core._away_until, "it may be tried again")

    play(scene())


def test_an_endpoint_with_five_errors_in_a_row_is_left_alone():
    async def scene():
        async with picker() as serving, Proxy(serving.address) as proxy:
            node = serving.node
            for number in range(5):
                stream, answer = await proxy.ask(with_subset(headers(), "10.0.0.1:80"))
                await stream.write(answered("10.0.0.1:80", 503, "via_upstream"))
                await stream.read()
                assert node.core.is_reachable(node._columns["10.0.0.1:80"]) == (number < 4)
                stream.cancel()
            # If all are left alone, none is worse than the others.
            stream, answer = await proxy.ask(with_subset(headers(), "10.0.0.1:80"))
            assert destination(answer) == ["10.0.0.1:80"]
            stream.cancel()

    play(scene())


def test_an_observing_proxy_gets_no_answers():
    async def scene():
        async with picker() as serving, Proxy(serving.address) as proxy:
            stream = proxy.stream()
            first = headers()
            first.observability_mode = True
            await stream.write(first)
            await until(lambda: serving.node.in_flight == 1, "it was decided on")
            await stream.write(answered("10.0.0.1:80"))
            await stream.done_writing()
            assert await stream.read() is grpc.aio.EOF
            await quiet(serving)

    play(scene())


def test_where_an_observing_proxy_sends_its_requests_is_no_fault_of_others():
    async def scene():
        async with picker() as serving, Proxy(serving.address) as proxy:
            node = serving.node
            for _ in range(12):
                await proxy.show(answered("10.0.0.1:80"))
            for _ in range(3):  # by nobody: the proxy could not connect to whom it had chosen
                await proxy.show(answered("", 503, "upstream_reset{connection_failure}"))
            await quiet(serving)
            assert node.counters.get("tasks_total", fate="DONE") == 15
            assert node.counters.get("served_elsewhere_total") == 0
            assert all(node.core.is_reachable(column) for column in range(3))

    play(scene())


@pytest.mark.parametrize("name", ["power-of-d", "prequal", "cosmo-next", "jbt"])
def test_a_shadow_without_its_statuses_decides_as_if_none_had_come(name):
    async def scene():
        async with picker(method__shadow=name) as serving, Proxy(serving.address) as proxy:
            for _ in range(5):
                await proxy.request()
            counted = serving.node.counters
            asked = lambda: sum(counted.get("shadow_total", agrees=a) for a in ("true", "false"))  # noqa: E731
            await until(lambda: asked() == 5, "it was asked")
            assert counted.get("shadow_faults_total") == 0
            assert "none will come" in serving.log._stream.getvalue()

    play(scene())


def test_a_draining_picker_takes_no_stream_and_waits_for_those_that_are_open():
    async def scene():
        async with picker() as serving, Proxy(serving.address) as proxy:
            stream, answer = await proxy.ask(headers())
            draining = asyncio.create_task(serving.drain())
            await until(lambda: serving.node.draining, "it drains")
            assert not draining.done()
            await stream.write(answered(destination(answer)[0]))
            assert (await stream.read()).HasField("response_headers")
            await stream.done_writing()
            await draining
            assert serving.node.health()["readiness"] == 2

    play(scene())


def test_certificates_decide_who_may_ask(tmp_path):
    async def scene():
        authority = Authority(tmp_path / "a", "ours")
        certificate, key = authority.signed("localhost")
        own, own_key = authority.signed("envoy")
        other, other_key = authority.signed("somebody")
        tls = {
            "tls__certificate": str(certificate), "tls__key": str(key),
            "tls__authority": str(authority.authority), "tls__allowed": ["envoy"],
        }  # fmt: skip

        def channel(address, certificate, key):
            credentials = grpc.ssl_channel_credentials(
                authority.authority.read_bytes(), key.read_bytes(), certificate.read_bytes()
            )
            options = [("grpc.ssl_target_name_override", "localhost")]
            return grpc.aio.secure_channel(address, credentials, options)

        async with picker(**tls) as serving:
            address = serving.address
            async with Proxy(address, channel(address, own, own_key)) as proxy:
                assert len(await proxy.request()) == 3
            async with Proxy(address, channel(address, other, other_key)) as proxy:
                with pytest.raises(grpc.aio.AioRpcError):
                    await proxy.request()
            async with Proxy(address) as proxy:
                with pytest.raises(grpc.aio.AioRpcError):
                    await proxy.request()

    play(scene())


@pytest.mark.parametrize(
    ("endpoints", "why"),
    [
        ("static:nowhere:80", "endpoint 'nowhere:80': must be IP:PORT"),
        ("static:10.0.0.1:80 slots=0", "with slots of at least 1"),
        ("magic:10.0.0.1:80", "must be static:ADDRESS"),
        ("static:10.0.0.1:80 slots=x", "must look like IP:PORT"),
    ],
)
def test_bad_endpoints_are_refused_in_one_line(endpoints, why):
    async def scene():
        with pytest.raises(InputError, match=why):
            async with picker(endpoints):
                pass

    play(scene())


def test_a_picker_has_endpoints_and_no_peers():
    with pytest.raises(InputError, match=r"picker\.endpoints: must be given for a picker"):
        picker_config("")
    with pytest.raises(InputError, match="peers: must be empty for a picker or an agent"):
        picker_config(peers=[{"name": "sn0", "address": "10.0.0.1:1", "up_mbps": 1.0,
                              "down_mbps": 1.0, "slots": 1, "cycles_per_ms": 1.0,
                              "storage_bytes": 1.0, "queue_capacity": 1}])  # fmt: skip
