"""Endpoints of a Kubernetes cluster: the EndpointSlices of a service, or the pods of an
InferencePool, listed once and then watched.

The client is as small as that needs: HTTP/1.1 with the service account's token and authority, or in
the clear to a proxy on this machine (`kubectl proxy`).
"""

import asyncio
import contextlib
import json
import os
import re
import ssl
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from cosmo.errors import InputError
from cosmo.files import MOST_KEY, read_bytes
from cosmo.live.readings.pages import PageError, body_of, headers_of

_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_SPEC = re.compile(r"([a-z0-9.-]+)/([a-z0-9.-]+)(?::(\d{1,5}))?(?:@(http://\S+))?")
_POOLS = "/apis/inference.networking.k8s.io/v1/namespaces/{}/inferencepools/{}"
_SLICES = "/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices"
_PODS = "/api/v1/namespaces/{}/pods"
_MOST_BYTES = 16 * 1024 * 1024  # of a list, or of one change
_MOST_NAME = 253  # characters of an object's name, as Kubernetes has it
_PATIENCE_S, _WATCH_S = 10.0, 300  # for an answer; after which the server ends a watch

Addresses = Callable[[Any], list[str]]  # of an object of the API server's


class ApiError(OSError):
    """The API server cannot be asked, or says no."""


class Where(NamedTuple):
    """What to watch: a path, a selector of labels, and the addresses in each object."""

    path: str
    labels: str
    addresses: Addresses


class Api:
    """The API server of a cluster, read over HTTP as a pod or through `kubectl proxy`."""

    def __init__(self, url: str) -> None:
        """`url` is that of a proxy without encryption; empty: as in the environment of pods."""
        self._token, self._ssl = "", None
        if url:
            place = urlsplit(url)
            self._host, self._port = place.hostname or "", place.port or 80
            return
        self._host = os.environ.get("KUBERNETES_SERVICE_HOST", "")
        self._port = int(os.environ.get("KUBERNETES_SERVICE_PORT", "443"))
        if not self._host:
            raise InputError(
                "picker.endpoints: this is no pod of Kubernetes; add @http://127.0.0.1:8001 for"
                " what `kubectl proxy` gives"
            )
        self._ssl = ssl.create_default_context(cafile=str(_ACCOUNT / "ca.crt"))

    async def get(self, path: str) -> Any:
        """The JSON document at a path; ApiError if it is larger than 16 MiB."""
        found = bytearray()
        async with contextlib.aclosing(self._body(path, _PATIENCE_S)) as parts:
            async for part in parts:
                found += part
                if len(found) > _MOST_BYTES:
                    raise ApiError(f"{path}: more than {_MOST_BYTES} bytes")
        return await asyncio.to_thread(json.loads, bytes(found))

    async def lines(self, path: str) -> AsyncGenerator[Any, None]:
        """Documents, one a line, as they come."""
        line = bytearray()
        async with contextlib.aclosing(self._body(path, _WATCH_S + _PATIENCE_S)) as parts:
            async for part in parts:
                *ends, rest = part.split(b"\n")
                for end in ends:
                    line += end
                    if line.strip():
                        yield json.loads(bytes(line))
                    line.clear()
                line += rest
                if len(line) > _MOST_BYTES:
                    raise ApiError(f"{path}: a line of more than {_MOST_BYTES} bytes")

    async def _body(self, path: str, within_s: float) -> AsyncGenerator[bytes, None]:
        """The content of an answer, in small pieces; TimeoutError if it has not ended by then."""
        end_s = asyncio.get_running_loop().time() + within_s
        async with asyncio.timeout(_PATIENCE_S):
            reader, writer = await asyncio.open_connection(self._host, self._port, ssl=self._ssl)
        try:
            if self._ssl is not None:  # tokens are renewed on disk
                self._token = read_bytes(_ACCOUNT / "token", MOST_KEY).decode().strip()
            told = f"GET {path} HTTP/1.1\r\nHost: {self._host}\r\nAccept: application/json\r\n"
            told += f"Authorization: Bearer {self._token}\r\n" if self._token else ""
            writer.write(f"{told}Connection: close\r\n\r\n".encode())
            async with asyncio.timeout(_PATIENCE_S):
                headers = await headers_of(reader)
            async with contextlib.aclosing(body_of(reader, headers)) as parts:
                while True:
                    async with asyncio.timeout_at(end_s):
                        part = await anext(parts, b"")
                    await asyncio.sleep(0)  # others have their turn, however much is there
                    if not part:
                        return
                    yield part
        except PageError as error:
            raise ApiError(f"{path.partition('?')[0]}: {error}") from None
        finally:
            writer.close()


def checked_spec(spec: str) -> tuple[str, str, str | None, str | None]:
    """(namespace, name, port, proxy) of NAMESPACE/NAME[:PORT][@http://PROXY]; else InputError."""
    match = _SPEC.fullmatch(spec)
    if match is None:
        raise InputError(
            f"picker.endpoints: {spec!r} must look like NAMESPACE/NAME:PORT or"
            " NAMESPACE/NAME:PORT@http://127.0.0.1:8001"
        )
    return match[1], match[2], match[3], match[4]


async def watched(spec: str, pool: bool) -> AsyncGenerator[list[str], None]:
    """Addresses of NAMESPACE/NAME[:PORT][@http://PROXY], at once and whenever they change; ends
    when the watch does. InputError for another `spec`; anything if the API answers with nonsense.
    """
    namespace, name, port, url = checked_spec(spec)
    api = Api(url or "")
    where = await (_of_pool if pool else _of_service)(api, namespace, name, port)
    query = f"{where.path}?labelSelector={quote(where.labels)}"
    listed = await api.get(query)
    known = {_name_of(each): where.addresses(each) for each in listed["items"]}
    yield _all(known)
    version = listed["metadata"]["resourceVersion"]
    watch = f"{query}&watch=1&timeoutSeconds={_WATCH_S}&resourceVersion={quote(version)}"
    async with contextlib.aclosing(api.lines(watch)) as changes:
        async for change in changes:
            kind, changed = change["type"], change["object"]
            if kind == "ERROR":  # too old: whoever asks lists again
                return
            if kind not in ("ADDED", "MODIFIED", "DELETED"):
                continue
            name, addresses = _name_of(changed), []
            if kind != "DELETED":
                addresses = where.addresses(changed)
            if addresses == known.get(name, []):  # a pod says often that nothing has changed
                continue
            if addresses:
                known[name] = addresses
            else:
                del known[name]
            yield _all(known)


def _name_of(thing: Any) -> str:
    name = thing["metadata"]["name"]
    if not isinstance(name, str) or len(name) > _MOST_NAME:
        raise ApiError(f"an object whose name is {str(name)[:60]!r}")
    return name


def _all(known: dict[str, list[str]]) -> list[str]:
    return sorted({address for each in known.values() for address in each})


def _with_port(host: str, port: str | int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


async def _of_service(api: Api, namespace: str, name: str, port: str | None) -> Where:
    def addresses(slice_: Any) -> list[str]:
        """Ready ones; the first port of the slice unless another is wanted."""
        ports = [port] if port else [each["port"] for each in slice_.get("ports") or []][:1]
        return [
            _with_port(host, ports[0])
            for each in slice_.get("endpoints") or []
            if ports and (each.get("conditions") or {}).get("ready", True)
            for host in each["addresses"]
        ]

    return Where(_SLICES.format(namespace), f"kubernetes.io/service-name={name}", addresses)


async def _of_pool(api: Api, namespace: str, name: str, port: str | None) -> Where:
    spec = (await api.get(_POOLS.format(namespace, name)))["spec"]
    wanted = port or spec["targetPorts"][0]["number"]
    labels = ",".join(f"{key}={value}" for key, value in spec["selector"]["matchLabels"].items())

    def addresses(pod: Any) -> list[str]:
        status = pod.get("status") or {}
        ready = any(
            each["type"] == "Ready" and each["status"] == "True"
            for each in status.get("conditions") or []
        )
        leaving = "deletionTimestamp" in pod["metadata"]
        return [_with_port(status["podIP"], wanted)] if ready and not leaving else []

    return Where(_PODS.format(namespace), labels, addresses)
