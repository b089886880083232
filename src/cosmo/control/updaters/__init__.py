"""Who decides at the SNs: when to send the state, and when to look again."""

from cosmo.control.updaters.aoci_online import AociOnlineUpdater
from cosmo.control.updaters.aoi_threshold import AoiThresholdUpdater
from cosmo.control.updaters.aov_gap import AovGapUpdater
from cosmo.control.updaters.periodic import NeverUpdater, PeriodicUpdater

__all__ = [
    "AociOnlineUpdater",
    "AoiThresholdUpdater",
    "AovGapUpdater",
    "NeverUpdater",
    "PeriodicUpdater",
]
