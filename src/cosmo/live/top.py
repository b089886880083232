"""What nodes say on their admin ports, as lines for a terminal."""

import math
import re
import urllib.error
import urllib.request
from dataclasses import dataclass

_LINE = re.compile(r"^cosmo_(\w+)\{([^}]*)\} (\S+)$")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_PATIENCE_S = 2.0


@dataclass(frozen=True, slots=True)
class Sample:
    """One number of the metrics."""

    name: str
    labels: dict[str, str]
    value: float


def scraped(address: str) -> list[Sample]:
    """All metrics of the node with this admin address; none if nobody answers."""
    try:
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=_PATIENCE_S) as page:
            return parsed(page.read().decode())
    except (urllib.error.URLError, OSError, ValueError):
        return []


def parsed(text: str) -> list[Sample]:
    """Metrics in the format of Prometheus."""
    found = []
    for line in text.splitlines():
        match = _LINE.match(line)
        if match:
            labels = dict(_LABEL.findall(match[2]))
            found.append(Sample(match[1], labels, float(match[3])))
    return found


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
    tasks = _total(samples, "tasks_total") - _total(before, "tasks_total")
    done = _total(samples, "tasks_total", fate="DONE") - _total(before, "tasks_total", fate="DONE")
    methods = [each.labels["method"] for each in samples if each.name == "method_info"]
    return (
        samples[0].labels.get("node", address),
        methods[0] if methods else "–",
        f"{tasks / seconds:.1f}",
        f"{done / tasks:.3f}" if tasks else "–",
        f"{_total(samples, 'tasks_in_node'):.0f}",
        f"{_total(samples, 'sn_silent'):.0f}",
        _ms(_total(samples, "guard_ms")),
        _ms(_total(samples, "timer_late_ms")),
    )


def _ms(value: float) -> str:
    """A dash while nothing has been measured."""
    return "–" if math.isnan(value) else f"{value:.2f}"


# On two lines, so that names have room in 80 columns.
HEADER = (
    "node", "method", "tasks/s", "in\ntime", "in\nnode", "silent\nSNs", "guard\nms", "timer\np99",
)  # fmt: skip
