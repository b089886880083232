"""What an EN has been told, compiled: `policy.dispatchers.raw`."""

from cosmo.world.compiled import compiled


@compiled
def told(known, turn, row, column, fresh, k):
    """A number of the raw status: as it was told, as it is (`fresh`), or of an idle SN."""
    if fresh:
        return turn.true_state[row, column, k]
    source = turn.status_source[row, column]
    if source == source:
        return turn.status[row, column, k]
    return known.sn_idle[turn.reached[row, column], k]
