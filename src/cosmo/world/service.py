"""What an SN knows of the tasks that ended there recently: its own judgement (R19, R29)."""

from cosmo.world.compiled import compiled
from cosmo.world.records import NO_TASK

IN_TIME, LATE, TURNED_AWAY = 1, 2, 3  # JUDGED.fate


@compiled
def judge(state, w, sn, task, fate, delay, now):
    """An offloaded task has ended at its SN; one that was refused has no delay."""
    service = state.services[w, sn]
    note = state.judged[task]
    note.time = now
    note.delay = delay
    note.fate = fate
    note.next = NO_TASK
    if service.recent_head == NO_TASK:
        service.recent_head = task
    else:
        state.judged[service.recent_tail].next = task
    service.recent_tail = task
    service.recent_count += 1
    service.recent_success += 1 if fate == IN_TIME else 0
    service.recent_refused += 1 if fate == TURNED_AWAY else 0
    service.recent_delay += delay


@compiled
def forget_recent(state, w, sn):
    """An SN that fails knows of no task (R38)."""
    service = state.services[w, sn]
    service.recent_head = NO_TASK
    service.recent_tail = NO_TASK
    service.recent_count = 0
    service.recent_success = 0
    service.recent_refused = 0
    service.recent_delay = 0.0


@compiled
def write_recent(constants, state, w, sn, now, out):
    """Mean delay, success and failure rate of the tasks within the history; zeros if none."""
    service = state.services[w, sn]
    while service.recent_count > 0:
        oldest = state.judged[service.recent_head]
        if oldest.time >= now - constants.settings[0].history:
            break
        service.recent_count -= 1
        service.recent_success -= 1 if oldest.fate == IN_TIME else 0
        service.recent_refused -= 1 if oldest.fate == TURNED_AWAY else 0
        service.recent_delay -= oldest.delay
        service.recent_head = oldest.next
    out.recent_delay_ms, out.recent_success, out.recent_failure = 0.0, 0.0, 0.0
    if service.recent_count == 0:
        service.recent_head = NO_TASK
    else:
        out.recent_success = service.recent_success / service.recent_count
        out.recent_failure = 1.0 - out.recent_success
    timed = service.recent_count - service.recent_refused
    if timed == 0:
        service.recent_delay = 0.0  # forgets rounding errors
    else:
        out.recent_delay_ms = service.recent_delay / timed
