"""What changes while `cosmo-next` learns; `done` is the share of the rounds that are done."""

from cosmo.learn.next.config import ScheduleConfig


def trace_at(done: float, final: float, config: ScheduleConfig) -> float:
    """λ: while values are far off, long returns put them right in fewer rounds; later, short ones
    have less noise.
    """
    early = max(0.0, 1.0 - done / config.early)
    return final + early * max(0.0, config.first_trace - final)


def rate_at(done: float, first: float, config: ScheduleConfig) -> float:
    """Of learning: constant, then falling to next to nothing, so that the noise settles."""
    return first * min(1.0, (1.0 - done) / (1.0 - config.constant) + config.last)
