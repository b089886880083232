"""ENs that go by a compiled rule, while an SN is somebody else's agent.

An SN decides some fifteen times a second, its ENs on hundreds of tasks meanwhile. Asking Python for
each of these is most of what a step of `cosmo/Update-v0` would cost; here they are decided without
leaving compiled code, as `policy` decides them (tests check that).
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from cosmo import node as node_room
from cosmo.control import fast
from cosmo.control.fast.dispatch import chosen
from cosmo.control.fast.forms import blank_memory, en_rule, known_of
from cosmo.control.fast.records import WITHOUT_MEMORY
from cosmo.node import Dispatcher, Site
from cosmo.policy import dispatchers
from cosmo.world import kernel
from cosmo.world.compiled import entry_point, fingerprint_of
from cosmo.world.records import EN_ROWS, ERROR, HOLDING, SN_TURN, STALLED

_advance = kernel.advance


def compiled_play(dispatcher: Dispatcher, site: Site) -> Callable[..., None] | None:
    """What `Worlds.advance_playing` wants, if there is a compiled form of this dispatcher.

    Only of rules that remember nothing: worlds start anew one by one, and a memory would have to.
    """
    rule = en_rule(dispatcher)
    if rule not in WITHOUT_MEMORY:
        return None
    known, memory = known_of(site), blank_memory(site, dispatcher)
    return lambda constants, state, turn: play(constants, state, turn, rule, known, memory)


def _entry_point(fingerprint: str) -> Any:
    @entry_point
    def play(constants, state, turn, rule, known, memory):
        """Run every world on, and answer all ENs by the rule, until only SNs are asked.

        Returns early if a world has no room left (counts[STALLED]); the next call goes on.
        """
        _ = fingerprint  # part of the cache key
        while True:
            _advance(constants, state, turn)
            if turn.counts[STALLED] > 0 or turn.counts[ERROR] != 0 or turn.counts[EN_ROWS] == 0:
                return
            for n in range(turn.counts[EN_ROWS]):
                turn.action[n] = chosen(known, memory, rule, turn, n, False)
            turn.counts[HOLDING] = SN_TURN  # SNs that have been asked wait for their answer

    return play


def _fingerprint() -> str:
    """Of everything that is compiled in; Numba looks at this file itself."""
    return fingerprint_of(
        *(Path(str(room.__file__)).parent for room in (kernel, node_room, fast, dispatchers))
    )


play = _entry_point(_fingerprint())
