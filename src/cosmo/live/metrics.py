"""What a node counts and measures, as Prometheus reads it."""

from collections.abc import Iterable
from typing import Any

from prometheus_client import generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from cosmo.live.samples import BOUNDS_MS, Histogram

Label = tuple[tuple[str, str], ...]

# Every metric that there is; what ends in _total is a counter.
HELP = {
    "calls": "Calls of clients that have not been answered.",
    "cancelled_total": "Calls that their clients gave up.",
    "decision_seconds": "Time that the method takes for a decision.",
    "decisions_total": "Decisions of the method: local, an SN's name, or reject.",
    "delay_seconds": "Time from a task's generation to its result.",
    "endpoints": "Endpoints that a picker chooses from.",
    "execute_errors_total": "Calls of SNs that failed as calls, by their status.",
    "free_bytes": "Storage that no task has reserved.",
    "guard_seconds": "Time that is subtracted from every budget that the method sees.",
    "hung_up_total": "Connections that were ended since their address had too many.",
    "implausible_messages_total": "Messages that no such peer can send: an SN is then silent.",
    "load_reports_total": "Load reports on answers of an endpoint, by what became of them.",
    "method_changes_total": "How often the method that decides changed.",
    "method_info": "The method that decides at the moment, as a label.",
    "metric_reads_total": "Readings of a service's metrics by its agent, by what became of them.",
    "odd_headers_total": "Requests with a header for the picker that cannot be read.",
    "on_fallback": "1 while the method is not trusted.",
    "path_overhead_seconds": "Time that the path to an SN adds to what the EN has estimated.",
    "reading_age_seconds": "Time since an agent's last reading of its service was made.",
    "redirected_total": "Requests whose endpoint a picker chose without its method.",
    "requests_in_flight": "Requests that a picker has sent to an endpoint and that have not ended.",
    "reruns_total": "Tasks that the EN did itself because their SN vanished.",
    "round_trip_seconds": "Time that a small message takes to an SN and back.",
    "scrapes_total": "Readings of an endpoint's metrics by a picker, by what became of them.",
    "served_elsewhere_total": "Requests that the proxy sent to another endpoint than the first.",
    "shadow_differs_total": "Decisions that the shadow would have taken otherwise.",
    "shadow_faults_total": "Decisions that the shadow could not take.",
    "shadow_total": "Decisions that the shadow was asked about.",
    "sn_silent": "1 while an SN is silent.",
    "status_age_seconds": "Time since the last status of an SN was made.",
    "status_value": "The numbers of the last status of an SN, in their order.",
    "statuses_total": "Statuses that have come from an SN.",
    "tasks_in_node": "Tasks that wait or run here.",
    "tasks_total": "Tasks that have been answered, by their fate.",
    "timer_late_max_seconds": "Lateness of the latest timer since the start.",
    "timer_late_seconds": "Lateness of timers.",
    "turned_away_total": "Calls beyond the limits.",
    "update_decisions_total": "Decisions of an SN whether to send a status.",
    "updates_suppressed_total": "Statuses that were beyond the cap, or had changed nothing.",
    "updates_total": "Statuses that were sent to an EN.",
    "uptime_seconds": "Time since the start.",
    "work_cycles": "Cycles of work that wait or run here.",
}


class Counters:
    """Numbers that only grow, by name and labels."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, Label], float] = {}

    def add(self, name: str, amount: float = 1.0, **labels: str) -> None:
        """Add `amount` to the counter `name` with these labels."""
        key = name, tuple(sorted(labels.items()))
        self._counts[key] = self._counts.get(key, 0.0) + amount

    def forget(self, value: str) -> None:
        """Drop whatever has this label: its owner is gone, and others come without end."""
        gone = [key for key in self._counts if any(value == text for _, text in key[1])]
        for key in gone:
            del self._counts[key]

    def get(self, name: str, **labels: str) -> float:
        """So far; 0 if never."""
        return self._counts.get((name, tuple(sorted(labels.items()))), 0.0)

    def samples(self) -> list["Measured"]:
        """All of them, sorted."""
        return [
            (name, dict(labels), count) for (name, labels), count in sorted(self._counts.items())
        ]


Measured = tuple[str, dict[str, str], float | Histogram]  # name, labels, value (a histogram: in ms)


class _Families(Collector):
    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def exposition(samples: Iterable[Measured], node: str) -> str:
    """The metrics of one node in the text format of Prometheus.

    Every name begins with `cosmo_`; every sample has the label `node`. Samples of one name have
    the same labels.
    """
    families: dict[str, Any] = {}
    for name, labels, value in samples:
        if name not in families:
            families[name] = _kind(name, value)(
                f"cosmo_{name}", HELP[name], labels=["node", *labels]
            )
        texts = [node, *labels.values()]
        if isinstance(value, Histogram):
            bounds = [str(bound_ms / 1000.0) for bound_ms in BOUNDS_MS]
            counts = zip([*bounds, "+Inf"], value.cumulative(), strict=True)
            families[name].add_metric(texts, list(counts), value.total / 1000.0)
        else:
            families[name].add_metric(texts, value)
    return generate_latest(_Families(families.values())).decode()


def _kind(name: str, value: float | Histogram) -> Any:
    if isinstance(value, Histogram):
        return HistogramMetricFamily
    return CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
