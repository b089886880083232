"""Where endpoints are listed: in the configuration, in a file, in DNS, in Kubernetes.

A line of a file, and a part of `static:`, is an address and, if need be, `slots=N`. Whatever cannot
be read leaves the endpoints as they were, and is said.
"""

import asyncio
import contextlib
import ipaddress
import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from pathlib import Path

from cosmo.errors import InputError
from cosmo.files import read_bytes
from cosmo.live.config import PickerGroup
from cosmo.live.picker.endpoints import Endpoint
from cosmo.live.picker.kubernetes import watched

_MOST_ENDPOINTS = 4096
_MOST_BYTES = 1_000_000
_LINE = re.compile(r"(\S+)(?:\s+slots=(\d{1,6}))?")

Found = AsyncIterator[list[Endpoint] | str]  # endpoints whenever they change, or what went wrong


def source_of(config: PickerGroup) -> Found:
    """Yields endpoints, at once and whenever they change, without end; InputError for a source
    that there is not.
    """
    kind, _, rest = config.endpoints.partition(":")
    if kind == "static":
        return _once(endpoints_of(rest.split(","), config))
    if kind == "file" and rest:

        async def of_file() -> list[Endpoint]:
            return _of_file(Path(rest), config)

        return _changes(of_file, config.every_s)
    if kind == "dns" and re.fullmatch(r"[^\s:]+:\d{1,5}", rest):
        return _changes(lambda: _of_dns(rest, config), config.every_s)
    if kind in ("kubernetes", "inferencepool"):
        return _of_kubernetes(rest, kind == "inferencepool", config)
    raise InputError(
        f"picker.endpoints = {config.endpoints!r}: must be static:ADDRESS,…, file:PATH,"
        " dns:NAME:PORT, kubernetes:NAMESPACE/SERVICE:PORT or inferencepool:NAMESPACE/NAME"
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


def endpoint(address: str, config: PickerGroup, slots: int | None = None) -> Endpoint:
    """One endpoint; InputError if its address is not IP:PORT."""
    host, _, port = address.rpartition(":")
    try:
        ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
        good = port.isdigit() and 0 < int(port) < 65536 and (":" in host) == host.startswith("[")
    except ValueError:
        good = False
    if not good or slots == 0:
        raise InputError(f"endpoint {address!r}: must be IP:PORT, with slots of at least 1")
    shape = config.endpoint.model_dump()
    if slots is not None:
        shape["slots"] = slots
    return Endpoint(address, **shape, up_mbps=config.link_mbps, down_mbps=config.link_mbps)


def endpoints_of(lines: Iterable[str], config: PickerGroup) -> list[Endpoint]:
    """Endpoints of lines; empty ones and comments are skipped. InputError names a bad line."""
    found: dict[str, Endpoint] = {}
    for line in lines:
        text = line.partition("#")[0].strip()
        if not text:
            continue
        match = _LINE.fullmatch(text)
        if match is None:
            raise InputError(f"endpoint {text[:60]!r}: must look like IP:PORT or IP:PORT slots=4")
        slots = int(match[2]) if match[2] else None
        found[match[1]] = endpoint(match[1], config, slots)
    if len(found) > _MOST_ENDPOINTS:
        raise InputError(f"{len(found)} endpoints: must be at most {_MOST_ENDPOINTS}")
    return list(found.values())


async def _once(endpoints: list[Endpoint]) -> Found:
    yield endpoints
    await asyncio.Event().wait()


async def _changes(look: Callable[[], Awaitable[list[Endpoint]]], every_s: float) -> Found:
    """Look again and again; what is seen once more is not said again."""
    before: list[Endpoint] | str | None = None
    while True:
        try:
            found: list[Endpoint] | str = sorted(await look(), key=lambda each: each.address)
        except (InputError, OSError, ValueError) as error:
            found = f"{type(error).__name__}: {error}"[:200]
        if found != before:
            yield found
            before = found
        await asyncio.sleep(every_s)


def _of_file(path: Path, config: PickerGroup) -> list[Endpoint]:
    return endpoints_of(read_bytes(path, _MOST_BYTES).decode().splitlines(), config)


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
    before: list[Endpoint] | str | None = None
    while True:
        try:
            async with contextlib.aclosing(watched(spec, pool)) as changes:
                async for addresses in changes:
                    found: list[Endpoint] | str = endpoints_of(addresses, config)
                    if found != before:
                        yield found
                        before = found
        except (InputError, OSError, ValueError, LookupError, TypeError) as error:
            found = f"{type(error).__name__}: {error}"[:200]
            if found != before:
                yield found
                before = found
        await asyncio.sleep(config.every_s)
