"""Where endpoints are listed: in the configuration, in a file, in DNS, in Kubernetes, by xDS.

A line of a file, and a part of `static:`, is an address and, if need be, `slots=N`, `scrape=PORT`
(of its metrics) and `push=PORT` (of the agent beside it). Whatever cannot be read leaves the
endpoints as they were, and is said.
"""

import asyncio
import contextlib
import ipaddress
import re
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from pathlib import Path

from cosmo.errors import InputError
from cosmo.files import read_bytes
from cosmo.live.config import Tls
from cosmo.live.config_services import PickerGroup
from cosmo.live.picker import eds
from cosmo.live.picker.endpoints import MOST_ENDPOINTS, Endpoint
from cosmo.live.picker.kubernetes import checked_spec, watched

_MOST_BYTES = 1_000_000
_LINE = re.compile(r"(\S+)((?:\s+(?:slots|scrape|push)=[0-9]{1,6})*)")

Found = AsyncGenerator[list[Endpoint] | str, None]  # endpoints as they are, or what went wrong


def source_of(config: PickerGroup, tls: Tls | None = None) -> Found:
    """Yields endpoints, at once and whenever they change, without end; InputError for a source
    that there is not. `tls` has the certificates for a source that is encrypted.
    """
    kind, _, rest = config.endpoints.partition(":")
    if kind == "static":
        return _once(endpoints_of(rest.split(","), config))
    if kind == "file" and rest:
        return _changes(_looks(_FileSource(Path(rest), config).look, config.every_s))
    if kind == "dns" and _is_place(rest):
        return _changes(_looks(lambda: _of_dns(rest, config), config.every_s))
    if kind in ("kubernetes", "inferencepool"):
        checked_spec(rest)
        return _changes(_of_kubernetes(rest, kind == "inferencepool", config))
    if kind == "eds":
        return _changes(_of_eds(eds.where_of(rest, tls), config))
    raise InputError(
        f"picker.endpoints = {config.endpoints!r}: must be static:ADDRESS,…, file:PATH,"
        " dns:NAME:PORT, eds:[https://]HOST:PORT/CLUSTER, kubernetes:NAMESPACE/SERVICE:PORT or"
        " inferencepool:NAMESPACE/NAME"
    )


def listed(config: PickerGroup) -> list[Endpoint]:
    """The endpoints of a list or a file as it is now; InputError if they are elsewhere."""
    kind, _, rest = config.endpoints.partition(":")
    if kind == "static":
        return endpoints_of(rest.split(","), config)
    if kind != "file":
        raise InputError(f"picker.endpoints = {config.endpoints!r}: must be static: or file: here")
    try:
        return _of_file(Path(rest), config)
    except (OSError, ValueError) as error:
        raise InputError(f"picker.endpoints = {config.endpoints!r}: {error}") from None


def _is_place(text: str) -> bool:
    """Whether it is NAME:PORT."""
    match = re.fullmatch(r"[^\s:]+:([0-9]{1,5})", text)
    return match is not None and 0 < int(match[1]) < 65536


def endpoint(
    address: str,
    config: PickerGroup,
    slots: int | None = None,
    scrape: int | None = None,
    push: int | None = None,
) -> Endpoint:
    """One endpoint, its address as proxies write it; InputError if that is not IP:PORT.

    `scrape` and `push` are ports of this endpoint alone: with one of them, its inputs are these.
    """
    host, _, port = address.rpartition(":")
    try:
        ip = str(ipaddress.ip_address(host.removeprefix("[").removesuffix("]")))
    except ValueError:
        ip = ""
    # The zone of an address (%eth0) is any text, and no proxy knows it.
    good = bool(ip) and "%" not in ip and (":" in ip) == host.startswith("[")
    if not good or not _is_place(f"ip:{port}") or slots == 0 or max(scrape or 0, push or 0) > 65535:
        told = address if len(address) < 100 else f"{address[:100]}…"
        raise InputError(f"endpoint {told!r}: must be IP:PORT, with slots of at least 1")
    if scrape is None and push is None:
        scrape = config.scrape_port or int(port) if "scrape" in config.kinds else None
        push = config.push_port if "push" in config.kinds else None
    node = config.endpoint
    if slots is not None:
        node = node.model_copy(update={"slots": slots})
    place = f"[{ip}]:{int(port)}" if ":" in ip else f"{ip}:{int(port)}"
    return Endpoint(place, node, config.link_mbps, config.link_mbps, scrape, push)


def endpoints_of(lines: Iterable[str], config: PickerGroup) -> list[Endpoint]:
    """Endpoints of lines; empty ones and comments are skipped. InputError names a bad line."""
    found: dict[str, Endpoint] = {}
    for text in dict.fromkeys(line.partition("#")[0].strip() for line in lines):
        if not text:
            continue
        match = _LINE.fullmatch(text)
        if match is None:
            raise InputError(f"endpoint {text[:60]!r}: must look like IP:PORT or IP:PORT slots=4")
        words = (word.partition("=") for word in match[2].split())
        made = endpoint(match[1], config, **{name: int(n) for name, _, n in words})
        found[made.address] = made
        if len(found) > MOST_ENDPOINTS:
            raise InputError(f"more than {MOST_ENDPOINTS} endpoints: must be at most that many")
    return list(found.values())


async def _once(endpoints: list[Endpoint]) -> Found:
    yield endpoints
    await asyncio.Event().wait()


async def _changes(source: Found) -> Found:
    """What a source says; what it says once more is not said again."""
    before: list[Endpoint] | str | None = None
    async with contextlib.aclosing(source):
        async for found in source:
            if found != before:
                yield found
                before = found


async def _looks(look: Callable[[], Awaitable[list[Endpoint]]], every_s: float) -> Found:
    """Look again and again."""
    while True:
        try:
            yield sorted(await look(), key=lambda each: each.address)
        except Exception as error:  # whatever a file or a resolver says
            yield f"{type(error).__name__}: {error}"[:200]
        await asyncio.sleep(every_s)


def _of_file(path: Path, config: PickerGroup) -> list[Endpoint]:
    return endpoints_of(read_bytes(path, _MOST_BYTES).decode().splitlines(), config)


class _FileSource:
    """A file that is read again and again, and understood again only if it is another one."""

    def __init__(self, path: Path, config: PickerGroup) -> None:
        self._path, self._config = path, config
        self._before: bytes | None = None
        self._found: list[Endpoint] = []

    async def look(self) -> list[Endpoint]:
        """Its endpoints; whatever is slow about it holds nobody up."""
        content = await asyncio.to_thread(read_bytes, self._path, _MOST_BYTES)
        if content != self._before:
            lines = content.decode().splitlines()
            self._found = await asyncio.to_thread(endpoints_of, lines, self._config)
            self._before = content
        return self._found


async def _of_dns(name: str, config: PickerGroup) -> list[Endpoint]:
    host, _, port = name.rpartition(":")
    found = await asyncio.get_running_loop().getaddrinfo(
        host, int(port), type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP
    )
    hosts = {str(place[0]) for *_, place in found}
    return endpoints_of(
        [f"[{each}]:{port}" if ":" in each else f"{each}:{port}" for each in hosts], config
    )


async def _of_kubernetes(spec: str, pool: bool, config: PickerGroup) -> Found:
    """A watch after another; what goes wrong is said, and tried again."""
    while True:
        try:
            async with contextlib.aclosing(watched(spec, pool)) as changes:
                async for addresses in changes:
                    yield await asyncio.to_thread(endpoints_of, addresses, config)
        except Exception as error:  # an API server may answer with any document
            yield f"{type(error).__name__}: {error}"[:200]
        await asyncio.sleep(config.every_s)


async def _of_eds(where: eds.Where, config: PickerGroup) -> Found:
    """What an xDS server tells; what cannot be used of it is said."""
    lines = eds.watched(where, socket.gethostname(), config.endpoint.slots)
    async with contextlib.aclosing(lines) as changes:
        async for told in changes:
            try:
                yield told if isinstance(told, str) else endpoints_of(told, config)
            except InputError as error:
                yield str(error)[:200]
