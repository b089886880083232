"""A reading of a page of metrics: what can be known of a service from outside."""

import math
from collections.abc import Mapping
from typing import NamedTuple

from prometheus_client.parser import text_string_to_metric_families

from cosmo.live.readings.metric_names import MetricNames
from cosmo.scenario.fields import MOST_MS

MOST_REQUESTS = 1e6  # that a service may say it has
_MOST_SUM = 1e18  # of a counter, in its own unit
_MOST_LINES, _MOST_LINE = 1000, 1000  # that matter, of a page; characters of each
_WEIGHT = 0.2  # of a new mean of times
_WINDOW_MS = 1000.0  # over which running requests are counted by their time, where no gauge does
_GAUGES, _COUNTERS = ("gauge", "unknown"), ("counter", "histogram", "summary", "unknown")


class ImplausibleError(ValueError):
    """What no service could have said, in a line."""


class Reading(NamedTuple):
    """What a service says of itself; NaN: nothing."""

    running: float = math.nan
    waiting: float = 0.0
    storage_share: float = math.nan  # of its storage, taken
    service_ms: float = math.nan  # that a request is worked on
    latency_ms: float = math.nan  # from its arrival to its end


def plausible(name: str, value: float, most: float) -> float:
    """The value; ImplausibleError unless it is from 0 to `most`, which NaN is not."""
    if not 0.0 <= value <= most:
        raise ImplausibleError(f"{name} = {value:g}: must be from 0 to {most:g}")
    return value


class Mean:
    """The mean of what a sum and a count have grown by, smoothed, in ms; NaN: none yet."""

    def __init__(self, unit_ms: float) -> None:
        """`unit_ms` is the unit of the sum, in ms."""
        self._unit_ms, self._before, self.ms = unit_ms, (math.nan, math.nan), math.nan

    def take(self, total: float, count: float) -> None:
        """The sum and the count as they are now."""
        grown = total - self._before[0], count - self._before[1]
        self._before = total, count
        if grown[0] >= 0.0 and grown[1] > 0.0:  # else nothing finished, or the service is new
            found = min(grown[0] / grown[1] * self._unit_ms, MOST_MS)
            self.ms = found if math.isnan(self.ms) else self.ms + _WEIGHT * (found - self.ms)


class Meter:
    """Reads pages of one service, one after another."""

    def __init__(self, names: MetricNames, labels: Mapping[str, str], slots: int) -> None:
        """Only samples with these labels count."""
        self._names, self._labels, self._slots = names, dict(labels), slots
        self._service, self._latency = Mean(names.time_unit_ms), Mean(names.time_unit_ms)
        self._window = math.nan, math.nan  # when it began, in ms; the time spent until then
        self._running = 0.0
        wanted = [
            name
            for each in (names.running, names.waiting, names.storage_share, names.busy_sum,
                         names.busy_count, names.latency_sum, names.latency_count)
            for name in each
        ]  # fmt: skip
        # A histogram's type is declared for its family.
        families = {name.removesuffix("_sum").removesuffix("_count") for name in wanted}
        self._wanted = frozenset(wanted)
        self._starts = (*wanted, *(f"# TYPE {name} " for name in (*wanted, *families)))

    def read(self, page: str, now: float) -> Reading:
        """What a page says that was made at this time, in ms.

        Raises ImplausibleError if it cannot be true.
        """
        found, names = self._sums(page), self._names
        waiting = self._first(found, names.waiting, MOST_REQUESTS, _GAUGES)
        share = self._first(found, names.storage_share, 1.0, _GAUGES)
        busy = self._counted(found, names.busy_sum, names.busy_count, self._service)
        self._counted(found, names.latency_sum, names.latency_count, self._latency)
        if names.running:
            running = self._first(found, names.running, MOST_REQUESTS, _GAUGES)
            if math.isnan(running):
                raise ImplausibleError(f"{names.running[0]}: must be on the page")
        elif math.isnan(waiting):
            raise ImplausibleError(f"{names.waiting[0]}: must be on the page")
        else:
            running = float(self._slots) if waiting else self._by_time(busy, now)
        waiting = 0.0 if math.isnan(waiting) else waiting
        return Reading(running, waiting, share, self._service.ms, self._latency.ms)

    def _counted(
        self,
        found: dict[str, tuple[float, str]],
        sums: tuple[str, ...],
        counts: tuple[str, ...],
        mean: Mean,
    ) -> float:
        """Fold a pair of counters into a mean; the first of them."""
        total = self._first(found, sums, _MOST_SUM, _COUNTERS)
        mean.take(total, self._first(found, counts, _MOST_SUM, _COUNTERS))
        return total

    def _by_time(self, busy: float, now: float) -> float:
        """Requests that were worked on of late: the time that they took in a unit of time."""
        since, before = self._window
        if not now - since < _WINDOW_MS:
            spent_ms = (busy - before) * self._names.time_unit_ms
            self._window = now, busy
            self._running = min(spent_ms / (now - since), self._slots) if spent_ms >= 0.0 else 0.0
        return self._running

    def _first(
        self,
        found: dict[str, tuple[float, str]],
        names: tuple[str, ...],
        most: float,
        kinds: tuple[str, ...],
    ) -> float:
        """The sum of the first of these names that the page has; NaN if it has none."""
        for name in names:
            if name in found:
                value, kind = found[name]
                if kind not in kinds:
                    raise ImplausibleError(f"{name}: is a {kind}, must be a {kinds[0]}")
                return plausible(name, value, most)
        return math.nan

    def _sums(self, page: str) -> dict[str, tuple[float, str]]:
        """{name: (sum over samples, type)} of what is wanted. Other lines are not even parsed."""
        lines = [line for line in page.splitlines() if line.startswith(self._starts)]
        if len(lines) > _MOST_LINES:
            raise ImplausibleError(f"{len(lines)} samples: must be at most {_MOST_LINES}")
        if max(map(len, lines), default=0) > _MOST_LINE:  # the parser's time grows with its square
            raise ImplausibleError(f"a sample of more than {_MOST_LINE} characters")
        found: dict[str, tuple[float, str]] = {}
        try:
            for family in text_string_to_metric_families("\n".join(lines) + "\n"):
                for said, labels, value, *_ in family.samples:
                    # The parser calls all counters _total, whatever the page calls them.
                    name = said if said in self._wanted else said.removesuffix("_total")
                    if name in self._wanted and self._labels.items() <= labels.items():
                        plausible(name, value, _MOST_SUM)  # one NaN among many counts, too
                        found[name] = found.get(name, (0.0, ""))[0] + value, family.type
        except ImplausibleError:
            raise
        except Exception as error:  # the parser has no error of its own
            raise ImplausibleError(f"no metrics ({type(error).__name__}: {error})"[:200]) from None
        return found
