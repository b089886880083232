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
    """What the EN knew, the advantage of each route over a rejection, and the task's own expected
    result there.
    """

    seen: Seen
    advantage: Floats  # [row, route]
    fate: Floats  # [row, route]

    def actions(self, margin: float) -> Ints:
        """The best route of each task, or a rejection if no route has an advantage; [row]."""
        route, worth = best_route(self.advantage, self.fate, margin)
        reject = self.advantage.shape[1]
        return np.asarray(np.where(worth > 0, route, reject), np.int64)


class NextDispatcher(Dispatcher):
    """ENs that choose the route with the highest advantage over a rejection."""

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
        """Take in results and refusals as evidence."""
        self.estimate.observe(feedback)

    def consider(self, tasks: DispatchObservation) -> Considered:
        """Estimate backlogs and weigh the routes of these tasks."""
        return self.weighed(tasks, self.estimate.see(tasks))

    def weighed(self, tasks: DispatchObservation, seen: Seen) -> Considered:
        """The networks' advantages of the routes, given the EN's knowledge."""
        worlds = tasks.world
        before = {name: self._run_rows.spread(worlds, part) for name, part in seen.before.items()}
        task = {name: self._run_rows.spread(worlds, part) for name, part in seen.task.items()}
        places = self.estimate.places(tasks.en)
        if places.ndim > 1:
            places = np.maximum(self._run_rows.spread(worlds, places), 1.0)  # also without a row
        advantage, fate, _ = self._weigh(self.layers, before, task, places, self.site_settings)
        advantage = self._run_rows.gathered(worlds, advantage)
        if not self._all_routes:  # nothing is sent where no task fits or where there is no SN
            advantage = np.where(self.estimate.routes(tasks.en), advantage, NEVER)
        return Considered(seen, advantage, self._run_rows.gathered(worlds, fate))

    def commit(self, tasks: DispatchObservation, seen: Seen, actions: Ints) -> None:
        """Record decisions in the backlog estimate."""
        self.estimate.write(tasks, seen, actions)

    def decide(self, tasks: DispatchObservation) -> Ints:
        """Choose for each task the route with the highest advantage, or a rejection; [row]."""
        considered = self.consider(tasks)
        actions = considered.actions(self.settings.margin)
        self.commit(tasks, considered.seen, actions)
        return actions
