"""What a node counts, in the text format of Prometheus."""

from collections.abc import Iterable

Label = tuple[tuple[str, str], ...]

# Every metric that there is; what ends in _total is a counter, all else a gauge.
HELP = {
    "belief": "The numbers of the last status of an SN, in their order.",
    "calls": "Calls of clients that have not been answered.",
    "cancelled_total": "Calls that their clients gave up.",
    "decision_ms": "Ms that the method takes for a decision, lately.",
    "decisions_total": "Decisions of the method: local, an SN's name, or reject.",
    "delay_ms": "Ms from a task's generation to its result, lately.",
    "delay_ms_total": "Ms from generation to result, of all tasks with one together.",
    "execute_errors_total": "Calls of SNs that failed as calls, by their status.",
    "free_bytes": "Storage that no task has reserved.",
    "guard_ms": "Ms that are subtracted from every budget that the method sees.",
    "method_changes_total": "How often another method took over.",
    "method_info": "Who decides at the moment, as a label.",
    "on_fallback": "1 while the method is not trusted.",
    "overhead_ms": "Ms that the way to an SN has added to the books, lately.",
    "reruns_total": "Tasks that the EN did itself because their SN vanished.",
    "round_trip_ms": "Ms that a small message takes to an SN and back.",
    "shadow_differs_total": "Decisions that the shadow would have taken otherwise.",
    "shadow_faults_total": "Decisions that the shadow could not take.",
    "shadow_total": "Decisions that the shadow was asked about.",
    "sn_silent": "1 while nothing is heard of an SN.",
    "status_age_ms": "Ms since the last status of an SN was made.",
    "statuses_total": "Statuses that have come from an SN.",
    "tasks_in_node": "Tasks that wait or run here.",
    "tasks_total": "Tasks that have been answered, by their fate.",
    "timer_late_ms": "Ms that timers are late, lately.",
    "timer_late_most_ms": "Ms that the latest timer was late.",
    "turned_away_total": "Calls beyond the limits.",
    "up_seconds": "Seconds since the start.",
    "update_decisions_total": "Decisions of an SN whether to send a status.",
    "updates_suppressed_total": "Statuses that were beyond the cap, or said nothing new.",
    "updates_total": "Statuses that were sent to an EN.",
    "work_cycles": "Cycles of work that wait or run here.",
}


class Counters:
    """Numbers that only grow, by name and labels."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, Label], float] = {}

    def add(self, name: str, amount: float = 1.0, **labels: str) -> None:
        """Count."""
        key = name, tuple(sorted(labels.items()))
        self._counts[key] = self._counts.get(key, 0.0) + amount

    def get(self, name: str, **labels: str) -> float:
        """So far; 0 if never."""
        return self._counts.get((name, tuple(sorted(labels.items()))), 0.0)

    def rows(self) -> list[tuple[str, Label, float]]:
        """All of them, sorted."""
        return [(name, labels, count) for (name, labels), count in sorted(self._counts.items())]


Gauge = tuple[str, dict[str, str], float]


def exposition(counters: Counters, gauges: Iterable[Gauge], node: str) -> str:
    """All of it as Prometheus reads it; every name begins with `cosmo_`."""
    lines: list[str] = []
    typed: set[str] = set()

    def write(name: str, labels: Iterable[tuple[str, str]], value: float) -> None:
        full = f"cosmo_{name}"
        if full not in typed:
            typed.add(full)
            kind = "counter" if name.endswith("_total") else "gauge"
            lines.extend((f"# HELP {full} {HELP[name]}", f"# TYPE {full} {kind}"))
        inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in [("node", node), *labels])
        lines.append(f"{full}{{{inside}}} {_number(value)}")

    for name, labels, count in counters.rows():
        write(name, labels, count)
    for name, own, value in gauges:
        write(name, own.items(), value)
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _number(value: float) -> str:
    return "NaN" if value != value else repr(float(value))
