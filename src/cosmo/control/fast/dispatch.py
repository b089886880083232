"""Rules at the EN, compiled: `policy.fixed`, `policy.dispatchers` and the yardstick."""

import numpy as np

from cosmo.control.fast.admission import turned_away
from cosmo.control.fast.books import by_books, write
from cosmo.control.fast.friends import drawn, expected, remember
from cosmo.control.fast.prices import count, too_dear
from cosmo.control.fast.probes import best_probed, count_use
from cosmo.control.fast.records import (
    ADAPTIVE,
    ADMISSION,
    ESTIMATE,
    FRIENDS,
    IN_TURN,
    LOCAL,
    PREQUAL,
    PRICED,
    RANDOM,
    STRICT,
    TRUTH,
    UNTIL_FULL,
)
from cosmo.control.fast.told import told
from cosmo.control.fast.way import upload_ms
from cosmo.node import IDLE, NOBODY, STORAGE, WORK
from cosmo.world.compiled import compiled


@compiled
def _reached(turn, row):
    count = 0
    for column in range(turn.reached.shape[1]):
        count += 1 if turn.reached[row, column] != NOBODY else 0
    return count


@compiled
def _in_turn(turn, row):
    return 1 + turn.dispatch[row].task % _reached(turn, row)


@compiled
def _at_random(memory, turn, row):
    """`chance.RandomDispatcher`."""
    task, reached = turn.dispatch[row], _reached(turn, row)
    drawn = np.int64(memory.draws[task.world, task.task, 0] * (reached + 2))
    return turn.reached.shape[1] + 1 if drawn > reached else drawn


@compiled
def _by_truth(turn, row):
    best, delay = turn.feasible.shape[1], np.inf
    for route in range(turn.feasible.shape[1]):
        if turn.feasible[row, route] and turn.estimate[row, route] < delay:
            best, delay = route, turn.estimate[row, route]
    return best


@compiled
def _wait_and_room(known, memory, rule, turn, row, column, needed, arrival, fresh):
    """How long a task would wait at an SN, and whether that has room for it."""
    if rule in (ESTIMATE, ADMISSION):
        idle = told(known, turn, row, column, fresh, IDLE) > 0
        work = told(known, turn, row, column, fresh, WORK)
        room = told(known, turn, row, column, fresh, STORAGE) >= needed
        rate = known.sn_full_rate[turn.reached[row, column]]
        return (0.0 if idle else work / rate), room
    if rule == FRIENDS:
        wait, room = expected(known, memory.friends, turn, row, column, needed)
        return wait, room and drawn(memory.friends, memory.draws, turn, row, column)
    return by_books(known, memory.books, turn, row, column, needed, arrival)


@compiled
def _faster_feasible(known, memory, rule, turn, row, fresh):
    """`dispatchers.estimate.faster_feasible`."""
    task = turn.dispatch[row]
    elapsed = task.time_ms - task.generated_ms
    needed = max(task.input_bytes, known.reservation_floor)
    best, least = turn.reached.shape[1] + 1, np.inf
    delay = elapsed + task.local_wait_ms + task.cycles / known.en_speed[task.en]
    if task.local_room and delay <= task.deadline_ms:
        best, least = 0, delay
    for column in range(turn.reached.shape[1]):
        sn = turn.reached[row, column]
        if sn == NOBODY:
            break
        upload = upload_ms(known, turn, row, column)
        arrival = task.time_ms + upload
        wait, room = _wait_and_room(known, memory, rule, turn, row, column, needed, arrival, fresh)
        back = known.result_ms[task.en, column]
        delay = elapsed + upload + wait + task.cycles / known.sn_speed[sn] + back
        if room and delay <= task.deadline_ms and delay < least:
            best, least = column + 1, delay
    return best


@compiled
def _strict(known, turn, row, fresh):
    """`dispatchers.strict`."""
    task = turn.dispatch[row]
    elapsed = task.time_ms - task.generated_ms
    local_ms = (task.en_state[WORK] + task.cycles) / known.en_speed[task.en]
    if task.local_room and elapsed + local_ms <= task.deadline_ms:
        return 0
    best, work = 0, told(known, turn, row, 0, fresh, WORK)
    for column in range(1, turn.reached.shape[1]):
        if turn.reached[row, column] == NOBODY:
            break
        other = told(known, turn, row, column, fresh, WORK)
        if other < work:
            best, work = column, other
    served_ms = (work + task.cycles) / known.sn_speed[turn.reached[row, best]]
    way_ms = upload_ms(known, turn, row, best) + known.result_ms[task.en, best]
    needed = max(task.input_bytes, known.reservation_floor)
    room = told(known, turn, row, best, fresh, STORAGE) >= needed
    if room and elapsed + way_ms + served_ms <= task.deadline_ms:
        return 1 + best
    return turn.reached.shape[1] + 1


@compiled
def _refused(known, memory, rule, turn, row):
    """Whether a task is rejected before any route is looked at."""
    if rule in (PRICED, ADAPTIVE):
        return too_dear(known, memory.books, memory.prices, turn, row, rule == ADAPTIVE)
    if rule == ADMISSION:
        task = turn.dispatch[row]
        return turned_away(memory.admission, memory.draws[task.world, task.task, 0], task)
    return False


@compiled
def chosen(known, memory, rule, turn, row, fresh):
    """The action of a rule, without any effect; `fresh`: as if all statuses were of now."""
    if rule == LOCAL:
        return 0
    if rule == IN_TURN:
        return _in_turn(turn, row)
    if rule == UNTIL_FULL:
        return 0 if turn.dispatch[row].local_room else _in_turn(turn, row)
    if rule == TRUTH:
        return _by_truth(turn, row)
    if rule == STRICT:
        return _strict(known, turn, row, fresh)
    if rule == PREQUAL:
        return best_probed(memory.probes, turn, row, fresh)
    if rule == RANDOM:
        return _at_random(memory, turn, row)
    if _refused(known, memory, rule, turn, row):
        return turn.reached.shape[1] + 1
    return _faster_feasible(known, memory, rule, turn, row, fresh)


@compiled
def write_down(known, memory, rule, turn, row, action):
    """What a rule remembers of a decision: arrivals, and what was sent where. Not all do."""
    if rule == ADAPTIVE:
        count(memory.prices, turn, row)
    if rule == PREQUAL:
        count_use(memory.probes, turn, row, action)
        return
    if action == 0 or action > turn.reached.shape[1]:
        return
    task, column = turn.dispatch[row], action - 1
    needed = max(task.input_bytes, known.reservation_floor)
    arrival = task.time_ms + upload_ms(known, turn, row, column)
    if rule == FRIENDS:
        remember(memory.friends, turn, row, column, arrival, needed)
    else:
        write(known, memory.books, turn, row, column, arrival, needed)
