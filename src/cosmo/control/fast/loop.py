"""The one loop, compiled: decide, run on to the next decisions, decide again."""

from pathlib import Path
from typing import Any

from cosmo import node as node_room
from cosmo.control.fast import crowd
from cosmo.control.fast.admission import note_end
from cosmo.control.fast.books import pause
from cosmo.control.fast.dispatch import chosen, write_down
from cosmo.control.fast.probes import note_requests
from cosmo.control.fast.records import (
    ADMISSION,
    BACK_OFF,
    CROWD,
    FRIENDS,
    OWN_BOOKS,
    PREQUAL,
)
from cosmo.control.fast.update import ride, update
from cosmo.policy import dispatchers, updaters
from cosmo.policy.next import crowd as crowd_room
from cosmo.world import kernel
from cosmo.world.compiled import compiled, entry_point, fingerprint_of
from cosmo.world.records import EN_ROWS, FEEDBACK_ROWS, RIDE_ROWS, SN_ROWS, STALLED, UNFINISHED


@compiled
def _dispatch(rules, known, memory, turn, row):
    if rules.en == CROWD:
        turn.action[row] = crowd.dispatch(known, memory.crowd, turn, row)
        return
    task, fresh = turn.dispatch[row], 0
    counted = rules.regret and task.generated_ms >= rules.warmup_ms
    if counted:  # before the decision, which may change what is remembered
        fresh = chosen(known, memory, rules.en, turn, row, True)
    if rules.en == PREQUAL:
        note_requests(memory.probes, turn, row)
    action = chosen(known, memory, rules.en, turn, row, False)
    turn.action[row] = action
    if rules.en in (FRIENDS, PREQUAL) or rules.en in OWN_BOOKS:
        write_down(known, memory, rules.en, turn, row, action)
    if counted:
        memory.decisions[task.world] += 1
        memory.regretted[task.world] += 1 if fresh != action else 0


@compiled
def _hear(rules, known, memory, turn, row):
    if rules.en == CROWD:
        crowd.hear(known, memory.crowd, turn, row)
    elif rules.en == BACK_OFF:
        pause(memory.books, turn, row)
    elif rules.en == ADMISSION:
        note_end(memory.admission, turn, row)


# Linked in as it is: handing over its arrays costs less than a decision, and compiling it again
# would take several times as long as all the rules do. Not a variable of the function around `run`:
# those are part of the cache key, and a compiled function is another one there in every process.
_advance = kernel.advance


def _entry_point(fingerprint: str) -> Any:
    @entry_point
    def run(constants, state, turn, rules, known, memory, turns):
        """So many turns of all worlds; fewer if all are over, or one needs more room."""
        _ = fingerprint  # part of the cache key
        for _turn in range(turns):
            if turn.counts[STALLED] == 0:
                for row in range(turn.counts[FEEDBACK_ROWS]):
                    _hear(rules, known, memory, turn, row)
                for row in range(turn.counts[EN_ROWS]):
                    _dispatch(rules, known, memory, turn, row)
                for row in range(turn.counts[SN_ROWS]):
                    update(rules, known, memory, turn, row)
                for row in range(turn.counts[RIDE_ROWS]):
                    ride(rules, known, memory, turn, row)
            _advance(constants, state, turn)
            if turn.counts[STALLED] > 0 or turn.counts[UNFINISHED] == 0:
                return

    return run


def _fingerprint() -> str:
    rooms = kernel, node_room, crowd_room, dispatchers, updaters
    folders = [Path(str(room.__file__)).parent for room in rooms]
    return fingerprint_of(*folders, Path(__file__).parent)


run = _entry_point(_fingerprint())
