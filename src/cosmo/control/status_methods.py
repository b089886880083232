"""Methods that go by status, books or probes: pairs of an updater and a dispatcher."""

from typing import Annotated

from pydantic import Field, PositiveFloat, PositiveInt

from cosmo.control.dispatchers import (
    AdmissionDispatcher,
    CapacityDispatcher,
    EstimateDispatcher,
    PrequalDispatcher,
    PricedBooksDispatcher,
    SelfTrackingDispatcher,
)
from cosmo.control.method import NOTHING, PROBE, RAW, Dispatcher, Method, Setting, Updater
from cosmo.control.updaters import (
    AociOnlineUpdater,
    AoiThresholdUpdater,
    AovGapUpdater,
    NeverUpdater,
    PeriodicUpdater,
)

Share = Annotated[float, Field(gt=0, le=1)]


class _OnRawState(Method):
    """The EN goes by the cached raw state, by default with `estimate`."""

    carries = RAW
    rule: type[EstimateDispatcher] | type[CapacityDispatcher] = EstimateDispatcher

    def dispatcher(self, setting: Setting) -> Dispatcher:
        """The EN rule."""
        return self.rule(setting)


class Periodic(_OnRawState):
    """Raw state every `interval_ms`; the EN takes the faster feasible route by it."""

    def __init__(self, interval_ms: PositiveFloat = 100.0) -> None:
        self.interval_ms = interval_ms

    def updater(self, setting: Setting) -> Updater:
        """By the clock."""
        return PeriodicUpdater(self.interval_ms)


class Never(_OnRawState):
    """No updates at all; the EN takes the SN to be idle."""

    def updater(self, setting: Setting) -> Updater:
        """Silent."""
        return NeverUpdater(setting)


class AoiThreshold(_OnRawState):
    """Raw state when its acknowledged age reaches the theoretical optimum."""

    def __init__(self, kappa: PositiveFloat = 5.1) -> None:
        self.kappa = kappa

    def updater(self, setting: Setting) -> Updater:
        """By age."""
        return AoiThresholdUpdater(setting, self.kappa)


class AovGap(_OnRawState):
    """Raw state when it has moved away from the acknowledged one."""

    def __init__(
        self,
        threshold: PositiveFloat = 0.05,
        check_ms: PositiveFloat = 1.0,
        timeout_ms: PositiveFloat = 50.0,
    ) -> None:
        self.threshold, self.check_ms, self.timeout_ms = threshold, check_ms, timeout_ms

    def updater(self, setting: Setting) -> Updater:
        """By content."""
        return AovGapUpdater(setting, self.threshold, self.check_ms, self.timeout_ms)


class AociOnline(_OnRawState):
    """Raw state when the age of changed information reaches a threshold learned online."""

    def __init__(
        self,
        cost_ms2: PositiveFloat = 660.0,
        check_ms: PositiveFloat = 1.0,
        timeout_ms: PositiveFloat = 50.0,
    ) -> None:
        self.cost_ms2, self.check_ms, self.timeout_ms = cost_ms2, check_ms, timeout_ms

    def updater(self, setting: Setting) -> Updater:
        """By changed age."""
        return AociOnlineUpdater(setting, self.cost_ms2, self.check_ms, self.timeout_ms)


def by_capacity(kind: type[_OnRawState]) -> type[_OnRawState]:
    """The same updates, with the EN rule `capacity`."""
    summary = kind.summary().removesuffix(".") + "; the EN goes by room alone."
    body = {"rule": CapacityDispatcher, "__doc__": summary, "__module__": kind.__module__}
    return type(f"{kind.__name__}Capacity", (kind,), body)


class SelfTracking(Method):
    """No updates; the EN keeps its own books of what it has offloaded."""

    carries = NOTHING

    def dispatcher(self, setting: Setting) -> Dispatcher:
        """Books."""
        return SelfTrackingDispatcher(setting)


class PricedBooks(Method):
    """No updates; own books, and large tasks are refused the sooner the fuller the nodes are."""

    carries = NOTHING

    def __init__(self, most_cycles: PositiveFloat = 1.8e6, price: PositiveFloat = 2.5e4) -> None:
        self.most_cycles, self.price = most_cycles, price

    def dispatcher(self, setting: Setting) -> Dispatcher:
        """Books with a price."""
        return PricedBooksDispatcher(setting, self.most_cycles, self.price)


class Prequal(Method):
    """Probes of requests in flight and latency; lowest latency among the nodes that are not hot."""

    carries = PROBE

    def __init__(
        self,
        quantile: Share = 0.84,
        probes_per_task: PositiveFloat = 1.0,
        oldest_ms: PositiveFloat = 1000.0,
        most_uses: PositiveInt = 8,
    ) -> None:
        self.quantile, self.probes_per_task = quantile, probes_per_task
        self.oldest_ms, self.most_uses = oldest_ms, most_uses

    def updater(self, setting: Setting) -> Updater:
        """Probes at a rate in proportion to the tasks."""
        return PeriodicUpdater(1000.0 / (self.probes_per_task * setting.rate))

    def dispatcher(self, setting: Setting) -> Dispatcher:
        """Hot–cold rule."""
        return PrequalDispatcher(setting, self.quantile, self.oldest_ms, self.most_uses)


class AdmissionControl(AoiThreshold):
    """Rejects at random in proportion to recent failures, in front of `aoi-threshold`."""

    def __init__(
        self,
        threshold: Share = 0.95,
        aggression: PositiveFloat = 1.0,
        window_ms: PositiveFloat = 1000.0,
        most: Share = 0.8,
        kappa: PositiveFloat = 5.1,
    ) -> None:
        super().__init__(kappa)
        self.threshold, self.aggression = threshold, aggression
        self.window_ms, self.most = window_ms, most

    def dispatcher(self, setting: Setting) -> Dispatcher:
        """The filter and the rule behind it."""
        return AdmissionDispatcher(
            setting, self.threshold, self.aggression, self.window_ms, self.most
        )
