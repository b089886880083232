"""The EN of `cosmo-next`: backlog estimate, probabilities, values; the best route, then a gate."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosmo.node import Dispatcher, DispatchObservation, Feedback, Site
from cosmo.policy.next.backlog_estimate import BacklogEstimate, Seen
from cosmo.policy.next.run_rows import RunRows
from cosmo.policy.next.settings import NextSettings, settings_at
from cosmo.policy.next.values import NEVER, best_route, weighed

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
Layers = Mapping[str, Floats]  # with a leading axis, one a run
Weigh = Callable[..., tuple[Any, Any, Any]]  # `values.weighed`, or the same compiled


@dataclass(slots=True)
class Considered:
    """What the EN knew, what each route would be worth more than a rejection, and the task's own
    fate there.
    """

    seen: Seen
    advantage: Floats  # [row, route]
    fate: Floats  # [row, route]

    def actions(self, margin: float) -> Ints:
        """Of each task the best route, or a rejection unless that is worth more."""
        route, worth = best_route(self.advantage, self.fate, margin)
        reject = self.advantage.shape[1]
        return np.asarray(np.where(worth > 0, route, reject), np.int64)


class NextDispatcher(Dispatcher):
    """ENs that take the route with the highest advantage over a rejection."""

    def __init__(
        self,
        site: Site,
        layers: Layers,
        run_rows: RunRows,
        settings: NextSettings,
        weigh: Weigh = weighed,
    ) -> None:
        self.layers, self.settings = layers, settings
        self._run_rows, self._weigh = run_rows, weigh
        self.site_settings = settings_at(settings, site)
        self.estimate = BacklogEstimate(site, settings)
        self._all_routes = self.estimate.all_routes

    def observe(self, feedback: Feedback) -> None:
        """Results and refusals are evidence."""
        self.estimate.observe(feedback)

    def consider(self, tasks: DispatchObservation) -> Considered:
        """Look at the tasks."""
        return self.weighed(tasks, self.estimate.see(tasks))

    def weighed(self, tasks: DispatchObservation, seen: Seen) -> Considered:
        """What the networks make of what the EN knows."""
        worlds = tasks.world
        before = {name: self._run_rows.spread(worlds, part) for name, part in seen.before.items()}
        task = {name: self._run_rows.spread(worlds, part) for name, part in seen.task.items()}
        places = self.estimate.places(tasks.en)
        if places.ndim > 1:
            places = np.maximum(self._run_rows.spread(worlds, places), 1.0)  # of empty run_rows too
        advantage, fate, _ = self._weigh(self.layers, before, task, places, self.site_settings)
        advantage = self._run_rows.gathered(worlds, advantage)
        if not self._all_routes:  # nothing is sent where no task fits or where there is no SN
            advantage = np.where(self.estimate.routes(tasks.en), advantage, NEVER)
        return Considered(seen, advantage, self._run_rows.gathered(worlds, fate))

    def commit(self, tasks: DispatchObservation, seen: Seen, actions: Ints) -> None:
        """Write down what was decided."""
        self.estimate.write(tasks, seen, actions)

    def decide(self, tasks: DispatchObservation) -> Ints:
        """What is worth most."""
        considered = self.consider(tasks)
        actions = considered.actions(self.settings.margin)
        self.commit(tasks, considered.seen, actions)
        return actions
