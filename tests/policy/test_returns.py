"""R38: an SN that comes back from an outage remembers nothing of before, whatever the method."""

import numpy as np
import pytest

from cosmo import load, method
from cosmo.node import IDLE, REQUESTS, STORAGE, WAIT, WORK, UpdateObservation
from cosmo.policy.registry import METHODS
from cosmo.policy.trained import Trained
from observations import site

CAMPUS = load("campus")
SITE = site(CAMPUS)
ENS = CAMPUS.en.count
TOLD = [
    name
    for name, kind in METHODS.items()
    if not issubclass(kind, Trained) and method(name).carries > 0
]
WITH_SETTINGS = [*TOLD, "power-of-d:threshold_ms=5", "in-flight:hot_ms=5", "cosmo-next"]


def _look(now, busy, carries, up_since=0.0):
    """SN 0 decides; nothing is acknowledged."""
    state = np.zeros((1, 6))
    state[0, IDLE], state[0, STORAGE] = CAMPUS.sn.slots, CAMPUS.sn.storage_bytes
    if busy:
        state[0, IDLE], state[0, WAIT], state[0, REQUESTS] = 0.0, 30.0, 12.0
        state[0, WORK] = 60.0 * CAMPUS.sn.slots * CAMPUS.sn.cycles_per_ms
        state[0, STORAGE] = 60_000.0
    zero = np.zeros(1, np.int64)
    return UpdateObservation(
        world=zero, sn=zero, time_ms=np.array([now]), sn_state=state,
        en=np.arange(ENS)[None], acknowledged=np.zeros((1, ENS, carries)),
        acknowledged_ms=np.full((1, ENS), np.nan), recent_delay_ms=np.zeros(1),
        recent_success=np.zeros(1), recent_failure=np.zeros(1),
        down_link_mbps=np.tile([192.0, 0.0, 0.0], (1, ENS, 1)), up_since_ms=np.array([up_since]),
    )  # fmt: skip


def _answers(updater, carries):
    """What it answers from its return at 300 ms on, busy from 320 ms on."""
    found = []
    for step in range(120):
        now = 300.0 + 1.0 * step
        send, interval_ms = updater.decide(_look(now, now >= 320.0, carries, 300.0))
        found.append(
            (np.broadcast_to(np.asarray(send).T, (ENS, 1)).ravel().tolist(), interval_ms[0])
        )
    return found


@pytest.mark.parametrize("name", WITH_SETTINGS)
def test_after_a_return_an_updater_answers_like_a_new_one(name):
    chosen = method(name)
    used, new = chosen.updater(SITE), chosen.updater(SITE)
    for step in range(80):
        used.decide(_look(3.0 * step, step % 10 >= 3, chosen.carries))
    assert _answers(used, chosen.carries) == _answers(new, chosen.carries)


def test_without_a_return_what_was_before_counts():
    """So that the test above can fail: these would answer otherwise."""
    differ = []
    for name in WITH_SETTINGS:
        chosen = method(name)
        used, new = chosen.updater(SITE), chosen.updater(SITE)
        for step in range(80):
            used.decide(_look(3.0 * step, step % 10 >= 3, chosen.carries))
        later = [_look(300.0 + step, step >= 20, chosen.carries) for step in range(120)]
        answers = [[str(updater.decide(look)) for look in later] for updater in (used, new)]
        differ += [name] if answers[0] != answers[1] else []
    assert set(differ) >= {"aov-gap", "jbt", "aoii", "jiq"}
