"""Rows of a test bed that nobody has measured."""

from cosmo.live.bed.compare import Compared


def row(method="priced-books", live=0.9, **fields):
    """An episode at 220 tasks/s, simulated at 0.9 in time."""
    made = {
        "scenario": "paper", "arrivals": "poisson", "rate": 220.0, "scale": 1.0,
        "transport": "loopback", "method": method, "seed": 100, "episode": 0, "tasks": 1000,
        "simulated": 0.9, "live": live, "same": 0.95, "simulated_updates": 100, "live_updates": 90,
        "timer_p99_ms": 0.3, "timer_most_ms": 4.0, "decision_p99_ms": 0.2, "errors": 0,
        "faults": 0, "valid": True,
    }  # fmt: skip
    return Compared(**made | fields)
