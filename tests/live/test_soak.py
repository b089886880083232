"""An hour of virtual time: what a node keeps does not grow with time or with tasks."""

import gc
import tracemalloc
from functools import partial

import pytest

from cosmo.live.clock import DELIVERY, GENERATION
from live.cores import en_node, sn_node, task

MINUTE_MS, GAP_MS = 60_000.0, 2000.0


class Nowhere:
    """A transport that keeps nothing; every other task that was offloaded has a result."""

    def __init__(self, core, clock):
        self._core, self._clock = core, clock

    def offload(self, sn, item, arrival_ms):
        if item.number % 2:
            self._clock.at(arrival_ms + 9.0, DELIVERY, partial(self._core.result, item, b""))

    def recall(self, sn, item):
        pass

    def acknowledge(self, sn, sequence, arrival_ms):
        pass

    def answer(self, *told):
        pass

    def status(self, en, sequence, numbers, arrival_ms):
        self._clock.at(arrival_ms, DELIVERY, partial(self._core.acknowledged, en, sequence))


def _grown(core, clock, arrive):
    """Bytes by which a node has grown from the tenth minute to the sixtieth."""
    core._transport = Nowhere(core, clock)
    sizes = []

    def measure():
        gc.collect()
        sizes.append(tracemalloc.get_traced_memory()[0])

    def come(number):
        arrive(task(number, clock.now()))
        if clock.now() < 60 * MINUTE_MS:
            clock.at(clock.now() + GAP_MS, GENERATION, partial(come, number + 1))

    tracemalloc.start()
    try:
        come(2**31)  # as after weeks
        for minute in (10, 60):
            clock.at(minute * MINUTE_MS - 1.0, GENERATION, measure)
        clock.run()
    finally:
        tracemalloc.stop()
    return sizes[1] - sizes[0]


@pytest.mark.parametrize("name", ["all-offload", "power-of-d", "cosmo-next"])
def test_an_en_does_not_grow(name):
    core, clock, _ = en_node(name, answer_late=True, drop_late=True)
    assert _grown(core, clock, core.arrive) < 50_000
    assert core.in_flight == 0


def test_an_sn_does_not_grow():
    core, clock, _ = sn_node("periodic:interval_ms=1000", until_ms=60 * MINUTE_MS, drop_late=True)
    core.begin()
    assert _grown(core, clock, lambda item: core.arrive(item, 0)) < 50_000
    assert core.updates > 3000
    assert core.station.requests == 0
