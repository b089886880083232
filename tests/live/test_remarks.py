"""What a method says of what it meets reaches people once, and never stops a node."""

import numpy as np

from cosmo import load
from cosmo.live.dispatcher_runner import LOOK_EVERY, Remarks
from cosmo.live.guarded_dispatcher import GuardedDispatcherRunner
from cosmo.node import Dispatcher, Method
from cosmo.policy.registry import method
from cosmo.world import site_of


class Worried(Method, Dispatcher):
    """Rejects everything and worries about a number that changes."""

    def __init__(self):
        self.asked = 0

    def dispatcher(self, site):
        return self

    def decide(self, seen):
        return np.full(len(seen), seen.reject)

    def remark(self):
        self.asked += 1
        if self.asked == 3:
            raise RuntimeError("no more")
        return f"load is {self.asked}.5 times the planned one"


class Row:
    """As much of an observation as a rejection needs."""

    reject, sns, sn = 2, 1, np.array([[0]])

    def __len__(self):
        return 1


def test_a_node_says_each_remark_once_whatever_its_numbers():
    worried, said = Worried(), []
    runner = GuardedDispatcherRunner(worried, method("in-flight"), site_of(load("paper")), 0, 1e6)
    runner.remarks.tell = said.append
    for _ in range(4 * LOOK_EVERY):
        assert runner.choose(Row()) == 2
    assert worried.asked == 4
    assert said == ["load is 1.5 times the planned one", "its remark failed: no more"]
    assert not runner.on_fallback


def test_a_method_cannot_fill_a_log_with_remarks():
    remarks, said = Remarks(), []
    remarks.tell = said.append
    for number in range(100 * LOOK_EVERY):
        remarks.decided(lambda number=number: "x" * (number // LOOK_EVERY + 1))
    assert 10 < len(said) < 100
