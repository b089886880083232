"""The result in one sentence: who wins, by how much, how sure that is, and at what cost.

Methods are ranked by success, averaged over the loads of a scenario that the focus was played at.
Only methods that were played at all of these loads are ranked; yardsticks, which are handed the
truth, stand beside the ranking and not in it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import polars

from cosmo.study.statistics import Difference, mean_over_loads, paired_over_loads

YARDSTICK_NOTE = (
    "A yardstick is handed the true state of every node, which no deployable method can know. It"
    " can be beaten all the same: it takes each task that is feasible as it comes and keeps no"
    " capacity for later ones, so that a method that refuses dear tasks may serve more of them."
)


@dataclass(frozen=True)
class Standing:
    """How one method did, averaged over the loads; NaN where nothing was measured."""

    method: str
    yardstick: bool
    success: float
    net_utility: float
    cost: float  # update cost in units per second
    ahead: Difference | None  # success of the focus minus this one's, on equal workloads


@dataclass(frozen=True)
class Verdict:
    """The standings of one scenario, best success first, and the focus among them."""

    scenario: str
    loads: tuple[tuple[str, float], ...]  # (arrivals, tasks/s)
    runs: int
    episodes: int  # of each run
    focus: Standing
    others: tuple[Standing, ...]
    left_out: tuple[str, ...]  # not played at all of the loads

    @property
    def rivals(self) -> list[Standing]:
        """The others that could be deployed, best first."""
        return [each for each in self.others if not each.yardstick]

    @property
    def place(self) -> int:
        """Of the focus among itself and its rivals, from 1."""
        return 1 + sum(each.success > self.focus.success for each in self.rivals)

    def sentence(self) -> str:
        """Who wins, by how much, with the paired interval, and at what cost."""
        own, rivals = self.focus, self.rivals
        if not rivals:
            return (
                f"{own.method} succeeds in {own.success:.3f} of the tasks, with {_cost(own)};"
                " there is no rival to compare it with."
            )
        best, many = rivals[0], len(rivals) + 1
        among = f"of {many} methods" if many > 2 else "of the two"
        ahead = best.ahead
        prices = f"with {_cost(own)} against {best.cost:.1f}"
        if ahead is None or not ahead.known:
            count = self.runs * self.episodes
            episodes = "one episode is" if count == 1 else f"{count} episodes are"
            best_one = "its only rival" if many == 2 else f"the best of {many - 1} rivals"
            return (
                f"{own.method} succeeds in {own.success:.3f} of the tasks and {best.method},"
                f" {best_one}, in {best.success:.3f}, {prices}; {episodes} too few to say which of"
                " them is better."
            )
        if ahead.low > 0.0:
            return (
                f"{own.method} wins {among}: it succeeds in {own.success:.3f} of the tasks,"
                f" {ahead} ahead of {best.method} ({best.success:.3f}), {prices}."
            )
        if ahead.high < 0.0:
            return (
                f"{own.method} is {_ordinal(self.place)} {among}: {best.method} succeeds in"
                f" {best.success:.3f} of the tasks, {own.method} in {own.success:.3f} ({ahead}),"
                f" {prices}."
            )
        return (
            f"{own.method} and {best.method} cannot be told apart: they succeed in"
            f" {own.success:.3f} and {best.success:.3f} of the tasks ({ahead}), {prices}."
        )

    def where(self) -> str:
        """What the sentence is about: scenario, loads, runs."""
        processes = dict.fromkeys(process for process, _ in self.loads)
        parts = []
        for process in processes:
            rates = [f"{rate:g}" for each, rate in self.loads if each == process]
            parts.append(f"{process} at {', '.join(rates)} tasks/s")
        runs = f"{self.runs} run{'s' * (self.runs > 1)} of {self.episodes} episode"
        mean = "mean over the loads; " if len(self.loads) > 1 else ""
        known = any(each.ahead is not None and each.ahead.known for each in self.others)
        intervals = "; [95 % bootstrap interval of paired differences]" if known else ""
        return (
            f"{self.scenario}: {'; '.join(parts)}; {mean}{runs}{'s' * (self.episodes > 1)}"
            f"{intervals}"
        )


def verdict(
    metrics: polars.DataFrame, focus: str, is_yardstick: Callable[[str], bool]
) -> Verdict | None:
    """Of one scenario's episodes; None if the focus was not played there."""
    own = metrics.filter(method=focus)
    if not len(own):
        return None
    loads = own.select("arrivals", "rate").unique(maintain_order=True)
    here = metrics.join(loads, on=["arrivals", "rate"], maintain_order="left")
    found = []
    left_out = []
    for name in here["method"].unique(maintain_order=True):
        rows = here.filter(method=name)
        if rows.select("arrivals", "rate").n_unique() < len(loads):
            left_out.append(name)
            continue
        ahead = None if name == focus else paired_over_loads(here, focus, name)
        found.append(
            Standing(
                method=name,
                yardstick=name != focus and is_yardstick(name),
                success=mean_over_loads(rows, "success_rate"),
                net_utility=mean_over_loads(rows, "net_utility_per_task"),
                cost=mean_over_loads(rows, "update_cost_rate"),
                ahead=ahead,
            )
        )
    found.sort(key=lambda each: math.inf if math.isnan(each.success) else -each.success)
    [mine] = [each for each in found if each.method == focus]
    return Verdict(
        scenario=str(own["scenario"][0]),
        loads=tuple(loads.iter_rows()),
        runs=own["seed"].n_unique(),
        episodes=own["episode"].n_unique(),
        focus=mine,
        others=tuple(each for each in found if each is not mine),
        left_out=tuple(left_out),
    )


def _cost(standing: Standing) -> str:
    return f"{standing.cost:.1f} update units/s"


def _ordinal(number: int) -> str:
    ending = (
        "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    )
    return f"{number}{ending}"
