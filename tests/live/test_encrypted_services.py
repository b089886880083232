"""Pages of metrics and xDS servers behind TLS, with the certificates of the node that asks."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import grpc
import pytest

from cosmo.errors import InputError
from cosmo.live.picker.envoy_config import envoy_of
from cosmo.live.picker.sources import source_of
from live.certificates import Authority
from live.nodes import play, until
from live.picker_scenes import picker, picker_config
from live.services import Service, services, vllm_page
from live.test_picker_eds import at, taken
from live.test_picker_statuses import LSQ, SOON, agent_config, agents, counted, knows, listed
from live.xds_scenes import XdsServer, assignment


@pytest.fixture
def ours(tmp_path):
    return Authority(tmp_path / "ours", "ours")


@pytest.fixture
def theirs(tmp_path):
    return Authority(tmp_path / "theirs", "theirs")


SCRAPED = {"picker__inputs": "scrape", "picker__scrape_tls": True, **LSQ, **SOON}


@pytest.mark.parametrize(
    ("certified", "wanted"), [("127.0.0.1", ""), ("services", "services")], ids=["by IP", "by name"]
)
def test_a_picker_reads_metrics_of_services_with_a_certificate_of_the_authority(
    ours, certified, wanted
):
    async def scene():
        told = {**SCRAPED, "picker__service_name": wanted, **ours.fields("picker0")}
        async with services(1, ours.server(certified)) as [service]:
            service.page = vllm_page(3)
            async with picker(listed([service]), **told) as serving:
                await until(lambda: knows(serving, service, 3.0), "it is known")

    play(scene())


@pytest.mark.parametrize("kind", ["of another authority", "of another name", "in the clear"])
def test_a_service_that_is_not_who_it_should_be_is_not_believed(ours, theirs, kind):
    encrypted = {
        "of another authority": theirs.server("127.0.0.1"), "of another name": ours.server("else"),
        "in the clear": None,
    }[kind]  # fmt: skip

    async def scene():
        async with services(1, encrypted) as [service]:
            service.page = vllm_page(3)
            async with picker(listed([service]), **SCRAPED, **ours.fields("picker0")) as serving:
                failed = {"sn": service.address, "result": "failed"}
                await until(lambda: counted(serving, "scrapes_total", **failed) >= 2, "it is asked")
                assert counted(serving, "scrapes_total", sn=service.address, result="read") == 0
                assert service.asked == 0 or kind == "in the clear"

    play(scene())


def test_a_service_sees_the_certificate_of_who_asks(ours, theirs):
    async def scene():
        async with services(1, theirs.server("127.0.0.1")) as [service]:
            told = {**ours.fields("picker0"), "tls__authority": str(theirs.authority)}
            async with picker(listed([service]), **SCRAPED, **told) as serving:
                failed = {"sn": service.address, "result": "failed"}
                await until(lambda: counted(serving, "scrapes_total", **failed) >= 2, "it is asked")
                assert service.asked == 0

    play(scene())


def test_an_agent_reads_an_encrypted_page(ours):
    async def scene():
        async with services(1, ours.server("localhost")) as [service]:
            told = {"agent__url": f"https://localhost:{service.port}/metrics"}
            async with agents([service], **told, **ours.fields("agent0")) as [agent]:
                await until(lambda: counted(agent, "metric_reads_total", result="read"), "a page")

    play(scene())


def credentials(authority, name):
    certificate, key = (file.read_bytes() for file in authority.signed(name))
    return grpc.ssl_server_credentials(
        [(key, certificate)], authority.authority.read_bytes(), require_client_auth=True
    )


def test_endpoints_come_from_an_encrypted_xds_server(ours):
    async def scene():
        async with XdsServer(credentials(ours, "localhost")).up() as xds:
            where = f"eds:https://localhost:{xds.port}/shop"
            async with picker(where, synced=False, **ours.fields("picker0")) as serving:
                await until(lambda: xds.asked, "the picker asks")
                await xds.say(assignment("shop", at(1), at(2)))
                await taken(serving, 1, 2)

    play(scene())


@pytest.mark.parametrize("scheme", ["", "https://"])
def test_an_xds_server_of_another_authority_is_not_asked(ours, theirs, scheme):
    """Nor one that is encrypted, by a picker that is told to ask in the clear."""

    async def scene():
        async with XdsServer(credentials(theirs, "localhost")).up() as xds:
            where = f"eds:{scheme}localhost:{xds.port}/shop"
            async with picker(where, synced=False, **ours.fields("picker0")) as serving:
                log = serving.log._stream
                await until(lambda: "endpoints are not known" in log.getvalue(), "that is said")
                await asyncio.sleep(0.05)
                assert not xds.asked

    play(scene())


def test_envoy_asks_the_xds_server_as_the_picker_does(ours):
    told = envoy_of(
        picker_config("eds:https://xds.internal:18000/web", **ours.fields("picker0")),
        "127.0.0.1:8080",
    )
    clusters = {each["name"]: each for each in told["static_resources"]["clusters"]}
    tls = clusters["xds"]["transport_socket"]["typed_config"]
    assert tls["sni"] == "xds.internal"
    assert tls["common_tls_context"]["validation_context"] == {
        "trusted_ca": {"filename": str(ours.authority)},
        "match_typed_subject_alt_names": [
            {"san_type": "DNS", "matcher": {"exact": "xds.internal"}}
        ],
    }
    by_ip = envoy_of(
        picker_config("eds:https://[::1]:18000/web", **ours.fields("picker0")), "127.0.0.1:8080"
    )
    [xds] = [each for each in by_ip["static_resources"]["clusters"] if each["name"] == "xds"]
    common = xds["transport_socket"]["typed_config"]["common_tls_context"]
    assert common["validation_context"]["match_typed_subject_alt_names"] == [
        {"san_type": "IP_ADDRESS", "matcher": {"exact": "::1"}}
    ]
    plain = envoy_of(picker_config("eds:xds.internal:18000/web"), "127.0.0.1:8080")
    assert not any("transport_socket" in each for each in plain["static_resources"]["clusters"])


def test_a_source_that_is_encrypted_is_refused_without_certificates():
    told = picker_config("eds:xds.internal:18000/web")
    wanted = "eds:https://xds.internal:18000/web"
    group = told.picker.model_copy(update={"endpoints": wanted})
    for tls in (None, told.tls):
        with pytest.raises(InputError) as refused:
            source_of(group, tls)
        assert str(refused.value) == (
            "tls.certificate = '': must be given, as picker.endpoints ="
            f" {wanted!r} asks for encryption"
        )


def test_an_xds_server_is_asked_again_after_certificates_were_away(ours):
    """As while they are replaced."""

    async def scene():
        told = ours.fields("picker0")
        key = Path(told["tls__key"])
        xds = XdsServer(credentials(ours, "localhost"))
        async with AsyncExitStack() as stack:
            async with xds.up():
                port = xds.port
                where = f"eds:https://localhost:{port}/shop"
                serving = await stack.enter_async_context(picker(where, synced=False, **told))
                await until(lambda: xds.asked, "the picker asks")
                away = key.rename(key.with_suffix(".away"))
            log, asked = serving.log._stream, len(xds.asked)
            await until(lambda: "tls.key" in log.getvalue(), "that is said")
            away.rename(key)
            async with xds.up(port):
                await until(lambda: len(xds.asked) > asked, "the picker asks again")

    play(scene())


@pytest.mark.parametrize(
    ("made", "name"),
    [
        (lambda: picker_config("eds:https://xds.internal:18000/web"), "picker.endpoints"),
        (lambda: picker_config(picker__scrape_tls=True), "picker.scrape_tls"),
        (lambda: agent_config(Service(), agent__url="https://localhost/metrics"), "agent.url"),
    ],
)
def test_what_is_encrypted_needs_certificates(made, name):
    with pytest.raises(InputError, match=f"tls.certificate: must be given, as {name}"):
        made()
