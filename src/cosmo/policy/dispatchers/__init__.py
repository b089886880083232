"""Who decides at the ENs, from a cached state, from books of their own, or from probes."""

from cosmo.policy.dispatchers.adaptive import AdaptivePricesDispatcher
from cosmo.policy.dispatchers.admission import AdmissionDispatcher
from cosmo.policy.dispatchers.back_off import BackOffDispatcher
from cosmo.policy.dispatchers.books import SelfTrackingDispatcher
from cosmo.policy.dispatchers.estimate import EstimateDispatcher
from cosmo.policy.dispatchers.prequal import PrequalDispatcher
from cosmo.policy.dispatchers.priced import PricedBooksDispatcher
from cosmo.policy.dispatchers.strict import StrictDispatcher

__all__ = [
    "AdaptivePricesDispatcher",
    "AdmissionDispatcher",
    "BackOffDispatcher",
    "EstimateDispatcher",
    "PrequalDispatcher",
    "PricedBooksDispatcher",
    "SelfTrackingDispatcher",
    "StrictDispatcher",
]
