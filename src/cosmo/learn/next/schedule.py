"""What changes while `cosmo-next` learns; `done` is the share of the rounds that are done."""

_FIRST_TRACE, _EARLY = 0.95, 0.6
_CONSTANT, _LAST = 1.0 / 3.0, 0.03


def trace_at(done: float, final: float) -> float:
    """λ: while values are far off, long returns put them right in fewer rounds; later, short ones
    have less noise.
    """
    early = max(0.0, 1.0 - done / _EARLY)
    return final + early * max(0.0, _FIRST_TRACE - final)


def rate_at(done: float, first: float) -> float:
    """Of learning: constant, then falling to next to nothing, so that the noise settles."""
    return first * min(1.0, (1.0 - done) / (1.0 - _CONSTANT) + _LAST)
