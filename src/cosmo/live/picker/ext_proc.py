"""Envoy's external processing: messages of a picker, as the Endpoint Picker Protocol has them."""

import math
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

from cosmo.live import wire
from cosmo.live.picker.grpc_calls import message
from cosmo.live.readings.load_reports import BINARY_HEADER, TEXT_HEADER
from cosmo.scenario.fields import MOST_AMOUNT, MOST_MS

SERVICE = "envoy.service.ext_proc.v3.ExternalProcessor"
PROCESS = f"/{SERVICE}/Process".encode()
DESTINATION = "x-gateway-destination-endpoint"
SUBSET, SERVED = f"{DESTINATION}-subset", f"{DESTINATION}-served"
NAMESPACE, SUBSET_NAMESPACE = "envoy.lb", "envoy.lb.subset_hint"
UPSTREAM, DETAILS = "upstream.address", "response.code_details"
DUPLEX = (4, 5)  # body modes in which the picker sends on what it is sent
_MOST_KIND = 100  # characters
_MOST_SUBSET = 10_000  # endpoints
_MOST_ENTRIES = 1000  # headers of a message, and entries of its metadata; Envoy takes 100 headers
SURELY_SHORT = 2 * _MOST_ENTRIES  # bytes of a message: it cannot have more, as each takes two
_OVERWRITE = 2

_PHASES = ("request_headers", "response_headers", "request_body", "response_body",
           "request_trailers", "response_trailers")  # fmt: skip
ProcessingRequest, ProcessingResponse = (
    wire.message_class(name, "envoy.service.ext_proc.v3")
    for name in ("ProcessingRequest", "ProcessingResponse")
)
read = wire.reader(ProcessingRequest)


class Asked(NamedTuple):
    """What a request's headers say of the task that it is."""

    deadline_ms: float  # NaN: nothing
    demand: float  # in cycles, which at a picker are ms of a slot; NaN: nothing
    size: float  # bytes of the body; NaN: nothing
    kind: str
    odd: bool  # a header that is for the picker cannot be read


# Headers by which a client says what it needs, the strongest first.
_DEADLINES = (b"x-cosmo-deadline-ms", b"grpc-timeout", b"x-request-timeout")
_DEMAND, _SIZE, _KIND = b"x-cosmo-demand-ms", b"content-length", b"x-cosmo-kind"
STATUS = b":status"  # of an answer
_READ = {
    name.decode(): name
    for name in (*_DEADLINES, _DEMAND, _SIZE, _KIND, STATUS, BINARY_HEADER, TEXT_HEADER)
}
_UNITS_MS = {"H": 3_600_000.0, "M": 60_000.0, "S": 1000.0, "m": 1.0, "u": 1e-3, "n": 1e-6}


def is_too_long(asking: Any, phase: str) -> bool:
    """Whether a message has more headers or entries than there is time to look at."""
    lists = [asking.attributes, asking.metadata_context.filter_metadata]
    if phase.endswith("headers"):
        lists.append(getattr(asking, phase).headers.headers)
    return max(map(len, lists)) > _MOST_ENTRIES


def headers_of(http: Any) -> dict[bytes, bytes]:
    """The headers that a picker reads, by name; the last of a name."""
    return {
        _READ[each.key]: each.raw_value or each.value.encode()
        for each in http.headers.headers
        if each.key in _READ
    }


def asked(headers: dict[bytes, bytes]) -> Asked:
    """What the headers of a request say, within the bounds of a task."""
    odd, deadline_ms = False, math.nan
    for name in _DEADLINES:
        if name in headers:
            deadline_ms = _span_ms(name, headers[name])
            odd = math.isnan(deadline_ms)
            break
    demand = size = math.nan
    if _DEMAND in headers:
        demand = _number(headers[_DEMAND], MOST_AMOUNT)
        odd = odd or math.isnan(demand)
    if _SIZE in headers:
        size = _number(headers[_SIZE], MOST_AMOUNT)
    kind = headers.get(_KIND, b"").decode("ascii", "replace")
    if len(kind) > _MOST_KIND or not kind.isprintable():
        kind, odd = "", True
    return Asked(deadline_ms, demand, size, kind, odd)


def _number(text: bytes, most: float) -> float:
    """A decimal number greater than 0 and at most `most`; NaN for anything else."""
    if len(text) > 30 or text.strip(b"0123456789."):
        return math.nan
    try:
        found = float(text)
    except ValueError:
        return math.nan
    return found if 0.0 < found <= most else math.nan


def _span_ms(name: bytes, text: bytes) -> float:
    if name == b"x-cosmo-deadline-ms":
        return _number(text, MOST_MS)
    if name == b"grpc-timeout":
        unit = _UNITS_MS.get(text[-1:].decode("ascii", "replace"), math.nan)
        text = text[:-1]
    elif text.endswith(b"ms"):
        unit, text = 1.0, text[:-2]
    else:
        unit, text = 1000.0, text.removesuffix(b"s")
    found = _number(text, MOST_AMOUNT) * unit
    return found if found <= MOST_MS else math.nan


def _of_namespace(entries: Iterable[Any], namespace: str, key: str) -> Any:
    """A value of metadata; None if there is none."""
    for entry in entries:
        if entry.key == namespace and key in entry.value.fields:
            return entry.value.fields[key]
    return None


def subset_of(asking: Any) -> frozenset[str] | None:
    """The endpoints that the proxy allows for this request; None: all."""
    if not asking.HasField("metadata_context"):
        return None
    found = _of_namespace(asking.metadata_context.filter_metadata, SUBSET_NAMESPACE, SUBSET)
    if found is None:
        return None
    if found.WhichOneof("kind") == "string_value":
        texts = found.string_value.split(",", _MOST_SUBSET)
    else:
        texts = [each.string_value for each in found.list_value.values[:_MOST_SUBSET]]
    return frozenset(text.strip() for text in texts[:_MOST_SUBSET] if text.strip())


def served_by(asking: Any) -> tuple[str, str]:
    """(the endpoint that answered, how Envoy came by the answer) as far as it says; else ""."""
    address = details = ""
    found = _of_namespace(asking.metadata_context.filter_metadata, NAMESPACE, SERVED)
    if found is not None:
        address = found.string_value
    for entry in asking.attributes:
        fields = entry.value.fields
        if not address and UPSTREAM in fields:
            address = fields[UPSTREAM].string_value
        if DETAILS in fields:
            details = fields[DETAILS].string_value
    return address, details


@lru_cache(maxsize=4096)
def picked(addresses: str) -> bytes:
    """The answer that names endpoints, the first choice first, as header and as metadata."""
    made = ProcessingResponse()
    option = made.request_headers.response.header_mutation.set_headers.add(append_action=_OVERWRITE)
    option.header.key, option.header.raw_value = DESTINATION, addresses.encode()
    inner = made.dynamic_metadata.fields[NAMESPACE].struct_value
    inner.fields[DESTINATION].string_value = addresses
    return message(made.SerializeToString())


@lru_cache(maxsize=16)
def turned_away(status: int, why: str) -> bytes:
    """The answer that ends a request: 429 shed, 503 no endpoint."""
    made = ProcessingResponse()
    made.immediate_response.status.code = status
    made.immediate_response.body = f"{why}\n".encode()
    made.immediate_response.details = f"cosmo_picker_{status}"
    return message(made.SerializeToString())


def _plain_answer(phase: str) -> bytes:
    made = ProcessingResponse()
    getattr(made, phase).SetInParent()
    return message(made.SerializeToString())


GO_ON = {phase: _plain_answer(phase) for phase in _PHASES}


def sent_on(phase: str, http: Any) -> bytes:
    """A part of a body as it came, for full-duplex streams."""
    made = ProcessingResponse()
    getattr(made, phase).response.body_mutation.streamed_response.CopyFrom(http)
    return message(made.SerializeToString())
