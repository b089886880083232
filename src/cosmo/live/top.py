"""What nodes say on their admin ports, as lines for a terminal."""

import math
import socket
import time
from collections.abc import Iterable
from urllib.parse import urlencode

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from cosmo.errors import InputError

_PATIENCE_S = 2.0  # for all of an answer
_MOST_BYTES = 4_000_000  # of it: far more than a node with thousands of peers says
_MOST_TEXT = 200  # characters of a label


def check_addresses(addresses: Iterable[str]) -> None:
    """Raise InputError for what no node can listen on; one that is not there yet is waited for."""
    for address in addresses:
        host, _, port = address.rpartition(":")
        bare = host.strip("[]")
        known = port.isascii() and port.isdecimal() and 0 < int(port[:6]) <= 65535
        odd = not bare.isprintable() or any(sign in bare for sign in " /@")
        if not bare.strip(":") or odd or not known or ("[" in host) != (":" in bare):
            raise InputError(
                f"address = {address[:60]!r}: must be host:port, as in 127.0.0.1:7300, with a port"
                " from 1 to 65535"
            )


def scraped(address: str, names: Iterable[str] = ()) -> list[Sample]:
    """All metrics of the node with this admin address, or those with these names; none if nobody
    answers, or with nonsense.

    Whoever listens there may say anything: it has so much time and so many bytes, sends nobody
    elsewhere, and what it names is text that can be shown.
    """
    try:
        head, _, body = _answer(address, names).partition(b"\r\n\r\n")
        if head.split(maxsplit=2)[1:2] != [b"200"]:
            return []
        found = parsed(body.decode())
    except (OSError, ValueError, LookupError):
        return []
    return [each for each in found if all(map(_can_be_shown, each.labels.values()))]


def _can_be_shown(text: str) -> bool:
    return len(text) <= _MOST_TEXT and text.isprintable()


def _answer(address: str, names: Iterable[str]) -> bytes:
    """What is said to a request for metrics, as it comes; OSError or ValueError if it is none."""
    host, _, port = address.rpartition(":")
    host, until_s = host.strip("[]"), time.monotonic() + _PATIENCE_S
    query = urlencode([("name[]", name) for name in names])
    path = f"/metrics?{query}" if query else "/metrics"
    request = f"GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n".encode()
    found = bytearray()
    with socket.create_connection((host, int(port)), _PATIENCE_S) as there:
        there.sendall(request)
        while len(found) <= _MOST_BYTES:
            there.settimeout(max(until_s - time.monotonic(), 0.001))
            part = there.recv(65_536)
            if not part:
                return bytes(found)
            found += part
            if time.monotonic() > until_s:
                raise TimeoutError
    raise ValueError("too much")


def parsed(text: str) -> list[Sample]:
    """Samples in the text format of Prometheus. Raises ValueError for other text."""
    return [sample for each in text_string_to_metric_families(text) for sample in each.samples]


def quantile_ms(
    samples: list[Sample], name: str, share: float, before: list[Sample] | None = None
) -> float:
    """A quantile of a histogram in seconds, in ms: of what came after `before`, or of everything.

    Linear within a bucket, as Prometheus has it; the lower bound of the last bucket, which has no
    end; NaN if there is no sample.
    """
    counts: dict[float, float] = {}
    for sign, some in ((1.0, samples), (-1.0, before or [])):
        for each in some:
            if each.name == f"{name}_bucket":
                most_s = _bound(each.labels.get("le", ""))
                counts[most_s] = counts.get(most_s, 0.0) + sign * each.value
    bounds = sorted(counts)
    if not bounds or not counts[bounds[-1]]:
        return math.nan
    rank, lower_s, below = share * counts[bounds[-1]], 0.0, 0.0
    for most_s in bounds:
        if counts[most_s] >= rank and counts[most_s] > below:
            part = (rank - below) / (counts[most_s] - below)
            return 1000.0 * (lower_s if math.isinf(most_s) else lower_s + part * (most_s - lower_s))
        lower_s, below = most_s, counts[most_s]
    return math.nan


def _bound(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.inf


def _total(samples: list[Sample], name: str, **labels: str) -> float:
    return sum(
        sample.value
        for sample in samples
        if sample.name == name
        and all(sample.labels.get(key) == text for key, text in labels.items())
    )


def line_of(
    address: str, samples: list[Sample], before: list[Sample], seconds: float
) -> tuple[str, ...]:
    """(node, method, tasks/s, in time, in the node, silent SNs, guard, timers) of one node."""
    if not samples:
        return (address, "absent", *["–"] * 6)
    tasks = _total(samples, "cosmo_tasks_total") - _total(before, "cosmo_tasks_total")
    done = _total(samples, "cosmo_tasks_total", fate="DONE") - _total(
        before, "cosmo_tasks_total", fate="DONE"
    )
    methods = [
        each.labels.get("method", "–") for each in samples if each.name == "cosmo_method_info"
    ]
    return (
        samples[0].labels.get("node", address),
        methods[0] if methods else "–",
        f"{tasks / seconds:.1f}",
        f"{done / tasks:.3f}" if tasks else "–",
        f"{_total(samples, 'cosmo_tasks_in_node'):.0f}",
        f"{_total(samples, 'cosmo_sn_silent'):.0f}",
        _ms(1000.0 * _total(samples, "cosmo_guard_seconds")),
        _ms(quantile_ms(samples, "cosmo_timer_late_seconds", 0.99, before)),
    )


def _ms(value: float) -> str:
    """A dash while nothing has been measured."""
    return "–" if math.isnan(value) else f"{value:.2f}"


# On two lines, so that names have room in 80 columns.
HEADER = (
    "node", "method", "tasks/s", "in\ntime", "in\nnode", "silent\nSNs", "guard\nms", "timer\np99",
)  # fmt: skip
