"""Cases of doors that are no command: HTTP/2 of a picker with its messages, the playground."""

import json
from typing import Any

from doors import OPENING, SAID, call, data, headers_message
from grammar_http import http_bytes
from hypothesis import strategies as st
from judge import Case
from odd import Draw, damaged, seldom, some, spoil, texts

from cosmo.live.picker import ext_proc, frames
from cosmo.live.picker.frames import WORD, frame
from cosmo.web.settings import first_choice

_PHASES = (
    "request_headers", "response_headers", "request_body", "response_body", "request_trailers",
    "response_trailers",
)  # fmt: skip
_KEYS = (
    "x-cosmo-deadline-ms", "grpc-timeout", "x-request-timeout", "x-cosmo-demand-ms",
    "content-length", "x-cosmo-kind", ":status", "a",
)  # fmt: skip
_VALUES = ("", "5", "0", "1e9", "nan", "-1", "9" * 40, "10S", "10m", "500", "200", "0.0001", "\0")
_WORDS = (0, 1, 10, 65_535, 2**31 - 1, 2**32 - 1)
_SETTINGS = (frames.INITIAL_WINDOW, frames.FRAME_SIZE, frames.ENABLE_PUSH, 77)
ADDRESSES = "10.0.0.1:80\n10.0.0.2:80 slots=4  # a larger one\n[fd00::1]:80\n"


@st.composite
def _messages(draw: Draw) -> bytes:
    made = ext_proc.ProcessingRequest()
    phase = draw(some(*_PHASES))
    part = getattr(made, phase)
    part.SetInParent()
    if phase.endswith("headers"):
        for _ in range(draw(st.integers(0, 3))):
            value = draw(some(*_VALUES)) if draw(st.booleans()) else draw(texts)
            raw = value.encode("utf-8", "surrogatepass")
            part.headers.headers.add(key=draw(some(*_KEYS)), raw_value=raw)
        part.end_of_stream = draw(st.booleans())
    elif phase.endswith("body"):
        part.body = draw(some(b"", b"x", bytes(5000)))
        part.end_of_stream = draw(st.booleans())
    if seldom(draw, 3):
        made.protocol_config.request_body_mode = draw(some(0, 1, 4, 5, 9))
        made.protocol_config.response_body_mode = draw(some(0, 4, 9))
    if seldom(draw, 3):
        _add_entries(draw, made)
    made.observability_mode = seldom(draw, 6)
    content = made.SerializeToString()
    return damaged(draw, content) if seldom(draw, 6) else content


def _add_entries(draw: Draw, made: Any) -> None:
    names = draw(some(ext_proc.SUBSET_NAMESPACE, ext_proc.NAMESPACE, "x"))
    keys = draw(some(ext_proc.SUBSET, ext_proc.SERVED, ext_proc.UPSTREAM, ext_proc.DETAILS))
    lists = [made.metadata_context.filter_metadata, made.attributes]
    value = draw(some(*lists)).add(key=names).value.fields[keys]
    addresses = ("10.0.0.1:80", "10.0.0.2:80", "9.9.9.9:9", "", ",", "é" * 50)
    if draw(st.booleans()):
        value.string_value = draw(some(*addresses))
    else:
        for each in draw(st.lists(some(*addresses), max_size=4)):
            value.list_value.values.add(string_value=each)


@st.composite
def _odd_frames(draw: Draw) -> bytes:
    number = draw(some(0, 1, 3, 5, 2**31 - 1))
    how = draw(st.integers(0, 4))
    if how == 0:
        return frame(frames.RESET, 0, number, WORD.pack(8))
    if how == 1:
        return frame(frames.WINDOW, 0, number, WORD.pack(draw(some(*_WORDS))))
    if how == 2:
        told = frames.SETTING.pack(draw(some(*_SETTINGS)), draw(some(*_WORDS)))
        return frame(frames.SETTINGS, 0, 0, told)
    if how == 3:
        return frame(frames.PING, 0, 0, b"12345678")
    flags, content = draw(st.integers(0, 255)), draw(st.binary(max_size=40))
    return frame(draw(st.integers(0, 12)), flags, number, content)


@st.composite
def picker_bytes(draw: Draw) -> Case:
    """What a proxy says on a connection: calls with messages of all kinds, and frames between."""
    good = headers_message().SerializeToString()
    parts = [OPENING]
    for number in range(1, 2 * draw(st.integers(1, 4)), 2):
        parts.append(call(number))
        first = [] if seldom(draw, 5) else [good]
        told = [*first, *draw(st.lists(_messages(), max_size=4))]
        if draw(st.booleans()):
            parts.append(data(number, *told, ended=draw(st.booleans())))
        else:
            parts += [data(number, each) for each in told]
        if seldom(draw, 4):
            parts.append(draw(_odd_frames()))
    content = b"".join(parts)
    if seldom(draw, 5):
        content = damaged(draw, content)
    return Case("picker", ("picker",), {SAID: content}, door="picker")


@st.composite
def choices(draw: Draw) -> Case:
    """What a page of the playground sends: odd numbers, names and documents."""
    told = chosen_document()
    for _ in range(draw(some(0, 0, 0, 1, 2))):
        spoil(draw, told)
    numbers = told.get("numbers")
    if isinstance(numbers, dict) and draw(st.booleans()):
        slider = draw(some("load", "price", "spread", "tenants", "outages", "ens", "sns"))
        odd = some(0, 1, 1.5, 1e300, -0.0, -1, 61)
        numbers[slider] = draw(st.one_of(some(1.0, 2, 5.0, 10), st.integers(10, 20), odd))
    content = json.dumps(told).encode()
    if seldom(draw, 6):
        content = damaged(draw, content)
    return Case("page", ("page",), {SAID: content}, door="page")


def chosen_document() -> dict[str, Any]:
    """What is chosen at first, with one method, as a page says it."""
    first = first_choice()
    numbers = dict(first.numbers) | {"ens": 2.0, "sns": 2.0, "load": 40.0}
    return {"scenario": first.scenario, "methods": ["random"], "numbers": numbers}


@st.composite
def endpoint_files(draw: Draw) -> Case:
    """Lists of endpoints, made an Envoy's configuration of."""
    lines = ADDRESSES.split("\n")
    for _ in range(draw(some(0, 1, 1, 2))):
        odd = draw(
            some("10.0.0.1:080", "10.0.0.1:80", "[FD00::1]:80", "10.0.0.9:80 slots=0", "# x", "1:1",
                 "10.0.0.3:99999", "10.0.0.4:80 slots=999999", "[fe80::1%x]:1", " 10.0.0.5:1 ")
        )  # fmt: skip
        lines.insert(draw(st.integers(0, len(lines))), odd if draw(st.booleans()) else draw(texts))
    content = "\n".join(lines).encode("utf-8", "surrogatepass")
    if seldom(draw, 6):
        content = damaged(draw, content)
    return endpoints_case(content)


def endpoints_case(content: bytes) -> Case:
    """A picker's file that names a list of endpoints with this content."""
    told = b'extends = "picker"\n[picker]\nendpoints = "file:endpoints"\n'
    arguments = ("live", "config", "--for", "envoy", "--picker", "p.toml", "--out", "nodes")
    files = {"p.toml": told, "endpoints": content}
    return Case("endpoints", arguments, files, outputs=("nodes/",))


DOOR_KINDS: dict[str, st.SearchStrategy[Case]] = {
    "picker": picker_bytes(), "page": choices(), "endpoints": endpoint_files(),
    "http": http_bytes(),
}  # fmt: skip
