"""Comparisons of methods, and their figures."""

from cosmo.study.comparison import Comparison, compare
from cosmo.study.reported import reported

__all__ = ["Comparison", "compare", "reported"]
