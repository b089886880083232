"""Endpoints from Envoy's endpoint discovery service: the state of the world, over one stream.

Every response is acknowledged, or refused with the reason; then the endpoints stay as they were.
"""

import asyncio
import contextlib
import ipaddress
import re
from collections.abc import AsyncGenerator, Iterator
from typing import Any, NamedTuple

import grpc

from cosmo.errors import InputError
from cosmo.live import wire
from cosmo.live.config import Tls
from cosmo.live.peers import CHANNEL_OPTIONS, channel_credentials
from cosmo.live.picker.endpoints import MOST_ENDPOINTS

STREAM = "/envoy.service.endpoint.v3.EndpointDiscoveryService/StreamEndpoints"
TYPE = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
_SPEC = re.compile(r"(https://)?([^\s/]+:\d{1,5})/(\S{1,200})")
_MOST_BYTES = 16 * 1024 * 1024  # of a response
_MOST_WEIGHT = 1_000_000
_MOST_SLOTS = 999_999  # that a line of endpoints can say
_LONGEST_S = 30.0  # between two attempts
# gRPC's servers hang up on clients that ask more often than every 5 min whether they are alive.
_OPTIONS = [
    *(each for each in CHANNEL_OPTIONS if "keepalive" not in each[0]),
    ("grpc.keepalive_time_ms", 300_000),
    ("grpc.max_receive_message_length", _MOST_BYTES),
]
_INVALID = 3  # gRPC's code of a response that cannot be taken
_USED, _DEGRADED = (0, 1), 5  # unknown and healthy; any other state is left out

DiscoveryRequest, DiscoveryResponse, ClusterLoadAssignment = (
    wire.message_class(name, "cosmo.picker.eds")
    for name in ("DiscoveryRequest", "DiscoveryResponse", "ClusterLoadAssignment")
)
_read_response, _read_assignment = (
    wire.reader(DiscoveryResponse),
    wire.reader(ClusterLoadAssignment),
)


class Where(NamedTuple):
    """Who is asked, and for which cluster."""

    server: str  # HOST:PORT
    cluster: str
    tls: Tls | None  # the certificates of who asks; None: in the clear


class Weighed(NamedTuple):
    """An address, and how much more than others it can bear; 0: nothing was said."""

    address: str
    weight: int


def where_of(spec: str, tls: Tls | None) -> Where:
    """Of HOST:PORT/CLUSTER, with https:// before it if encrypted; InputError for anything else, and
    for https:// without certificates in `tls`.
    """
    match = _SPEC.fullmatch(spec)
    if match is None or int(match[2].rpartition(":")[2]) > 65535:
        raise InputError(
            f"picker.endpoints: {spec!r} must look like HOST:PORT/CLUSTER or"
            " https://HOST:PORT/CLUSTER after eds:"
        )
    if not match[1]:
        return Where(match[2], match[3], None)
    if tls is None or not tls.certificate:
        raise InputError(
            f"tls.certificate = '': must be given, as picker.endpoints = 'eds:{spec}' asks for"
            " encryption"
        )
    return Where(match[2], match[3], tls)


def _channel(where: Where) -> grpc.aio.Channel:
    if where.tls is None:
        return grpc.aio.insecure_channel(where.server, _OPTIONS)
    return grpc.aio.secure_channel(where.server, channel_credentials(where.tls), _OPTIONS)


async def discovered(where: Where, node: str) -> AsyncGenerator[list[Weighed] | str, None]:
    """Endpoints of one stream, whenever the server tells of them, or why a response was refused;
    ends with the stream. OSError if the server cannot be reached, or hangs up; InputError if the
    certificates cannot be read.
    """
    async with _channel(where) as channel:
        call = channel.stream_stream(STREAM, DiscoveryRequest.SerializeToString, _read_response)()
        asking = DiscoveryRequest(resource_names=[where.cluster], type_url=TYPE)
        asking.node.id, asking.node.user_agent_name = node, "cosmo"
        try:
            await call.write(asking)
            while (told := await call.read()) is not grpc.aio.EOF:
                if told is None:
                    raise OSError("what was sent is no DiscoveryResponse")
                found, why = _taken(told, where.cluster)
                asking = DiscoveryRequest(
                    resource_names=[where.cluster],
                    type_url=TYPE,
                    response_nonce=told.nonce,
                    version_info=asking.version_info if why else told.version_info,
                )
                if why:
                    asking.error_detail.code, asking.error_detail.message = _INVALID, why
                await call.write(asking)
                if why:
                    yield f"response refused: {why}"
                elif found is not None:
                    yield found
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError) as error:
            details = error.details() if isinstance(error, grpc.aio.AioRpcError) else "it has ended"
            raise OSError(f"{where.server}: {details}") from None
        finally:
            call.cancel()


def _taken(told: Any, cluster: str) -> tuple[list[Weighed] | None, str]:
    """(endpoints of the cluster, None if it says nothing of it; what is wrong, else empty)."""
    if told.type_url not in ("", TYPE):
        return None, f"type_url = {told.type_url[:100]!r}: must be {TYPE!r}"
    for resource in told.resources:
        assignment = _read_assignment(resource.value) if resource.type_url == TYPE else None
        if assignment is None:
            return None, f"a resource is no {TYPE.rpartition('.')[2]}"
        if assignment.cluster_name == cluster:
            try:
                return _usable(assignment), ""
            except ValueError as error:
                return None, str(error)[:200]
    return None, ""


def _usable(assignment: Any) -> list[Weighed]:
    """Endpoints of the first priority that has healthy ones; degraded ones if all have none."""
    several = list(assignment.endpoints)
    if sum(len(each.lb_endpoints) for each in several) > MOST_ENDPOINTS:
        raise ValueError(f"lb_endpoints: must be at most {MOST_ENDPOINTS}")
    for states in (_USED, (_DEGRADED,)):
        for priority in sorted({each.priority for each in several}):
            found = [
                weighed
                for locality in several
                if locality.priority == priority
                for weighed in _of_locality(locality, states)
            ]
            if found:
                return found
    return []


def _of_locality(locality: Any, states: tuple[int, ...]) -> Iterator[Weighed]:
    for each in locality.lb_endpoints:
        place = each.endpoint.address.socket_address
        if not place.address or not 0 < place.port_value < 65536:
            raise ValueError("an endpoint has no socket_address with a port")
        ipaddress.ip_address(place.address)  # ValueError says which one is none
        if "%" in place.address:  # its zone is any text, and no proxy knows it
            raise ValueError("an address has a zone")
        if each.load_balancing_weight.value > _MOST_WEIGHT:
            raise ValueError(f"load_balancing_weight: must be at most {_MOST_WEIGHT}")
        if each.health_status in states:
            host = f"[{place.address}]" if ":" in place.address else place.address
            yield Weighed(f"{host}:{place.port_value}", int(each.load_balancing_weight.value))


def lines_of(found: list[Weighed], slots: int) -> list[str]:
    """As the lines of a file: the lightest has `slots`, others as many more as they weigh more, as
    far as a line can say.
    """
    lightest = min((each.weight for each in found if each.weight), default=1)
    own = [max(round(slots * (each.weight or lightest) / lightest), 1) for each in found]
    return [
        f"{each.address} slots={min(many, _MOST_SLOTS)}"
        for each, many in zip(found, own, strict=True)
    ]


async def watched(where: Where, node: str, slots: int) -> AsyncGenerator[list[str] | str, None]:
    """Lines of endpoints, or what went wrong, without end: one stream after another, with longer
    and longer pauses while the server cannot be reached, or certificates are replaced.
    """
    pause_s = first_s = 0.2
    while True:
        why = f"{where.server}: the stream has ended"
        try:
            async with contextlib.aclosing(discovered(where, node)) as changes:
                async for found in changes:
                    pause_s = first_s
                    yield found if isinstance(found, str) else lines_of(found, slots)
        except (OSError, InputError) as error:
            why = str(error)[:200]
        yield why
        await asyncio.sleep(pause_s)
        pause_s = min(2.0 * pause_s, _LONGEST_S)
