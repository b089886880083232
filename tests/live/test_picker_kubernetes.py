"""A picker watches EndpointSlices and InferencePools of an API server, here a fake one."""

import asyncio
import json
import resource
from contextlib import asynccontextmanager

import pytest

from cosmo import InputError
from cosmo.live.picker.kubernetes import watched
from cosmo.live.picker.sources import source_of
from live.nodes import play
from live.picker_scenes import picker_config

SLICES = "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices"
POOL = "/apis/inference.networking.k8s.io/v1/namespaces/shop/inferencepools/llm"
PODS = "/api/v1/namespaces/shop/pods"


def slice_of(name, *hosts, ready=True):
    endpoints = [{"addresses": [host], "conditions": {"ready": ready}} for host in hosts]
    return {"metadata": {"name": name}, "ports": [{"port": 8000}], "endpoints": endpoints}


def pod(name, host, ready="True", **metadata):
    conditions = [{"type": "Ready", "status": ready}]
    return {
        "metadata": {"name": name, **metadata},
        "status": {"podIP": host, "conditions": conditions},
    }


class Api:
    """Answers lists with documents by path, and watches with what is put into `changes`."""

    def __init__(self):
        self.documents, self.changes, self.asked = {}, asyncio.Queue(), []

    async def serve(self, reader, writer):
        try:
            await self._answer(reader, writer)
        finally:
            writer.close()

    async def _answer(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        target = head.split()[1]
        self.asked.append(target)
        document = self.documents.get(target.partition("?")[0])
        if document is None:
            writer.write(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n")
        elif "watch=1" in target:
            writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            while (change := await self.changes.get()) is not None:
                line = json.dumps(change).encode() + b"\n"
                for part in (line[:7], line[7:]):  # chunks end anywhere
                    writer.write(b"%x\r\n%b\r\n" % (len(part), part))
            writer.write(b"0\r\n\r\n")
        else:
            text = json.dumps(document).encode()
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(text), text))


@asynccontextmanager
async def api_server():
    api = Api()
    server = await asyncio.start_server(api.serve, "127.0.0.1", 0)
    api.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield api
    finally:
        await api.changes.put(None)  # a watch that is still open ends
        server.close()
        await asyncio.sleep(0.01)


def listing(*items):
    return {"metadata": {"resourceVersion": "77"}, "items": list(items)}


def test_slices_of_a_service_are_listed_and_followed():
    async def scene():
        async with api_server() as api:
            first = slice_of("a", "10.0.0.1", "10.0.0.2")
            api.documents[SLICES] = listing(first, slice_of("b", "10.0.0.9", ready=False))
            config = picker_config(f"kubernetes:shop/web@{api.url}", picker__every_s=0.01)
            found = source_of(config.picker)

            async def following():
                told = await anext(found)
                return told if isinstance(told, str) else [each.address for each in told]

            assert await following() == ["10.0.0.1:8000", "10.0.0.2:8000"]
            await api.changes.put({"type": "BOOKMARK", "object": {"metadata": {}}})
            added = slice_of("c", "fd00::3")
            await api.changes.put({"type": "ADDED", "object": added})
            assert await following() == ["10.0.0.1:8000", "10.0.0.2:8000", "[fd00::3]:8000"]
            less = slice_of("a", "10.0.0.2")
            await api.changes.put({"type": "MODIFIED", "object": less})
            assert await following() == ["10.0.0.2:8000", "[fd00::3]:8000"]
            await api.changes.put({"type": "DELETED", "object": added})
            assert await following() == ["10.0.0.2:8000"]
            # The watch is too old: all is listed again.
            api.documents[SLICES] = listing(slice_of("d", "10.0.0.7"))
            await api.changes.put({"type": "ERROR", "object": {"code": 410}})
            assert await following() == ["10.0.0.7:8000"]
            assert "labelSelector=kubernetes.io/service-name%3Dweb" in api.asked[0]
            assert "resourceVersion=77" in api.asked[1]
            # An API server that says no leaves the endpoints as they were.
            del api.documents[SLICES]
            await api.changes.put(None)
            assert "status 403" in await following()
            await found.aclose()

    play(scene())


def test_ready_pods_of_an_inference_pool_are_endpoints():
    async def scene():
        async with api_server() as api:
            labels, ports = {"app": "vllm"}, [{"number": 8000}]
            spec = {"selector": {"matchLabels": labels}, "targetPorts": ports}
            api.documents[POOL] = {"spec": spec}
            api.documents[PODS] = listing(
                pod("p0", "10.0.0.1"),
                pod("p1", "10.0.0.2", ready="False"),
                pod("p2", "10.0.0.3", deletionTimestamp="now"),
            )
            found = watched(f"shop/llm@{api.url}", True)
            assert await anext(found) == ["10.0.0.1:8000"]
            await api.changes.put({"type": "MODIFIED", "object": pod("p1", "10.0.0.2")})
            assert await anext(found) == ["10.0.0.1:8000", "10.0.0.2:8000"]
            await found.aclose()
            assert "labelSelector=app%3Dvllm" in api.asked[1]

    play(scene())


OK = b"HTTP/1.1 200 OK\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        OK + b"{",
        b"nonsense\r\n\r\n",
        OK + b"[" * 100_000,
        OK + b"null",
        OK + b'{"items": [1]}',
        OK + b'{"items": [{"metadata": {"name": "a"}, "endpoints": ["b"]}]}',
        OK + b'{"items": [{"metadata": {"name": ["a"]}}]}',
        OK + b'{"items": [{"metadata": {"name": "' + b"a" * 300 + b'"}}]}',
        OK + b'{"items": [], "metadata": {"resourceVersion": 7}}',
        OK + b'{"items": {"a": 1}, "metadata": {"resourceVersion": "7"}}',
        OK + bytes(17 * 1024 * 1024),
        CHUNKED + b"-5\r\nabc",
        CHUNKED + b"xyz\r\nabc",
        CHUNKED + b"5\r\nab",
        CHUNKED + b"a" * 100_000,
        CHUNKED + b"ffffffffffff\r\n" + bytes(17 * 1024 * 1024),
    ],
    ids=range(17),
)
def test_an_api_server_that_cannot_be_understood_is_said(answer):
    async def scene():
        async def serve(reader, writer):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer)
            writer.close()

        before_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        found = source_of(picker_config(f"kubernetes:a/b@{url}").picker)
        told = await anext(found)
        if isinstance(told, list):  # an empty list, and then nonsense
            assert told == []
            told = await anext(found)
        assert isinstance(told, str)
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000 < before_mb + 150
        await found.aclose()
        server.close()
        await asyncio.sleep(0.01)

    play(scene())


def test_an_api_server_that_falls_silent_is_asked_again(monkeypatch):
    monkeypatch.setattr("cosmo.live.picker.kubernetes._PATIENCE_S", 0.1)
    monkeypatch.setattr("cosmo.live.picker.kubernetes._WATCH_S", 0)

    async def scene():
        async with api_server() as api:
            api.documents[SLICES] = listing(slice_of("a", "10.0.0.1"))
            config = picker_config(f"kubernetes:shop/web@{api.url}", picker__every_s=0.01)
            found = source_of(config.picker)
            assert len(await anext(found)) == 1
            api.documents[SLICES] = listing(slice_of("b", "10.0.0.1", "10.0.0.2"))
            told = await anext(found)  # the watch says nothing at all
            while isinstance(told, str):
                told = await anext(found)
            assert len(told) == 2
            await found.aclose()

    play(scene())


def test_pods_that_say_again_what_they_have_said_change_nothing():
    async def scene():
        async with api_server() as api:
            api.documents[SLICES] = listing(slice_of("a", "10.0.0.1"))
            found = watched(f"shop/web@{api.url}", False)
            assert await anext(found) == ["10.0.0.1:8000"]
            same = slice_of("a", "10.0.0.1")
            for _ in range(50):
                await api.changes.put({"type": "MODIFIED", "object": same})
            for k in range(50):
                nothing = slice_of(f"empty{k}")
                await api.changes.put({"type": "ADDED", "object": nothing})
            await api.changes.put({"type": "ADDED", "object": slice_of("b", "10.0.0.2")})
            assert await anext(found) == ["10.0.0.1:8000", "10.0.0.2:8000"]
            await api.changes.put({"type": "MODIFIED", "object": slice_of("a")})
            assert await anext(found) == ["10.0.0.2:8000"]
            await found.aclose()

    play(scene())


@pytest.mark.parametrize(
    ("spec", "why"), [("web", "must look like"), ("shop/web", "this is no pod of Kubernetes")]
)
def test_a_service_that_cannot_be_found_is_refused_in_one_line(spec, why, monkeypatch):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)

    async def scene():
        with pytest.raises(InputError, match=why):
            await anext(watched(spec, False))
        if "look like" in why:  # a node is not even started with it
            with pytest.raises(InputError, match=why):
                source_of(picker_config(f"kubernetes:{spec}").picker)

    play(scene())
