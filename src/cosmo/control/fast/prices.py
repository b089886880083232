"""A price on capacity, compiled: `policy.dispatchers.priced` and `adaptive`."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosmo.node import NOBODY, WORK, Dispatcher
from cosmo.policy.dispatchers import AdaptivePricesDispatcher, PricedBooksDispatcher
from cosmo.policy.dispatchers import prices as formulas
from cosmo.world.compiled import compiled, compiled_module

Floats = NDArray[np.float64]
_of = compiled_module(formulas)
_most_cycles, _most_cycles_at = _of.most_cycles, _of.most_cycles_at
_counted, _load = _of.counted, _of.load


class Prices(NamedTuple):
    """Parameters, and what ENs have counted."""

    most_cycles: float
    price: float
    total_rate: Floats  # [EN]
    largest_cycles: float
    share: float
    horizon_ms: float
    at: Floats  # [row] of the table
    from_ms: Floats
    price_at: Floats
    last_ms: Floats  # [world, EN]
    counted: Floats


_NONE, _NO_CELLS = np.zeros(0), np.zeros((0, 0))
_NO_PRICES = Prices(
    0.0, 0.0, _NONE, 0.0, 0.0, 0.0, _NONE, _NONE, _NONE, _NO_CELLS, _NO_CELLS
)  # fmt: skip


def prices_of(dispatcher: Dispatcher) -> Prices:
    """The prices of a dispatcher, as it begins; empty if it has none."""
    if not isinstance(dispatcher, PricedBooksDispatcher):
        return _NO_PRICES
    found = _NO_PRICES._replace(
        most_cycles=float(dispatcher.most),
        price=float(dispatcher.price),
        total_rate=dispatcher.total_rate,
    )
    if not isinstance(dispatcher, AdaptivePricesDispatcher):
        return found
    at, from_ms, price_at = (np.ascontiguousarray(column) for column in dispatcher.table.T)
    return found._replace(
        largest_cycles=float(dispatcher.largest),
        share=float(dispatcher.share),
        horizon_ms=float(dispatcher.horizon_ms),
        at=at,
        from_ms=from_ms,
        price_at=price_at,
        last_ms=dispatcher.last_ms,
        counted=dispatcher.count,
    )


@compiled
def _outstanding_ms(known, books, prices, turn, row):
    """`PricedBooksDispatcher.outstanding_ms`."""
    task = turn.dispatch[row]
    remote = 0.0
    for column in range(turn.reached.shape[1]):
        if turn.reached[row, column] == NOBODY:
            break
        busy, free = 0.0, books.slot_free[task.world, task.en, column]
        for slot in range(free.size):
            if free[slot] < np.inf:  # which missing slots are
                busy += max(free[slot] - task.time_ms, 0.0)
        remote += busy * known.sn_speed[turn.reached[row, column]]
    return (task.en_state[WORK] + remote) / prices.total_rate[task.en]


@compiled
def _between(load, at, value):
    """`np.interp`."""
    if not load > at[0]:
        return value[0]
    for row in range(1, at.size):
        if load < at[row]:
            slope = (value[row] - value[row - 1]) / (at[row] - at[row - 1])
            return slope * (load - at[row - 1]) + value[row - 1]
    return value[at.size - 1]


@compiled
def _counted_now(prices, task):
    """`AdaptivePricesDispatcher._counted`."""
    gap_ms = max(task.generated_ms - prices.last_ms[task.world, task.en], 0.0)
    return _counted(prices.counted[task.world, task.en], gap_ms, prices.horizon_ms)


@compiled
def too_dear(known, books, prices, turn, row, adaptive):
    """`most_cycles` of both: whether a task asks for more.

    The plain forms add up and take powers in other ways, which may differ in the last bit: a task
    would have to ask for what is allowed to that bit to be decided otherwise.
    """
    task = turn.dispatch[row]
    outstanding = _outstanding_ms(known, books, prices, turn, row)
    if not adaptive:
        return task.cycles > _most_cycles(prices.most_cycles, prices.price, outstanding)
    counted = _counted_now(prices, task)
    load = _load(prices.share, counted, task.generated_ms, prices.horizon_ms)
    from_ms = _between(load, prices.at, prices.from_ms)
    price = _between(load, prices.at, prices.price_at)
    return task.cycles > _most_cycles_at(prices.largest_cycles, from_ms, price, outstanding)


@compiled
def count(prices, turn, row):
    """`AdaptivePricesDispatcher.write`: an arrival."""
    task = turn.dispatch[row]
    prices.counted[task.world, task.en] = _counted_now(prices, task)
    prices.last_ms[task.world, task.en] = task.generated_ms
