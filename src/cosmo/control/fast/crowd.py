"""`cosmo-next` of a crowd, compiled: `policy.next.crowd`, by the same formulas."""

import numpy as np

from cosmo.control.fast.way import upload_ms
from cosmo.node import NOBODY, REFUSED, STORAGE, WORK
from cosmo.policy.next.crowd import formulas
from cosmo.policy.next.crowd.books import ENTRIES
from cosmo.policy.next.crowd.sn import NEAR, SAME_MS
from cosmo.world.compiled import compiled, compiled_module

_of = compiled_module(formulas)
_later, _still_full, _faded, _smoothed = _of.later, _of.still_full, _of.faded, _of.smoothed
_chance, _use = _of.chance, _of.use
_number, _read_number = _of.number, _of.read_number
_news, _worth = _of.news, _of.worth


@compiled
def _gain(crowd, world, en, column, now):
    """`Books.gain`."""
    p = crowd.numbers
    elapsed = now - crowd.flow_at[world, en, column]
    flow = _faded(crowd.flow[world, en, column], elapsed, p.flow_ms)
    return p.rivals * crowd.rivals[en, column] * flow


@compiled
def _start(crowd, world, en, column, work, source, gain):
    """`Books._start`."""
    at = source
    first = crowd.next_entry[world, en, column]
    for place in range(first, first + ENTRIES):
        entry = place % ENTRIES
        arrival = crowd.arrival[world, en, column, entry]
        if arrival > source:
            own = crowd.own_work[world, en, column, entry]
            work = _later(work, max(arrival - at, 0.0), gain, crowd.numbers) + own
            at = max(arrival, at)
    crowd.work[world, en, column] = work
    crowd.work_at[world, en, column] = at
    crowd.source[world, en, column] = source


@compiled
def _take_status(crowd, turn, row, column, now):
    """`Books.take_status`."""
    task = turn.dispatch[row]
    world, en, source = task.world, task.en, turn.status_source[row, column]
    if not source > crowd.source[world, en, column]:  # never where it is NaN
        return
    told = turn.status[row, column, 0]
    work, full = _read_number(told, crowd.longest_ms)
    _start(crowd, world, en, column, work, source, _gain(crowd, world, en, column, now))
    crowd.full_at[world, en, column] = source if full else -np.inf


@compiled
def hear(known, crowd, turn, row):
    """`Books.observe`."""
    told = turn.feedback[row]
    if told.action < 1 or told.action > crowd.source.shape[2]:
        return
    world, en, column = told.world, told.en, told.action - 1
    entry = -1
    for place in range(ENTRIES):
        if crowd.task[world, en, column, place] == told.task:
            entry = place
            break
    if entry < 0:
        return
    p, now = crowd.numbers, told.time_ms
    arrival = crowd.arrival[world, en, column, entry]
    own = crowd.own_work[world, en, column, entry]
    crowd.task[world, en, column, entry] = -1
    if told.fate == REFUSED:
        crowd.work[world, en, column] = max(crowd.work[world, en, column] - own, 0.0)
        if arrival > crowd.source[world, en, column]:
            crowd.source[world, en, column] = arrival
            crowd.full_at[world, en, column] = arrival
        return
    elapsed = max(now - crowd.blame_at[world, en, column], 0.0)
    left = _faded(crowd.blame[world, en, column], elapsed, p.blame_ms)
    crowd.blame[world, en, column] = 0.5 * left if told.in_time else left + 1.0
    crowd.blame_at[world, en, column] = now
    if arrival <= crowd.source[world, en, column]:
        return
    sn = crowd.reach[en, column]
    service = own * known.sn_full_rate[sn] / known.sn_speed[sn]
    waited = now - known.result_ms[en, column] - arrival - service
    ease = p.ease * crowd.ease_ms[sn]
    before = waited + ease if waited > 0.5 else 0.5 * ease
    gain = _gain(crowd, world, en, column, now)
    _start(crowd, world, en, column, before + own, arrival, gain)
    crowd.full_at[world, en, column] = -np.inf


@compiled
def _send(known, crowd, turn, row, column, arrival, gain):
    """`Books.send`."""
    p, task = crowd.numbers, turn.dispatch[row]
    world, en, now = task.world, task.en, task.time_ms
    own = task.cycles / known.sn_full_rate[turn.reached[row, column]]
    elapsed = max(arrival - crowd.work_at[world, en, column], 0.0)
    crowd.work[world, en, column] = _later(crowd.work[world, en, column], elapsed, gain, p) + own
    crowd.work_at[world, en, column] = max(arrival, crowd.work_at[world, en, column])
    gap = now - crowd.flow_at[world, en, column]
    crowd.flow[world, en, column] = _smoothed(crowd.flow[world, en, column], own, gap, p.flow_ms)
    crowd.flow_at[world, en, column] = now
    entry = crowd.next_entry[world, en, column] % ENTRIES
    crowd.task[world, en, column, entry] = task.task
    crowd.arrival[world, en, column, entry] = arrival
    crowd.own_work[world, en, column, entry] = own
    crowd.next_entry[world, en, column] += 1


@compiled
def _weighed(known, crowd, turn, row, column, upload, gain):
    """`CrowdDispatcher.expected`: the chance at an SN, and the delay."""
    p, task = crowd.numbers, turn.dispatch[row]
    world, en, now = task.world, task.en, task.time_ms
    sn = turn.reached[row, column]
    elapsed = max(now + upload - crowd.work_at[world, en, column], 0.0)
    work = _later(crowd.work[world, en, column], elapsed, gain, p)
    wait = max(work - p.ease * crowd.ease_ms[sn], 0.0)
    delay = upload + wait + task.cycles / known.sn_speed[sn] + known.result_ms[en, column]
    full = _still_full(now - crowd.full_at[world, en, column], p)
    blame_age = now - crowd.blame_at[world, en, column]
    blame = _faded(crowd.blame[world, en, column], blame_age, p.blame_ms)
    slack = (task.generated_ms + task.deadline_ms - now) - delay
    age = now - crowd.source[world, en, column]
    return _chance(slack, age, gain, full, blame, p), delay


@compiled
def _load_beyond(crowd, task):
    """`CrowdDispatcher._prices`: load beyond which capacity has a price, times the task's size."""
    p, world, en = crowd.numbers, task.world, task.en
    share = task.cycles / crowd.capacity[en]
    gap = max(task.generated_ms - crowd.load_at[world, en], 0.0)
    load = _smoothed(crowd.load[world, en], share, gap, p.load_ms)
    crowd.load[world, en] = load
    crowd.load_at[world, en] = task.generated_ms
    return max(load - p.price_from, 0.0) * task.cycles / crowd.mean_cycles


@compiled
def dispatch(known, crowd, turn, row):
    """`CrowdDispatcher.decide`."""
    p, task = crowd.numbers, turn.dispatch[row]
    world, en, now = task.world, task.en, task.time_ms
    beyond = _load_beyond(crowd, task)
    price, columns = p.price * beyond, turn.reached.shape[1]
    best, most, best_worth, best_arrival, best_gain = -1, -np.inf, 0.0, 0.0, 0.0
    for column in range(columns):
        if turn.reached[row, column] == NOBODY:
            break
        if not crowd.kept[en, column]:
            continue
        _take_status(crowd, turn, row, column, now)
        upload = upload_ms(known, turn, row, column)
        gain = _gain(crowd, world, en, column, now)
        in_time, delay = _weighed(known, crowd, turn, row, column, upload, gain)
        worth = in_time - p.failure * (1.0 - in_time) - price
        score = worth - p.haste * delay / crowd.longest_ms
        score = score + p.noise * crowd.draws[world, task.task, column]
        if score > most:
            best, most, best_worth = column, score, worth
            best_arrival, best_gain = now + upload, gain
    served = task.local_wait_ms + task.cycles / known.en_speed[en]
    slack = task.generated_ms + task.deadline_ms - now
    home = task.local_room and served <= slack
    worth_home = 1.0 - p.price_home * beyond
    score_home = worth_home + p.home - p.haste * served / crowd.longest_ms
    if best >= 0 and (not home or most > score_home):
        if best_worth > 0.0:
            _send(known, crowd, turn, row, best, best_arrival, best_gain)
            return best + 1
        return columns + 1
    return 0 if home and worth_home > 0.0 else columns + 1


@compiled
def _pressure(crowd, node, full):
    """`CrowdUpdater._pressure`."""
    world, sn = node.world, node.sn
    passed = node.time_ms - crowd.pressed_at[world, sn]
    before = crowd.pressure[world, sn]
    crowd.pressure[world, sn] = _smoothed(before, full * passed, passed, crowd.numbers.press_ms)
    crowd.pressed_at[world, sn] = node.time_ms
    return crowd.pressure[world, sn]


@compiled
def _forget_lost(crowd, turn, row, column):
    """`CrowdUpdater._forget_lost`."""
    node = turn.update[row]
    world, sn, made = node.world, node.sn, turn.acknowledged_source[row, column]
    told_at = crowd.told_at[world, sn, column]
    overdue = node.time_ms - told_at > crowd.numbers.patience_ms
    if not overdue or made >= told_at - SAME_MS:
        return
    heard = made == made
    work, full = _read_number(turn.acknowledged[row, column, 0], crowd.longest_ms)
    crowd.told_work[world, sn, column] = work if heard else 0.0
    crowd.told_full_at[world, sn, column] = made if heard and full else -np.inf
    crowd.told_at[world, sn, column] = made if heard else 0.0


@compiled
def tell(known, crowd, turn, row):
    """`CrowdUpdater.decide`."""
    p, node = crowd.numbers, turn.update[row]
    world, sn, now = node.world, node.sn, node.time_ms
    full = 1.0 if node.sn_state[STORAGE] < crowd.largest_bytes else 0.0
    told = _number(node.sn_state[WORK] / known.sn_full_rate[sn], full, crowd.longest_ms)
    work, no_room = _read_number(told, crowd.longest_ms)
    full = 1.0 if no_room else 0.0
    use = _use(work, full, p)
    pressed = 1.0 + p.press * _pressure(crowd, node, full)
    near = False
    for column in range(turn.send.shape[1]):
        turn.send[row, column] = False
        if not crowd.told[sn, column]:
            continue
        _forget_lost(crowd, turn, row, column)
        age = now - crowd.told_at[world, sn, column]
        left = _later(crowd.told_work[world, sn, column], age, crowd.gain[sn, column], p)
        still = _still_full(now - crowd.told_full_at[world, sn, column], p)
        fresh = _news(use, _use(left, still, p), full, still, p)
        passed = now - crowd.looked_at[world, sn, column]
        untold = _faded(crowd.untold[world, sn, column], passed, p.usage_ms) + fresh * passed
        worth = _worth(fresh, untold, age, p) * crowd.usage[sn, column]
        worth = worth * (1.0 + p.stagger * crowd.phase[sn, column]) * pressed
        crowd.untold[world, sn, column] = untold
        crowd.looked_at[world, sn, column] = now
        near = near or worth > NEAR * crowd.price
        if worth > crowd.price:
            turn.send[row, column] = True
            crowd.told_work[world, sn, column] = work
            crowd.told_at[world, sn, column] = now
            crowd.untold[world, sn, column] = 0.0
            crowd.told_full_at[world, sn, column] = now if no_room else -np.inf
    turn.numbers[row, 0] = told
    turn.interval[row] = p.look_ms if near else p.rest_ms
