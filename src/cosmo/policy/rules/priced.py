"""`priced-books`: a backlog estimate, and a price on capacity that the outstanding work sets.

Taking every feasible task is short-sighted: a large one takes the room of several small ones. With
B the work outstanding at the EN and, as it estimates, at the SNs, in ms of their total rate, a task
of c cycles is refused if c > most_cycles − price·B: the fuller the nodes, the smaller it must be (a
bid price on capacity).
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosmo.node import NO_NODE, NOTHING, WORK, Dispatcher, Method, Site
from cosmo.policy.parameters import Positive
from cosmo.policy.rules.run import EnRule, RuleDispatcher
from cosmo.policy.rules.self_tracking import Backlog, faster_route, no_backlog, record
from cosmo.policy.rules.site import Known, given, known_of, reject, tie_draws

Floats = NDArray[np.float64]


class State(NamedTuple):
    """The estimate and the price."""

    known: Known
    backlog: Backlog
    draws: Floats  # [world, EN, task, k], for ties
    total_rate: Floats  # [EN] cycles a ms of the EN and of all SNs that it reaches
    most_cycles: float
    price: float  # cycles for each ms that is outstanding


def total_rate(site: Site) -> Floats:
    """[EN] cycles a ms of the EN and of all SNs that it reaches."""
    links = site.links
    there = np.where(links.exist, site.sn.full_rate[links.reach], 0.0).sum(axis=1)
    total: Floats = site.en.full_rate + there
    return total


def outstanding_ms(seen: Any, known: Any, backlog: Any, total_rate: Any, row: Any) -> Any:
    """B: the EN's work and the estimated work of every SN, in ms of their total rate."""
    task = seen.dispatch[row]
    remote = 0.0
    for column in range(seen.sn.shape[1]):
        sn = seen.sn[row, column]
        if sn == NO_NODE:
            break
        busy = 0.0
        for slot in range(backlog.slot_free.shape[3]):
            free = backlog.slot_free[task.world, task.en, column, slot]
            if free < np.inf:  # which missing slots are
                busy += max(free - task.time_ms, 0.0)
        remote += busy * known.sn_speed[sn]
    return (task.en_state[WORK] + remote) / total_rate[task.en]


def most_cycles(seen: Any, state: Any, row: Any) -> Any:
    """The largest demand that is taken now, in cycles."""
    outstanding = outstanding_ms(seen, state.known, state.backlog, state.total_rate, row)
    return state.most_cycles - state.price * outstanding


def choose(seen: Any, state: Any, row: Any) -> Any:
    """The choice of `self-tracking`, unless the task is too dear."""
    if seen.dispatch[row].cycles > most_cycles(seen, state, row):
        return reject(seen)
    return faster_route(seen, state, row)


def decide(seen: Any, state: Any, row: Any) -> Any:
    """Return what `choose` returns, and record the decision in the backlog estimate."""
    action = choose(seen, state, row)
    record(seen, state.known, state.backlog, row, action)
    return action


class PricedBooks(Method):
    """As `self-tracking`, and refuses large tasks the sooner, the fuller the nodes are."""

    reference = "a rule of the CoSMO package"
    carries = NOTHING

    def __init__(self, most_cycles: Positive = 1.8e6, price: Positive = 2.5e4) -> None:
        self.most_cycles, self.price = most_cycles, price

    def dispatcher(self, site: Site) -> Dispatcher:
        """A backlog estimate with a price."""
        state = State(
            known_of(site),
            no_backlog(site),
            tie_draws(site),
            given(total_rate(site)),
            float(self.most_cycles),
            float(self.price),
        )
        return RuleDispatcher(site, EnRule(decide, choose), state)
