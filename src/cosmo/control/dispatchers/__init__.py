"""Who decides at the ENs, from a cached state, from books of their own, or from probes."""

from cosmo.control.dispatchers.admission import AdmissionDispatcher
from cosmo.control.dispatchers.books import SelfTrackingDispatcher
from cosmo.control.dispatchers.capacity import CapacityDispatcher
from cosmo.control.dispatchers.estimate import EstimateDispatcher
from cosmo.control.dispatchers.prequal import PrequalDispatcher
from cosmo.control.dispatchers.priced import PricedBooksDispatcher

__all__ = [
    "AdmissionDispatcher",
    "CapacityDispatcher",
    "EstimateDispatcher",
    "PrequalDispatcher",
    "PricedBooksDispatcher",
    "SelfTrackingDispatcher",
]
