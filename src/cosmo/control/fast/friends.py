"""`power-of-d`, compiled: the best of a few SNs drawn at random, and updates for friends alone."""

from cosmo.control.fast.told import told
from cosmo.node import IDLE, STORAGE, WORK
from cosmo.policy.dispatchers.power_of_d import ENTRIES, ONE_NUMBER
from cosmo.world.compiled import compiled


@compiled
def drawn(friends, every_draw, turn, row, column):
    """`PowerOfDDispatcher.drawn`: whether a task may go to an SN."""
    task = turn.dispatch[row]
    if not friends.kept[task.en, column]:
        return False
    draws, earlier = every_draw[task.world, task.task], 0
    for other in range(draws.size):
        if friends.kept[task.en, other] and draws[other] < draws[column]:
            earlier += 1
    return earlier < friends.d


@compiled
def expected(known, friends, turn, row, column, needed):
    """`PowerOfDDispatcher.expected`: the wait at an SN, and whether there is room."""
    task, sn = turn.dispatch[row], turn.reached[row, column]
    source = turn.status_source[row, column]
    heard = source == source
    since = source if heard else 0.0
    later, cycles, reserved = 0, 0.0, 0.0
    for entry in range(ENTRIES):
        if friends.arrival[task.world, task.en, column, entry] > since:
            later += 1
            cycles += friends.cycles[task.world, task.en, column, entry]
            reserved += friends.reserved[task.world, task.en, column, entry]
    rate, age = known.sn_full_rate[sn], task.time_ms - since
    own_ms = cycles / rate
    if friends.numbers == ONE_NUMBER:
        wait = turn.status[row, column, 0]
        return max(wait + own_ms - age, 0.0), not (heard and wait >= friends.longest_ms)
    idle = told(known, turn, row, column, False, IDLE) > later
    work_ms = told(known, turn, row, column, False, WORK) / rate + own_ms - age
    room = told(known, turn, row, column, False, STORAGE) - reserved >= needed
    return (0.0 if idle else max(work_ms, 0.0)), room


@compiled
def remember(friends, turn, row, column, arrival, needed):
    """`PowerOfDDispatcher._remember`: what was sent to whom."""
    task = turn.dispatch[row]
    entry = friends.next_entry[task.world, task.en, column] % ENTRIES
    friends.arrival[task.world, task.en, column, entry] = arrival
    friends.cycles[task.world, task.en, column, entry] = task.cycles
    friends.reserved[task.world, task.en, column, entry] = needed
    friends.next_entry[task.world, task.en, column] += 1


@compiled
def wait_ms(known, friends, node):
    """`power_of_d.wait_ms`, of the row of an SN that is asked."""
    if node.sn_state[STORAGE] < friends.largest_reservation:
        return friends.longest_ms
    if node.sn_state[IDLE] > 0:
        return 0.0
    return node.sn_state[WORK] / known.sn_full_rate[node.sn]


@compiled
def fill(friends, node, wait, numbers):
    """`encode` of updaters for friends: what a status says."""
    if friends.numbers == ONE_NUMBER:
        numbers[0] = wait
        return
    for k in range(numbers.size):
        numbers[k] = node.sn_state[k]


@compiled
def tell(rules, friends, turn, row, wait, by_content):
    """`MovedUpdater`, or, not `by_content`, `RegularUpdater`: which friends are told."""
    node = turn.update[row]
    for column in range(turn.send.shape[1]):
        send = friends.told[node.sn, column]
        if send and by_content:
            held = friends.told_ms[node.world, node.sn, column]
            expect = held
            if held < friends.longest_ms:
                passed = node.time_ms - friends.told_at[node.world, node.sn, column]
                expect = max(held - passed, 0.0)
            send = abs(wait - expect) > rules.threshold
            if send:
                friends.told_ms[node.world, node.sn, column] = wait
                friends.told_at[node.world, node.sn, column] = node.time_ms
        turn.send[row, column] = send
    fill(friends, node, wait, turn.numbers[row])
    turn.interval[row] = rules.interval_ms
