"""Fits the parameters of the multi-node controller: random sites, evolution strategies."""
