"""The way to an SN, compiled."""

from cosmo.node import units
from cosmo.world.compiled import compiled

_MBPS = units.BYTES_PER_MS
_transfer_ms = compiled(units.transfer_ms)


@compiled
def upload_ms(known, turn, row, column):
    """`Site.upload_ms`."""
    task = turn.dispatch[row]
    way = _transfer_ms(
        task.input_bytes,
        turn.up_link[row, column, 0] * _MBPS,
        known.hops[task.en, column],
        known.hop_delay_ms[task.en, column],
        known.packet_bytes,
    )
    return turn.up_backlog[row, column] + way
