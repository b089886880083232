"""What a node counts, in the text format of Prometheus."""

from collections.abc import Iterable

Label = tuple[tuple[str, str], ...]


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

    def write(name: str, kind: str, labels: Iterable[tuple[str, str]], value: float) -> None:
        full = f"cosmo_{name}"
        if full not in typed:
            typed.add(full)
            lines.append(f"# TYPE {full} {kind}")
        inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in [("node", node), *labels])
        lines.append(f"{full}{{{inside}}} {_number(value)}")

    for name, labels, count in counters.rows():
        write(name, "counter", labels, count)
    for name, own, value in gauges:
        write(name, "gauge", own.items(), value)
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _number(value: float) -> str:
    return "NaN" if value != value else repr(float(value))
