"""Methods that go by status, books or probes: pairs of an updater and a dispatcher."""

from cosmo.node import NOTHING, RAW, Dispatcher, Method, Site, Updater
from cosmo.policy.dispatchers import (
    AdaptivePricesDispatcher,
    AdmissionDispatcher,
    BackOffDispatcher,
    EstimateDispatcher,
    PrequalDispatcher,
    PricedBooksDispatcher,
    SelfTrackingDispatcher,
    StrictDispatcher,
)
from cosmo.policy.dispatchers.adaptive import HORIZON_MS
from cosmo.policy.dispatchers.prequal import PROBE
from cosmo.policy.parameters import Positive, PositiveInt, Share
from cosmo.policy.updaters import (
    AociOnlineUpdater,
    AoiThresholdUpdater,
    AovGapUpdater,
    NeverUpdater,
    PeriodicUpdater,
    ProbeUpdater,
)


class _OnRawState(Method):
    """The EN goes by the cached raw state; the paper's baselines with the rule `strict`."""

    carries = RAW
    rule: type[EstimateDispatcher] | type[StrictDispatcher] = StrictDispatcher

    def dispatcher(self, site: Site) -> Dispatcher:
        """The EN rule."""
        return self.rule(site)


class Periodic(_OnRawState):
    """Raw state every `interval_ms`; the EN takes the faster feasible route by it."""

    rule = EstimateDispatcher

    def __init__(self, interval_ms: Positive = 100.0) -> None:
        self.interval_ms = interval_ms

    def updater(self, site: Site) -> Updater:
        """By the clock."""
        return PeriodicUpdater(self.interval_ms)


class Never(_OnRawState):
    """No updates at all; the EN takes the SN to be idle."""

    rule = EstimateDispatcher

    def updater(self, site: Site) -> Updater:
        """Silent."""
        return NeverUpdater()


class AoiThreshold(_OnRawState):
    """Raw state when its acknowledged age reaches the theoretical optimum."""

    def __init__(self, kappa: Positive = 5.1) -> None:
        self.kappa = kappa

    def updater(self, site: Site) -> Updater:
        """By age."""
        return AoiThresholdUpdater(site, self.kappa)


class AovGap(_OnRawState):
    """Raw state when it has moved away from the acknowledged one."""

    def __init__(
        self,
        threshold: Positive = 0.048,
        check_ms: Positive = 1.0,
        timeout_ms: Positive = 50.0,
    ) -> None:
        self.threshold, self.check_ms, self.timeout_ms = threshold, check_ms, timeout_ms

    def updater(self, site: Site) -> Updater:
        """By content."""
        return AovGapUpdater(site, self.threshold, self.check_ms, self.timeout_ms)


class AociOnline(_OnRawState):
    """Raw state when the age of changed information reaches a threshold learned online."""

    def __init__(
        self,
        cost_ms2: Positive = 660.0,
        check_ms: Positive = 1.0,
        timeout_ms: Positive = 50.0,
    ) -> None:
        self.cost_ms2, self.check_ms, self.timeout_ms = cost_ms2, check_ms, timeout_ms

    def updater(self, site: Site) -> Updater:
        """By changed age."""
        return AociOnlineUpdater(site, self.cost_ms2, self.check_ms, self.timeout_ms)


def by_estimate(kind: type[_OnRawState]) -> type[_OnRawState]:
    """The same updates, with the stronger EN rule `estimate`."""
    summary = kind.summary().removesuffix(".") + "; the EN takes the faster feasible route."
    body = {"rule": EstimateDispatcher, "__doc__": summary, "__module__": kind.__module__}
    return type(f"{kind.__name__}Estimate", (kind,), body)


class SelfTracking(Method):
    """No updates; the EN keeps its own books of what it has offloaded."""

    carries = NOTHING

    def dispatcher(self, site: Site) -> Dispatcher:
        """Books."""
        return SelfTrackingDispatcher(site)


class PricedBooks(Method):
    """No updates; own books, and large tasks are refused the sooner the fuller the nodes are."""

    carries = NOTHING

    def __init__(self, most_cycles: Positive = 1.8e6, price: Positive = 2.5e4) -> None:
        self.most_cycles, self.price = most_cycles, price

    def dispatcher(self, site: Site) -> Dispatcher:
        """Books with a price."""
        return PricedBooksDispatcher(site, self.most_cycles, self.price)


class AdaptivePrices(Method):
    """No updates; own books, and a price that follows the arrivals of the last `horizon_ms`."""

    carries = NOTHING

    def __init__(self, horizon_ms: Positive = HORIZON_MS) -> None:
        self.horizon_ms = horizon_ms

    def dispatcher(self, site: Site) -> Dispatcher:
        """Books with a price for each load."""
        return AdaptivePricesDispatcher(site, self.horizon_ms)


class BackOff(Method):
    """No updates; own books, and a pause for an SN that refused a task or was late with it."""

    carries = NOTHING

    def __init__(self, pause_ms: Positive = 25.0) -> None:
        self.pause_ms = pause_ms

    def dispatcher(self, site: Site) -> Dispatcher:
        """Books with pauses."""
        return BackOffDispatcher(site, self.pause_ms)


class Prequal(Method):
    """Probes of requests in flight and latency; lowest latency among the nodes that are not hot."""

    carries = PROBE

    def __init__(
        self,
        quantile: Share = 0.84,
        probes_per_task: Positive = 1.0,
        oldest_ms: Positive = 1000.0,
        most_uses: PositiveInt = 8,
    ) -> None:
        self.quantile, self.probes_per_task = quantile, probes_per_task
        self.oldest_ms, self.most_uses = oldest_ms, most_uses

    def updater(self, site: Site) -> Updater:
        """Probes at a rate in proportion to the tasks."""
        return ProbeUpdater(1000.0 / (self.probes_per_task * site.tasks.rate))

    def dispatcher(self, site: Site) -> Dispatcher:
        """Hot–cold rule."""
        return PrequalDispatcher(site, self.quantile, self.oldest_ms, self.most_uses)


class AdmissionControl(AoiThreshold):
    """Rejects at random in proportion to recent failures, in front of `aoi-threshold/estimate`."""

    def __init__(
        self,
        threshold: Share = 0.95,
        aggression: Positive = 1.0,
        window_ms: Positive = 1000.0,
        most: Share = 0.8,
        kappa: Positive = 5.1,
    ) -> None:
        super().__init__(kappa)
        self.threshold, self.aggression = threshold, aggression
        self.window_ms, self.most = window_ms, most

    def dispatcher(self, site: Site) -> Dispatcher:
        """The filter and the rule behind it."""
        return AdmissionDispatcher(site, self.threshold, self.aggression, self.window_ms, self.most)
