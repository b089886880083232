"""Formulas of compiled rules, uncompiled, with numbers that can be checked on paper."""

from types import SimpleNamespace

import numpy as np

from cosmo.control.fast import update
from cosmo.control.fast.records import BY_AGE
from cosmo.node import RAW
from cosmo.policy.updaters.aoi_threshold import ROUNDING_MS


def test_a_status_a_rounding_short_of_its_age_is_sent(monkeypatch):
    monkeypatch.setattr(update, "_oldest", lambda *_: 0.0)
    rules = SimpleNamespace(sn=BY_AGE, interval_ms=ROUNDING_MS)

    def sent(time_ms):
        node = SimpleNamespace(time_ms=time_ms, sn_state=np.arange(RAW))
        turn = SimpleNamespace(
            update=[node],
            send=np.zeros((1, 2), bool),
            interval=np.zeros(1),
            numbers=np.zeros((1, 4)),
        )
        update.update.py_func(rules, None, None, turn, 0)
        return turn.send[0].tolist(), turn.interval[0]

    assert sent(0.0) == ([True, True], ROUNDING_MS)
    assert sent(-ROUNDING_MS) == ([False, False], 2 * ROUNDING_MS)
