"""The multi-node controller of `cosmo-next` at an EN: route probabilities and a price on capacity.

For each SN that it uses, an EN estimates the backlog. It starts from its latest information: a
status, a result (which shows how long the task waited) or a notice that the SN was full. Since then
the SN has done some work, the EN has sent tasks of its own, and rivals have sent traffic, which is
estimated as a fraction of the EN's own. Time alone does not empty an SN: while the EN's own tasks
there are unanswered, the backlog is at least the rivals' estimated work in flight, up to what is
planned to arrive in a short time. An SN that let a task expire, and sent nothing since that task
arrived, may be down until it sends something (R38). Where rivals load the SNs, an EN uses similar
SNs in turn, so that each gets its tasks at regular gaps. A task that would be rejected may go to an
SN outside the EN's subset.

An EN measures the error of its estimates: if its local tasks end earlier or later than their
declared demands say, it widens the uncertainty of all its estimates in proportion (R35). The price
of capacity follows the measured load, up to somewhat above the planned load: an EN above that has
more than its share, and the other ENs have less (R36).
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosmo.node import DONE, EXPIRED, IDLE, REFUSED, REQUESTS, Site
from cosmo.policy.draws import no_draws
from cosmo.policy.rules.multi_node_formulas import (
    chance,
    faded,
    later,
    read_number,
    smoothed,
    squash,
    still_closed,
    still_down,
    still_full,
)
from cosmo.policy.rules.multi_node_parameters import Parameters
from cosmo.policy.rules.multi_node_site import profile_of
from cosmo.policy.rules.run import EnRule, Remark, RuleDispatcher
from cosmo.policy.rules.site import Known, draw_of, given, known_of, reached, reject, upload_ms

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ENTRIES = 32  # own tasks that are remembered for each SN, and for the EN, the latest of them
ERROR_WEIGHT = 1.0 / 12.0  # of the latest local task in the error of estimates
LONG_WEIGHT = 1.0 / 400.0  # of the same over a long time
LONG = 50.0  # longest deadlines over which loads are measured for reports
EXACT = 1e-3  # relative errors below are those of rounding, not of demands
LEAST_ERROR_MS = 0.1
# In longest deadlines: rivals have at most the work in flight that is planned for this time. One
# task of an EN that sends few tells little about the work of many rivals.
PLANNED_FOR = 0.2


class State(NamedTuple):
    """Parameters, constants of the site, and what ENs remember of each SN that they reach."""

    known: Known
    p: Parameters
    longest_ms: float  # deadline
    mean_cycles: float
    reach: Ints  # [EN, k]
    subset: NDArray[np.bool_]  # [EN, k] the SNs that an EN uses, …
    may_use: NDArray[np.bool_]  # … and with those in reserve
    en_full_rate: Floats  # [EN]
    en_slots: Ints
    rivals: Floats  # [EN, k] other ENs that use the SN
    rivals_load: Floats  # [EN, k] ms of work a ms that they are planned to send it
    capacity: Floats  # [EN] cycles a ms of the EN and its share of the SNs it uses
    planned: Floats  # [EN] share of the capacity that planned arrivals ask for
    in_service_ms: Floats  # [SN]
    draws: Floats  # [world, EN, task, k]
    load: Floats  # [world, EN] share of the capacity that arrivals ask for
    load_at: Floats
    long_load: Floats  # [world, EN] the same over a long time, and …
    long_error: Floats  # … [world, EN] the errors below; for reports only, not for decisions
    long_mean: Floats
    work: Floats  # [world, EN, k] the backlog, in ms of the SN's full rate, …
    work_at: Floats  # … and of when
    full_at: Floats  # when the SN was last known to be full
    status_work: Floats  # the backlog that the last status reported, in ms, …
    status_full: Floats  # … 1 if it reported the SN to be full, …
    closed_at: Floats  # … and when it reported the SN to be closed; -inf: it did not
    source: Floats  # when the latest information was current
    flow: Floats  # ms of work per ms that the EN has sent recently
    flow_at: Floats  # when it sent the latest task
    heard_at: Floats  # when the SN gave the latest sign of life: a status, a result, a refusal
    silent_at: Floats  # when a task expired that arrived after that; -inf: none did
    late_results: Floats  # weighted count of recent late results
    late_results_at: Floats
    local_task: Ints  # [world, EN, entry] of own local tasks, in a ring
    local_finish: Floats  # … when each should be done, by the cycles that the EN sees
    local_service: Floats  # … and how long it should take
    next_local: Ints  # [world, EN]
    local_error: Floats  # [world, EN] ms that local finishes were off, smoothed
    local_mean: Floats  # [world, EN] ms that they should have taken, smoothed
    next_entry: Ints  # place of the next own task in a ring of them
    task: Ints  # [world, EN, k, entry]
    arrival: Floats
    own_work: Floats
    unanswered: Floats  # [world, EN, k] ms of own work that has no answer yet


def rival_rate(state: Any, world: Any, en: Any, column: Any, now: Any) -> Any:
    """Estimated traffic of the rivals to an SN, in ms of work per ms."""
    p = state.p
    elapsed = now - state.flow_at[world, en, column]
    flow = faded(state.flow[world, en, column], elapsed, p.own_traffic_window_ms)
    return p.rival_traffic * state.rivals[en, column] * flow


def restart(
    state: Any, world: Any, en: Any, column: Any, work: Any, source: Any, gain: Any
) -> None:
    """Restart the estimate at a known backlog; own tasks that arrived later are added to it."""
    at = source
    first = state.next_entry[world, en, column]
    for place in range(first, first + ENTRIES):
        entry = place % ENTRIES
        arrival = state.arrival[world, en, column, entry]
        if arrival > source:
            own = state.own_work[world, en, column, entry]
            work = later(work, max(arrival - at, 0.0), gain, state.p) + own
            at = max(arrival, at)
    state.work[world, en, column] = work
    state.work_at[world, en, column] = at
    state.source[world, en, column] = source


def alive(state: Any, world: Any, en: Any, column: Any, now: Any) -> None:
    """Note that an SN has sent something."""
    state.heard_at[world, en, column] = now
    state.silent_at[world, en, column] = -np.inf


def take_status(seen: Any, state: Any, row: Any, column: Any) -> None:
    """Take in a status that has arrived since the EN last decided."""
    task = seen.dispatch[row]
    world, en, source = task.world, task.en, seen.status_ms[row, column]
    if source > state.heard_at[world, en, column]:
        alive(state, world, en, column, source)
    if not source > state.source[world, en, column]:  # never where it is NaN
        return
    work, full, closed = read_number(seen.status[row, column, 0], state.longest_ms)
    gain = rival_rate(state, world, en, column, task.time_ms)
    restart(state, world, en, column, work, source, gain)
    state.full_at[world, en, column] = source if full else -np.inf
    state.status_work[world, en, column] = work
    state.status_full[world, en, column] = 1.0 if full else 0.0
    state.closed_at[world, en, column] = source if closed else -np.inf


def hear_local(fact: Any, state: Any) -> None:
    """Measure the estimate's error when a local task has ended."""
    world, en = fact.world, fact.en
    if fact.fate != DONE:
        return
    for place in range(ENTRIES):
        if state.local_task[world, en, place] == fact.task:
            off = abs(fact.time_ms - state.local_finish[world, en, place])
            service = state.local_service[world, en, place]
            state.local_task[world, en, place] = -1
            state.local_error[world, en] += ERROR_WEIGHT * (off - state.local_error[world, en])
            state.local_mean[world, en] += ERROR_WEIGHT * (service - state.local_mean[world, en])
            state.long_error[world, en] += LONG_WEIGHT * (off - state.long_error[world, en])
            state.long_mean[world, en] += LONG_WEIGHT * (service - state.long_mean[world, en])
            return


def answered(state: Any, world: Any, en: Any, column: Any, own: Any) -> None:
    """Count `own` ms of own work at an SN as answered."""
    state.unanswered[world, en, column] = max(state.unanswered[world, en, column] - own, 0.0)


def hear(fact: Any, state: Any) -> None:
    """Take in a result or a refusal of an own task."""
    if fact.action == 0:
        hear_local(fact, state)
    if fact.action < 1 or fact.action > state.source.shape[2]:
        return
    world, en, column = fact.world, fact.en, fact.action - 1
    entry = -1
    for place in range(ENTRIES):
        if state.task[world, en, column, place] == fact.task:
            entry = place
            break
    if entry < 0:
        return
    p, known, now = state.p, state.known, fact.time_ms
    arrival = state.arrival[world, en, column, entry]
    own = state.own_work[world, en, column, entry]
    state.task[world, en, column, entry] = -1
    answered(state, world, en, column, own)
    if fact.fate == DONE or fact.fate == REFUSED:  # not what is given up: nothing has come
        alive(state, world, en, column, now)
    elif fact.fate == EXPIRED and arrival > state.heard_at[world, en, column]:
        state.silent_at[world, en, column] = now
    if fact.fate == REFUSED:
        state.work[world, en, column] = max(state.work[world, en, column] - own, 0.0)
        if arrival > state.source[world, en, column]:
            state.source[world, en, column] = arrival
            state.full_at[world, en, column] = arrival
        return
    elapsed = max(now - state.late_results_at[world, en, column], 0.0)
    left = faded(state.late_results[world, en, column], elapsed, p.late_memory_ms)
    state.late_results[world, en, column] = 0.5 * left if fact.in_time else left + 1.0
    state.late_results_at[world, en, column] = now
    if fact.fate == EXPIRED:  # there is no result to learn the wait from (R38)
        return
    if arrival <= state.source[world, en, column]:
        return
    sn = state.reach[en, column]
    service = own * known.sn_full_rate[sn] / known.sn_speed[sn]
    waited = now - known.result_ms[en, column] - arrival - service
    ease = p.in_service_share * state.in_service_ms[sn]
    before = waited + ease if waited > 0.5 else 0.5 * ease
    gain = rival_rate(state, world, en, column, now)
    restart(state, world, en, column, before + own, arrival, gain)
    state.full_at[world, en, column] = -np.inf
    if before < p.opening_work_ms:
        state.closed_at[world, en, column] = -np.inf


def send(seen: Any, state: Any, row: Any, column: Any, arrival: Any, gain: Any) -> None:
    """Record a task that is sent to an SN and arrives there at `arrival`."""
    p, task = state.p, seen.dispatch[row]
    world, en, now = task.world, task.en, task.time_ms
    own = task.cycles / state.known.sn_full_rate[seen.sn[row, column]]
    elapsed = max(arrival - state.work_at[world, en, column], 0.0)
    state.work[world, en, column] = later(state.work[world, en, column], elapsed, gain, p) + own
    state.work_at[world, en, column] = max(arrival, state.work_at[world, en, column])
    gap = now - state.flow_at[world, en, column]
    flow, window_ms = state.flow[world, en, column], p.own_traffic_window_ms
    state.flow[world, en, column] = smoothed(flow, own, gap, window_ms)
    state.flow_at[world, en, column] = now
    entry = state.next_entry[world, en, column] % ENTRIES
    if state.task[world, en, column, entry] >= 0:  # its answer will not be recognised
        answered(state, world, en, column, state.own_work[world, en, column, entry])
    state.unanswered[world, en, column] += own
    state.task[world, en, column, entry] = task.task
    state.arrival[world, en, column, entry] = arrival
    state.own_work[world, en, column, entry] = own
    state.next_entry[world, en, column] += 1


def run_locally(state: Any, task: Any, served: Any) -> None:
    """Record a task that runs at the EN and should take `served` ms."""
    world, en = task.world, task.en
    place = state.next_local[world, en] % ENTRIES
    state.local_task[world, en, place] = task.task
    state.local_finish[world, en, place] = task.time_ms + served
    state.local_service[world, en, place] = served
    state.next_local[world, en] += 1


def relative_error(state: Any, world: Any, en: Any) -> Any:
    """The relative error of local estimates: 0 where demands are known exactly."""
    mean, error = state.local_mean[world, en], state.local_error[world, en]
    return error / mean if error > EXACT * mean else 0.0


def is_closed(state: Any, world: Any, en: Any, column: Any, now: Any) -> Any:
    """Whether an SN has reported that it is closed."""
    return still_closed(now - state.closed_at[world, en, column], state.longest_ms)


def expected(seen: Any, state: Any, row: Any, column: Any, upload: Any, gain: Any) -> Any:
    """The probability that a task is in time at an SN, and its expected delay from now, in ms."""
    p, known, task = state.p, state.known, seen.dispatch[row]
    world, en, now = task.world, task.en, task.time_ms
    sn = seen.sn[row, column]
    elapsed = max(now + upload - state.work_at[world, en, column], 0.0)
    work = later(state.work[world, en, column], elapsed, gain, p)
    theirs = p.rivals_in_flight * state.rivals[en, column] * state.unanswered[world, en, column]
    work = max(work, min(theirs, PLANNED_FOR * state.longest_ms * state.planned[en]))
    full = still_full(now - state.full_at[world, en, column], p)
    if is_closed(state, world, en, column, now):
        work = max(work, state.status_work[world, en, column])
        full = max(full, p.closed_doubt * state.status_full[world, en, column])
    wait = max(work - p.in_service_share * state.in_service_ms[sn], 0.0)
    delay = upload + wait + task.cycles / known.sn_speed[sn] + known.result_ms[en, column]
    late_age = now - state.late_results_at[world, en, column]
    late_results = faded(state.late_results[world, en, column], late_age, p.late_memory_ms)
    slack = (task.generated_ms + task.deadline_ms - now) - delay
    age = now - state.source[world, en, column]
    service = task.cycles / known.sn_speed[sn]
    unsure = p.unknown_remote * relative_error(state, world, en) * (wait + service)
    down = still_down(now - state.silent_at[world, en, column], p)
    return (1.0 - down) * chance(slack, age, gain, full, late_results, unsure, p), delay


def turn_of(state: Any, task: Any, column: Any, in_time: Any) -> Any:
    """The bonus of an SN over other SNs for the time since it last got a task from this EN."""
    p, world, en = state.p, task.world, task.en
    since = task.time_ms - state.flow_at[world, en, column]
    near = since / (p.saturation_ms + since)
    return p.rotation * state.rivals_load[en, column] * in_time * near


def load_beyond(state: Any, task: Any) -> Any:
    """The load above `price_load`, times the demand of the task beyond that of a mean task. Where
    all tasks look alike, it is 0: there are no large tasks to refuse. Counts the arrival.
    """
    p, world, en = state.p, task.world, task.en
    share = task.cycles / state.capacity[en]
    gap = max(task.generated_ms - state.load_at[world, en], 0.0)
    load = smoothed(state.load[world, en], share, gap, p.load_window_ms)
    state.load[world, en] = load
    long_ms = LONG * state.longest_ms
    state.long_load[world, en] = smoothed(state.long_load[world, en], share, gap, long_ms)
    state.load_at[world, en] = task.generated_ms
    load = min(load, p.load_margin * state.planned[en])
    beyond_mean = max(task.cycles / state.mean_cycles - 1.0, 0.0)
    return max(load - p.price_load, 0.0) * beyond_mean


def local_wait_ms(state: Any, task: Any, error: Any) -> Any:
    """The expected wait of a task at its EN, in ms. Where demands are not known, running and
    waiting tasks may take longer than declared.
    """
    if error == 0.0 or task.en_state[IDLE] > 0.0:
        return task.local_wait_ms
    en = task.en
    waiting = max(task.en_state[REQUESTS] - state.en_slots[en], 0.0)
    least = (state.p.overrun_wait + waiting) * state.mean_cycles / state.en_full_rate[en]
    return max(task.local_wait_ms, least)


def decide(seen: Any, state: Any, row: Any) -> Any:
    """Choose the route with the highest value, or a rejection if none has a positive one."""
    p, task = state.p, seen.dispatch[row]
    world, en, now = task.world, task.en, task.time_ms
    beyond = load_beyond(state, task)
    price = p.sn_price * beyond
    best, most, best_score, best_worth = -1, -np.inf, -np.inf, 0.0
    best_arrival, best_gain = 0.0, 0.0
    replace = False  # whether SNs in reserve replace one that is closed
    for column in range(reached(seen, row)):
        if state.may_use[en, column]:
            take_status(seen, state, row, column)
            closed = is_closed(state, world, en, column, now)
            replace = replace or (closed and state.subset[en, column])
    error = relative_error(state, world, en)
    served = local_wait_ms(state, task, error) + task.cycles / state.known.en_speed[en]
    slack = task.generated_ms + task.deadline_ms - now
    local = task.local_room and served <= slack
    for others in range(2):
        if others == 1 and (local or best_worth >= 0.0):
            break  # SNs outside the subset are only an alternative to a rejection
        for column in range(reached(seen, row)):
            uses = state.subset[en, column] or (replace and state.may_use[en, column])
            if uses == (others == 1):
                continue
            upload = upload_ms(seen, state.known, row, column)
            gain = rival_rate(state, world, en, column, now)
            in_time, delay = expected(seen, state, row, column, upload, gain)
            worth = in_time - p.failure_cost * (1.0 - in_time) - price
            score = worth - p.delay_cost * delay / state.longest_ms
            score = score + p.tie_noise * draw_of(state, task, column)
            with_turn = score + turn_of(state, task, column, in_time)
            if with_turn > most:
                best, most, best_score, best_worth = column, with_turn, score, worth
                best_arrival, best_gain = now + upload, gain
    local_worth = 1.0 - p.local_price * beyond
    if error > 0.0:
        in_time = squash((slack - served) / (p.unknown_local * error * served + LEAST_ERROR_MS))
        local_worth = local_worth - (1.0 + p.failure_cost) * (1.0 - in_time)
    local_score = local_worth + p.local_preference - p.delay_cost * served / state.longest_ms
    if best >= 0 and (not local or best_score > local_score):
        if best_worth > 0.0:
            send(seen, state, row, best, best_arrival, best_gain)
            return best + 1
        return reject(seen)
    if local and local_worth > 0.0:
        run_locally(state, task, served)
        return 0
    return reject(seen)


def dispatcher(site: Site, p: Parameters, remark: Remark | None = None) -> RuleDispatcher:
    """The controller at the ENs of a site."""
    profile, links = profile_of(site, p), site.links
    cells = (site.worlds, *links.reach.shape)
    nodes, entries = (site.worlds, len(site.en)), (*cells, ENTRIES)
    state = State(
        known=known_of(site),
        p=p,
        longest_ms=profile.longest_ms,
        mean_cycles=float(site.tasks.mean_cycles),
        reach=given(links.reach),
        subset=given(profile.uses),
        may_use=given(profile.may_use),
        en_full_rate=given(site.en.full_rate),
        en_slots=given(site.en.slots),
        rivals=given(profile.rivals),
        rivals_load=given(profile.rivals_load),
        capacity=given(profile.capacity),
        planned=given(site.tasks.rate / 1000.0 * site.tasks.mean_cycles / profile.capacity),
        in_service_ms=given(profile.in_service_ms),
        draws=no_draws(site, cells[2]),
        load=np.zeros(nodes),
        load_at=np.zeros(nodes),
        long_load=np.zeros(nodes),
        long_error=np.zeros(nodes),
        long_mean=np.zeros(nodes),
        work=np.zeros(cells),
        work_at=np.zeros(cells),
        full_at=np.full(cells, -np.inf),
        status_work=np.zeros(cells),
        status_full=np.zeros(cells),
        closed_at=np.full(cells, -np.inf),
        source=np.zeros(cells),
        flow=np.zeros(cells),
        flow_at=np.zeros(cells),
        heard_at=np.full(cells, -np.inf),
        silent_at=np.full(cells, -np.inf),
        late_results=np.zeros(cells),
        late_results_at=np.zeros(cells),
        local_task=np.full((*nodes, ENTRIES), -1, np.int64),
        local_finish=np.zeros((*nodes, ENTRIES)),
        local_service=np.zeros((*nodes, ENTRIES)),
        next_local=np.zeros(nodes, np.int64),
        local_error=np.zeros(nodes),
        local_mean=np.zeros(nodes),
        next_entry=np.zeros(cells, np.int64),
        task=np.full(entries, -1, np.int64),
        arrival=np.full(entries, -np.inf),
        own_work=np.zeros(entries),
        unanswered=np.zeros(cells),
    )
    return RuleDispatcher(site, EnRule(decide, hear=hear), state, remark)
