"""Methods for many ENs that share many SNs: few are compared, few are told."""

from cosmo.errors import InputError
from cosmo.node import RAW, Dispatcher, Method, Site, Updater
from cosmo.policy.dispatchers.power_of_d import ONE_NUMBER, PowerOfDDispatcher
from cosmo.policy.parameters import Positive, PositiveInt
from cosmo.policy.updaters.to_friends import MovedUpdater, RegularUpdater, RidingUpdater


class _AmongFriends(Method):
    """The best of `d` SNs drawn at random of the `keep` that an EN keeps to."""

    def __init__(self, d: PositiveInt, keep: PositiveInt, numbers: PositiveInt) -> None:
        if numbers not in (ONE_NUMBER, RAW):
            raise InputError(f"numbers = {numbers}: must be {ONE_NUMBER} or {RAW}")
        self.d, self.keep, self.carries = d, keep, numbers

    def dispatcher(self, site: Site) -> Dispatcher:
        """Draws of its own for every world."""
        return PowerOfDDispatcher(site, self.d, self.keep, self.carries)


class PowerOfD(_AmongFriends):
    """The best of d random SNs of the few that an EN keeps to and that alone tell it."""

    def __init__(
        self,
        d: PositiveInt = 2,
        keep: PositiveInt = 3,
        numbers: PositiveInt = ONE_NUMBER,
        threshold_ms: Positive = 15.0,
        interval_ms: Positive | None = None,
        check_ms: Positive = 1.0,
    ) -> None:
        super().__init__(d, keep, numbers)
        self.threshold_ms, self.interval_ms, self.check_ms = threshold_ms, interval_ms, check_ms

    def updater(self, site: Site) -> Updater:
        """When the wait has moved by `threshold_ms`; or every `interval_ms`, if that is given."""
        if self.interval_ms is not None:
            return RegularUpdater(site, self.keep, self.carries, self.interval_ms)
        return MovedUpdater(site, self.keep, self.carries, self.threshold_ms, self.check_ms)


class Piggyback(_AmongFriends):
    """The same choice; statuses ride on results, as load reports of remote calls do."""

    def __init__(
        self,
        d: PositiveInt = 2,
        keep: PositiveInt = 3,
        numbers: PositiveInt = ONE_NUMBER,
        gap_ms: Positive = 1.0,
    ) -> None:
        super().__init__(d, keep, numbers)
        self.gap_ms = gap_ms

    def updater(self, site: Site) -> Updater:
        """On results, `gap_ms` apart at least."""
        return RidingUpdater(site, self.keep, self.carries, self.gap_ms)
