"""Wrappers for the single environments, one a file."""

from cosmo.envs.wrappers.discount import SemiMarkovDiscount
from cosmo.envs.wrappers.masks import ActionMasks
from cosmo.envs.wrappers.named import NamedObservation
from cosmo.envs.wrappers.record import RecordEpisode

__all__ = ["ActionMasks", "NamedObservation", "RecordEpisode", "SemiMarkovDiscount"]
