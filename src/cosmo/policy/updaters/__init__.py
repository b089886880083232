"""Who decides at the SNs: when to send the state, and when to look again."""

from cosmo.policy.updaters.aoci_online import AociOnlineUpdater
from cosmo.policy.updaters.aoi_threshold import AoiThresholdUpdater
from cosmo.policy.updaters.aov_gap import AovGapUpdater
from cosmo.policy.updaters.periodic import NeverUpdater, PeriodicUpdater, ProbeUpdater

__all__ = [
    "AociOnlineUpdater",
    "AoiThresholdUpdater",
    "AovGapUpdater",
    "NeverUpdater",
    "PeriodicUpdater",
    "ProbeUpdater",
]
