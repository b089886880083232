"""How many cycles a kind of task takes, learned from those that ran here."""

_WEIGHT, _MOST_KINDS = 0.1, 1000


class Estimates:
    """Smoothed, one number a kind; the mean of what is expected while nothing is known."""

    def __init__(self, start: float) -> None:
        self._start = start
        self._known: dict[str, float] = {}

    def of(self, kind: str) -> float:
        """Cycles of a task of this kind."""
        return self._known.get(kind, self._start)

    def learn(self, kind: str, cycles: float) -> None:
        """A task of this kind took so many."""
        if cycles > 0.0 and (kind in self._known or len(self._known) < _MOST_KINDS):
            before = self._known.get(kind)
            self._known[kind] = cycles if before is None else before + _WEIGHT * (cycles - before)
