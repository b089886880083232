"""What happens at nodes in an episode, drawn: changes of speed (R37) and outages (R38)."""

import numpy as np

from cosmo.scenario import Scenario
from cosmo.seeds import Purpose, stream
from cosmo.workload.table import FAILS, RETURNS, SPEED, NodeEvents

Event = tuple[float, int, int, float]  # time, node (ENs, then SNs), what, factor


def drawn_events(scenario: Scenario, seed: int, number: int) -> NodeEvents:
    """The events of episode `number` of run `seed`."""
    found = [*_speeds(scenario, seed, number), *_outages(scenario, seed, number)]
    return node_events(sorted(found, key=lambda event: event[0]))  # stable: by node at equal times


def node_events(found: list[Event]) -> NodeEvents:
    """The same as columns."""
    if not found:
        return NodeEvents()
    times, nodes, what, factors = zip(*found, strict=True)
    return NodeEvents(
        np.array(times), np.array(nodes, np.int64), np.array(what, np.int64), np.array(factors)
    )


def _speeds(scenario: Scenario, seed: int, number: int) -> list[Event]:
    """Changes up to the window's end; the first state of a node is a change at time 0."""
    found: list[Event] = []
    for kind, nodes, first in ((0, scenario.en, 0), (1, scenario.sn, scenario.en.count)):
        if nodes.speed is None:
            continue
        factors, dwell = nodes.speed.factors, nodes.speed.dwell_ms
        for node in range(nodes.count):
            random = stream(seed, Purpose.SPEEDS, number, kind, node)
            state, time = int(random.random() * sum(dwell) >= dwell[0]), 0.0
            while time < scenario.episode.window_ms:
                found.append((time, first + node, SPEED, factors[state]))
                time += random.exponential(dwell[state])
                state = 1 - state
    return found


def _outages(scenario: Scenario, seed: int, number: int) -> list[Event]:
    """SNs fail within the window; one that is down at its end comes back all the same."""
    outage, first = scenario.sn.outage, scenario.en.count
    if outage is None:
        return []
    found: list[Event] = []
    for sn in range(scenario.sn.count):
        random = stream(seed, Purpose.OUTAGES, number, sn)
        time = random.exponential(outage.up_ms)
        while time < scenario.episode.window_ms:
            back = time + random.exponential(outage.down_ms)
            found += [(time, first + sn, FAILS, np.nan), (back, first + sn, RETURNS, np.nan)]
            time = back + random.exponential(outage.up_ms)
    return found
