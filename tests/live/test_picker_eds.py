"""Endpoints from an xDS server: what it tells is obeyed, refused aloud, and outlives it."""

import pytest

from cosmo.errors import InputError
from cosmo.live.picker import eds
from cosmo.live.picker.envoy_config import envoy_of
from cosmo.live.picker.sources import endpoints_of, source_of
from live.nodes import play, until
from live.picker_scenes import Proxy, picker, picker_config
from live.xds_scenes import XdsServer, assignment

UNKNOWN, HEALTHY, UNHEALTHY, DRAINING, TIMEOUT, DEGRADED = range(6)


def at(number, health=HEALTHY, weight=0, priority=0):
    return f"10.0.0.{number}:80", health, weight, priority


def present(serving):
    return {
        place.endpoint.address: place.endpoint.node.slots
        for place in serving.node.core.places
        if place.present
    }


async def taken(serving, *numbers):
    wanted = {f"10.0.0.{number}:80" for number in numbers}
    await until(lambda: set(present(serving)) == wanted, f"endpoints {numbers}")


def test_a_picker_chooses_from_what_the_server_tells_and_acknowledges_it():
    async def scene():
        async with XdsServer().up() as xds:
            config = f"eds:127.0.0.1:{xds.port}/shop"
            async with picker_not_synced(config) as serving, Proxy(serving.address) as proxy:
                await until(lambda: xds.asked, "the picker asks")
                [first] = xds.asked
                assert list(first.resource_names) == ["shop"]
                assert (first.type_url, first.version_info) == (eds.TYPE, "")
                assert first.node.id
                assert await proxy.request() == 503
                said = await xds.say(assignment("shop", at(1), at(2, UNKNOWN)))
                assert (said.version_info, said.response_nonce) == ("v1", "n1")
                assert not said.HasField("error_detail")
                await taken(serving, 1, 2)
                assert set(await proxy.request()) == {"10.0.0.1:80", "10.0.0.2:80"}
                await xds.say(assignment("shop", at(2), at(3)))
                await taken(serving, 2, 3)
                # A response without the cluster says nothing of it; an empty one does.
                await xds.say(assignment("other", at(9)))
                said = await xds.say()
                assert said.version_info == "v4"
                assert set(present(serving)) == {"10.0.0.2:80", "10.0.0.3:80"}
                await xds.say(assignment("shop"))
                await taken(serving)
                assert await proxy.request() == 503

    play(scene())


def picker_not_synced(endpoints):
    return picker(endpoints, synced=False)


def test_what_cannot_be_taken_is_refused_with_the_reason_and_changes_nothing():
    async def scene():
        async with (
            XdsServer().up() as xds,
            picker_not_synced(f"eds:127.0.0.1:{xds.port}/shop") as serving,
        ):
            await until(lambda: xds.asked, "the picker asks")
            await xds.say(assignment("shop", at(1)))
            await taken(serving, 1)
            many = assignment("shop", at(2))
            [one] = many.endpoints[0].lb_endpoints
            many.endpoints[0].lb_endpoints.extend([one] * 5000)
            name = assignment("shop", ("some.name:80", HEALTHY, 0, 0))
            no_port = assignment("shop", ("10.0.0.2:0", HEALTHY, 0, 0))
            long = assignment("shop", ("x" * 10**6 + ":80", HEALTHY, 0, 0))
            for odd, why in (
                (b"\xff\xff", "ClusterLoadAssignment"),
                (name, "some.name"),
                (no_port, "port"),
                (long, "xxx"),
                (many, "at most 4096"),
            ):
                said = await xds.say(odd)
                assert said.version_info == "v1"  # the last that was taken
                assert said.error_detail.code
                assert why in said.error_detail.message
                assert len(said.error_detail.message) <= 200
            said = await xds.say(type_url="type.googleapis.com/other")
            assert said.error_detail.code
            assert set(present(serving)) == {"10.0.0.1:80"}
            said = await xds.say(assignment("shop", at(4)))
            assert not said.HasField("error_detail")
            await taken(serving, 4)

    play(scene())


def test_unhealthy_endpoints_are_left_out_and_weights_are_slots():
    told = assignment(
        "shop", at(1, weight=10), at(2, weight=30), at(3, UNHEALTHY), at(4, DRAINING),
        at(5, TIMEOUT), at(6, DEGRADED), at(7, UNKNOWN), at(8, priority=1),
    )  # fmt: skip
    found = eds._usable(told)
    assert eds.lines_of(found, 2) == [
        "10.0.0.1:80 slots=2", "10.0.0.2:80 slots=6", "10.0.0.7:80 slots=2",
    ]  # fmt: skip
    # The next priority if the first has nobody, degraded ones if no priority has.
    for told, address in (
        (assignment("shop", at(3, UNHEALTHY), at(8, priority=1)), "10.0.0.8:80"),
        (assignment("shop", at(3, UNHEALTHY), at(6, DEGRADED)), "10.0.0.6:80"),
    ):
        assert [each.address for each in eds._usable(told)] == [address]


def test_endpoints_outlive_their_server_and_follow_it_when_it_is_back():
    async def scene():
        xds = XdsServer()
        async with xds.up():
            port = xds.port
            serving_at = picker_not_synced(f"eds:127.0.0.1:{port}/shop")
            serving = await serving_at.__aenter__()
            try:
                await until(lambda: xds.asked, "the picker asks")
                await xds.say(assignment("shop", at(1)))
                await taken(serving, 1)
            except BaseException:
                await serving_at.__aexit__(None, None, None)
                raise
        try:
            heard = len(xds.asked)
            assert set(present(serving)) == {"10.0.0.1:80"}
            async with xds.up(port):
                await until(lambda: len(xds.asked) > heard, "the picker asks again")
                assert xds.asked[-1].version_info == ""
                assert set(present(serving)) == {"10.0.0.1:80"}
                await xds.say(assignment("shop", at(2)))
                await taken(serving, 2)
        finally:
            await serving_at.__aexit__(None, None, None)

    play(scene())


@pytest.mark.parametrize("spec", ["eds:", "eds:host/shop", "eds:host:99999/shop", "eds:host:1"])
def test_a_server_that_cannot_be_asked_is_refused_at_the_door(spec):
    with pytest.raises(InputError, match="HOST:PORT/CLUSTER"):
        source_of(picker_config(spec).picker)


def test_an_envoy_of_such_a_picker_asks_the_same_server():
    made = envoy_of(picker_config("eds:127.0.0.1:18000/shop"), "127.0.0.1:8080")
    clusters = {each["name"]: each for each in made["static_resources"]["clusters"]}
    assert clusters["services"]["eds_cluster_config"]["service_name"] == "shop"
    assert clusters["xds"]["load_assignment"]["endpoints"]


def test_every_weight_that_is_taken_can_be_said_as_slots():
    found = [eds.Weighed("10.0.0.1:80", 1), eds.Weighed("10.0.0.2:80", 1_000_000)]
    ends = endpoints_of(eds.lines_of(found, 8), picker_config().picker)
    assert [each.node.slots for each in ends] == [8, 999_999]


def test_an_address_with_a_zone_is_refused_before_it_is_acknowledged():
    told = eds.ClusterLoadAssignment(cluster_name="c")
    place = told.endpoints.add().lb_endpoints.add().endpoint.address.socket_address
    place.address, place.port_value = "fe80::1%eth0", 80
    with pytest.raises(ValueError, match="zone"):
        eds._usable(told)
