"""`adaptive-prices`: `priced-books` whose two parameters follow the load that the EN sees.

One price for all loads is a compromise: far below the capacity every task should be served, far
beyond it the large ones are in the way. The EN smooths its own arrivals (exponentially, over
`horizon_ms`), says what share of all nodes' capacity they ask for, and looks up, for that share,

- the work outstanding from which on the largest tasks are refused, in ms of the nodes' total rate;
- by how much the largest demand that is taken falls with each further ms, in largest demands.

Between the rows of the table it interpolates. The table was chosen on training workloads by
`examples/fit_adaptive_prices.py`.
"""

import numpy as np
from numpy.typing import NDArray

from cosmo.node import DispatchObservation, Site
from cosmo.policy.dispatchers import prices
from cosmo.policy.dispatchers.priced import PricedBooksDispatcher

Floats = NDArray[np.float64]
Actions = NDArray[np.int64]

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


HORIZON_MS = 125.0  # as it was fitted with the table


class AdaptivePricesDispatcher(PricedBooksDispatcher):
    """The choice of `self-tracking`, unless the task is too dear at this load."""

    def __init__(self, site: Site, horizon_ms: float, table: Floats = TABLE) -> None:
        super().__init__(site, 0.0, 0.0)
        self.horizon_ms, self.table = horizon_ms, table
        self.largest = site.tasks.cycles[1]
        full_rate = site.en.full_rate.sum() + site.sn.full_rate.sum()
        # What one task a ms at each EN asks for, as a share of what all nodes can serve.
        self.share = len(site.en) * site.tasks.mean_cycles / full_rate
        cells = site.worlds, len(site.en)
        self.last_ms, self.count = np.zeros(cells), np.zeros(cells)

    def most_cycles(self, tasks: DispatchObservation) -> Floats:
        """[row] the largest demand that is taken now and at this load, in cycles."""
        from_ms, price = self.terms(self.load(tasks))
        outstanding_ms = self.outstanding_ms(tasks)
        found: Floats = prices.most_cycles_at(self.largest, from_ms, price, outstanding_ms)
        return found

    def write(self, tasks: DispatchObservation, actions: Actions) -> Floats:
        """What was decided; the arrivals are counted."""
        done = super().write(tasks, actions)
        place = tasks.world, tasks.en
        self.count[place] = self._counted(tasks)
        self.last_ms[place] = tasks.generated_ms
        return done

    def load(self, tasks: DispatchObservation) -> Floats:
        """[row] share of the capacity that arrivals ask for, with this task among them."""
        count = self._counted(tasks)
        found: Floats = prices.load(self.share, count, tasks.generated_ms, self.horizon_ms)
        return found

    def terms(self, load: Floats) -> tuple[Floats, Floats]:
        """[row] the two parameters at a load: ms outstanding, largest demands a ms."""
        at, from_ms, price = self.table.T
        return np.interp(load, at, from_ms), np.interp(load, at, price)

    def _counted(self, tasks: DispatchObservation) -> Floats:
        """[row] arrivals of the EN so far, with this task, discounted by their age."""
        place = tasks.world, tasks.en
        gap = np.maximum(tasks.generated_ms - self.last_ms[place], 0.0)
        counted: Floats = prices.counted(self.count[place], gap, self.horizon_ms)
        return counted
