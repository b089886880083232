"""`adaptive-prices`: `priced-books` whose two parameters follow the load that the EN sees.

One price for all loads is a compromise: far below the capacity every task should be served, far
beyond it the large ones are in the way. The EN smooths its own arrivals (exponentially, over
`horizon_ms`), says what share of all nodes' capacity they ask for, and looks up, for that share,

- the work outstanding from which on the largest tasks are refused, in ms of the nodes' total rate;
- by how much the largest demand that is taken falls with each further ms, in largest demands.

Between the rows of the table it interpolates. The table was chosen on training workloads by
`examples/fit_adaptive_prices.py`.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosmo.node import NOTHING, Dispatcher, Method, Site
from cosmo.policy.parameters import Positive
from cosmo.policy.rules.priced import outstanding_ms, total_rate
from cosmo.policy.rules.run import EnRule, RuleDispatcher
from cosmo.policy.rules.self_tracking import Backlog, faster_route, no_backlog, record
from cosmo.policy.rules.site import Known, given, known_of, reject, tie_draws

Floats = NDArray[np.float64]

# Share of the capacity that is asked for, ms outstanding without a refusal, price of a ms. (At
# 0.9028 three prices were equally good; the script names another of them, 0.01.)
TABLE = np.array(
    [
        [0.5417, 40.0, 0.01],
        [0.7222, 40.0, 0.01],
        [0.9028, 40.0, 0.0125],
        [0.9931, 30.0, 0.01],
        [1.0833, 30.0, 0.025],
        [1.2639, 20.0, 0.02],
        [1.4444, 15.0, 0.0175],
    ]
)
LOAD, FROM_MS, PRICE = range(3)  # columns of the table

HORIZON_MS = 125.0  # as it was fitted with the table


class State(NamedTuple):
    """The estimate, the table, and what ENs have counted."""

    known: Known
    backlog: Backlog
    draws: Floats  # [world, EN, task, k], for ties
    total_rate: Floats  # [EN]
    largest_cycles: float
    share_per_task: float  # of all nodes' capacity, that one task a ms at each EN asks for
    horizon_ms: float
    table: Floats  # [row, (load, ms outstanding, price)]
    last_ms: Floats  # [world, EN] the last arrival
    arrivals: Floats  # [world, EN] so far, discounted by their age


def counted(seen: Any, state: Any, row: Any) -> Any:
    """Arrivals of the EN so far, with this task, discounted by their age."""
    task = seen.dispatch[row]
    gap_ms = max(task.generated_ms - state.last_ms[task.world, task.en], 0.0)
    return state.arrivals[task.world, task.en] * math.exp(gap_ms / -state.horizon_ms) + 1.0


def load(seen: Any, state: Any, row: Any) -> Any:
    """Share of the capacity that arrivals ask for, with this task among them."""
    # An EN that has just started has seen only a part of the horizon.
    since_start = seen.dispatch[row].generated_ms + 1.0
    seen_ms = state.horizon_ms * -math.expm1(since_start / -state.horizon_ms)
    return state.share_per_task * counted(seen, state, row) / seen_ms


def between(table: Any, load: Any, column: Any) -> Any:
    """A column of the table at a load, linear between its rows, constant beyond them."""
    rows = table.shape[0]
    if not load > table[0, LOAD]:
        return table[0, column]
    for row in range(1, rows):
        if load < table[row, LOAD]:
            rise = table[row, column] - table[row - 1, column]
            slope = rise / (table[row, LOAD] - table[row - 1, LOAD])
            return slope * (load - table[row - 1, LOAD]) + table[row - 1, column]
    return table[rows - 1, column]


def most_cycles(seen: Any, state: Any, row: Any) -> Any:
    """The largest demand that is taken now and at this load, in cycles."""
    now = load(seen, state, row)
    outstanding = outstanding_ms(seen, state.known, state.backlog, state.total_rate, row)
    beyond = outstanding - between(state.table, now, FROM_MS)
    return state.largest_cycles * (1.0 - between(state.table, now, PRICE) * beyond)


def choose(seen: Any, state: Any, row: Any) -> Any:
    """The choice of `self-tracking`, unless the task is too dear at this load."""
    if seen.dispatch[row].cycles > most_cycles(seen, state, row):
        return reject(seen)
    return faster_route(seen, state, row)


def note(seen: Any, state: Any, row: Any, action: Any) -> Any:
    """What was decided, whoever did: the arrival is counted; returns when the task should be done
    at its SN, in ms, or NaN.
    """
    task = seen.dispatch[row]
    state.arrivals[task.world, task.en] = counted(seen, state, row)
    state.last_ms[task.world, task.en] = task.generated_ms
    return record(seen, state.known, state.backlog, row, action)


def decide(seen: Any, state: Any, row: Any) -> Any:
    """Return what `choose` returns, and record the decision."""
    action = choose(seen, state, row)
    note(seen, state, row, action)
    return action


def dispatcher(site: Site, horizon_ms: float = HORIZON_MS, table: Floats = TABLE) -> RuleDispatcher:
    """The rule at the ENs of a site."""
    cells = site.worlds, len(site.en)
    full_rate = site.en.full_rate.sum() + site.sn.full_rate.sum()
    state = State(
        known=known_of(site),
        backlog=no_backlog(site),
        draws=tie_draws(site),
        total_rate=given(total_rate(site)),
        largest_cycles=float(site.tasks.cycles[1]),
        share_per_task=float(len(site.en) * site.tasks.mean_cycles / full_rate),
        horizon_ms=float(horizon_ms),
        table=given(table),
        last_ms=np.zeros(cells),
        arrivals=np.zeros(cells),
    )
    return RuleDispatcher(site, EnRule(decide, choose, note=note), state)


class AdaptivePrices(Method):
    """As `priced-books`, with a price that follows the arrivals of the last `horizon_ms`."""

    reference = "a rule of the CoSMO package"
    carries = NOTHING

    def __init__(self, horizon_ms: Positive = HORIZON_MS) -> None:
        self.horizon_ms = horizon_ms

    def dispatcher(self, site: Site) -> Dispatcher:
        """A backlog estimate with a price for each load."""
        return dispatcher(site, self.horizon_ms)
