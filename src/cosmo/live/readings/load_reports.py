"""Load reports (ORCA) on answers of services: what they say in the forms that there are.

The header `endpoint-load-metrics` holds `TEXT name=value,…`, `JSON {…}` or `BIN base64`, and
`endpoint-load-metrics-bin` the same message in base64.
"""

import base64
import json
import math
from collections.abc import Mapping
from typing import Any

from google.protobuf.message import DecodeError

from cosmo.live.orca import NAMED, TRAILER, OrcaLoadReport
from cosmo.live.readings.metering import MOST_REQUESTS, ImplausibleError, Reading, plausible
from cosmo.live.readings.metric_names import MetricNames
from cosmo.node import IDLE, LATENCY, REQUESTS, STATE_FIELDS
from cosmo.scenario.fields import MOST_AMOUNT

TEXT_HEADER, BINARY_HEADER = TRAILER.removesuffix("-bin").encode(), TRAILER.encode()
_MOST_BYTES, _MOST_METRICS = 16_384, 256
_MAP = "named_metrics"
_NAMED = f"{_MAP}."
_LOADS = ("application_utilization", "cpu_utilization")  # of slots, the better one first


def report_of(headers: Mapping[bytes, bytes]) -> dict[str, float] | None:
    """{name: value} of a report, named metrics as `named_metrics.NAME`; None if there is none.

    Raises ImplausibleError if it cannot be read.
    """
    binary, text = headers.get(BINARY_HEADER), headers.get(TEXT_HEADER)
    if binary is None and text is None:
        return None
    form, content = b"BIN", binary
    if text is not None:
        form, _, content = text.strip().partition(b" ")
    assert content is not None
    if len(content) > _MOST_BYTES:
        raise ImplausibleError(
            f"a load report of {len(content)} bytes: must be at most {_MOST_BYTES}"
        )
    try:
        found = _READERS[form.upper()](content)
    except KeyError:
        raise ImplausibleError("a load report: must be TEXT, JSON or BIN") from None
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError, DecodeError):
        raise ImplausibleError("a load report: cannot be read") from None
    if len(found) > _MOST_METRICS:
        raise ImplausibleError(
            f"a load report of {len(found)} metrics: must be {_MOST_METRICS} at most"
        )
    return {name: plausible(name, value, MOST_AMOUNT) for name, value in found.items()}


def _of_text(content: bytes) -> dict[str, float]:
    parts = (part.partition("=") for part in content.decode().split(",") if part.strip())
    return {name.strip(): float(value) for name, _, value in parts}


def _of_json(content: bytes) -> dict[str, float]:
    told: dict[str, Any] = json.loads(content)
    named = told.pop(_MAP, {})
    numbers = {name: float(value) for name, value in told.items() if isinstance(value, int | float)}
    return {**numbers, **{f"{_NAMED}{name}": float(value) for name, value in named.items()}}


def _of_binary(content: bytes) -> dict[str, float]:
    padded = content + b"=" * (-len(content) % 4)  # gRPC leaves it out
    report = OrcaLoadReport.FromString(base64.b64decode(padded, validate=True))
    named = {f"{_NAMED}{name}": value for name, value in report.named_metrics.items()}
    return {**{name: getattr(report, name) for name in _LOADS}, **named}


_READERS = {b"TEXT": _of_text, b"JSON": _of_json, b"BIN": _of_binary}


def reported_state(report: Mapping[str, float]) -> list[float] | None:
    """[field] the state that a service node of this package reports (R12); None if it is of others.

    Raises ImplausibleError if only a part of it is there.
    """
    found = [report.get(f"{_NAMED}cosmo.{name}") for name in NAMED]
    known = [each for each in found if each is not None]
    if not known:
        return None
    if len(known) < STATE_FIELDS:
        raise ImplausibleError("a load report: must have all of cosmo's named metrics, or none")
    state = [0.0] * STATE_FIELDS
    for field, value in zip(NAMED.values(), known, strict=True):
        state[field] = value
    for field in (IDLE, REQUESTS, LATENCY):
        plausible(
            "a named metric", state[field], MOST_REQUESTS if field != LATENCY else MOST_AMOUNT
        )
    return state


def reading_of(
    report: Mapping[str, float], names: MetricNames, slots: int, own: int
) -> Reading | None:
    """The reading that a report of any other service gives; None if it says nothing of its load.

    `own` is how many requests of this picker are there, for services that say only what waits.
    """
    running = _first(report, names.report_running, MOST_REQUESTS)
    waiting = _first(report, names.report_waiting, MOST_REQUESTS)
    share = _first(report, names.report_storage_share, 1.0)
    if math.isnan(running) and math.isnan(waiting):
        loads = [report[name] for name in _LOADS if report.get(name, 0.0) > 0.0]
        if not loads:
            return None
        requests = plausible("utilization", loads[0] * slots, MOST_REQUESTS)
        return Reading(min(requests, slots), max(requests - slots, 0.0), share)
    waiting = 0.0 if math.isnan(waiting) else waiting
    if math.isnan(running):
        running = float(slots if waiting else min(own, slots))
    return Reading(running, waiting, share)


def _first(report: Mapping[str, float], names: tuple[str, ...], most: float) -> float:
    for name in names:
        if f"{_NAMED}{name}" in report:
            return plausible(name, report[f"{_NAMED}{name}"], most)
    return math.nan
