"""Dispatchers, updaters and trained controllers at work: on `cosmo.node` and NumPy alone.

`registry` has the methods by name; the same objects run in the world, on ns-3 and on real nodes.
"""
