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
    " capacity for later ones, so that a method that refuses large tasks may serve more of them."
)

# Bounds of success, the closest first, and where each comes from.
_LIMITS = {
    "clairvoyant_bound": "in time here, even if it knew all tasks in advance (clairvoyant bound)",
    "fluid_bound": "in time for long, even if all nodes were always busy with the smallest tasks"
    " (fluid bound, by capacity alone)",
}


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
        """Which method is best, by how much with the paired interval, and at what cost."""
        own, rivals = self.focus, self.rivals
        if not rivals:
            return (
                f"With {own.method} {_percent(own.success)} of the tasks are in time, at a cost of"
                f" {own.cost:.1f} update units a second; there is no rival to compare it with."
            )
        best, many = rivals[0], len(rivals) + 1
        rival = "its only rival" if many == 2 else f"the best of {many - 1} rivals"
        cost = f"sends {best.cost:.1f} update units a second instead of {own.cost:.1f}"
        if best.cost == 0.0:
            units = f"{own.cost:.1f} update units a second"
            cost = f"sends no status, {f'instead of {units}' if own.cost else f'as {own.method}'}"
        both = (
            f"with {own.method} {_percent(own.success)} of the tasks are in time, with"
            f" {best.method} {_percent(best.success)}"
        )
        ahead = best.ahead
        if ahead is None or not ahead.known:
            count = self.runs * self.episodes
            episodes = "one episode is" if count == 1 else f"{count} episodes are"
            return (
                f"W{both[1:]}, {rival}, which {cost}; {episodes} too few to say which of them is"
                " better."
            )
        if ahead.low <= 0.0 <= ahead.high:
            return (
                f"{own.method} and {best.method}, {rival}, cannot be told apart: {both}"
                f" (difference {_points(ahead.mean)}, 95 % interval {100 * ahead.low:.1f} to"
                f" {100 * ahead.high:.1f}); {best.method} {cost}."
            )
        low, high = sorted((abs(ahead.low), abs(ahead.high)))
        margin = (
            f"(difference {_points(abs(ahead.mean))}, 95 % interval {100 * low:.1f} to"
            f" {100 * high:.1f})"
        )
        if many == 2:
            rank = f"the {'better' if ahead.low > 0.0 else 'worse'} of the two methods"
        else:
            rank = f"{'best' if ahead.low > 0.0 else _ordinal(self.place)} of {many} methods"
        return (
            f"{own.method} is {rank}: with it {_percent(own.success)} of the tasks are in time;"
            f" {best.method}, {rival}, manages {_percent(best.success)} {margin} and {cost}."
        )

    def by_net_utility(self) -> str:
        """Which method is best by the paper's objective; empty if that is the best by success."""
        known = [each for each in (self.focus, *self.rivals) if not math.isnan(each.net_utility)]
        if len(known) < 2:
            return ""
        best = max(known, key=lambda each: each.net_utility)
        if best.success == max(each.success for each in known):
            return ""
        worth = f"{best.net_utility:.1f} a task"
        if best is not self.focus:
            worth += f", {self.focus.method} {self.focus.net_utility:.1f}"
        return (
            f"The order depends on what counts: by net utility, which also counts what failures,"
            f" wrong rejections and status messages cost, {best.method} is first ({worth})."
        )

    def upper_limit(self, bounds: polars.DataFrame) -> str:
        """How much success is possible at all.

        Args:
            bounds: Rows of `cosmo.study.statistics.bounds`.

        Returns:
            A sentence or two; empty if neither a bound nor a yardstick is known at all loads.

        """
        loads = polars.DataFrame(self.loads, ["arrivals", "rate"], orient="row")
        here = bounds.filter(scenario=self.scenario).join(loads, on=["arrivals", "rate"])
        told: list[str] = []
        for name, why in _LIMITS.items():
            if not told and len(known := here[name].drop_nulls()) == len(loads):
                most = _percent(float(known.to_numpy().mean()))
                told = [f"Upper limit: no method can have more than {most} of the tasks {why}."]
                if most == _percent(1.0):
                    told = ["Upper limit: the capacity of the nodes would do for all tasks."]
        marks = [
            f"{each.method} {_percent(each.success)}" for each in self.others if each.yardstick
        ]
        if marks:
            names = ", ".join(marks)
            told.append(f"Yardsticks, which know the true state of every node, have: {names}.")
        return " ".join(told)

    def where(self) -> str:
        """What the sentence is about: scenario, loads, runs."""
        processes = dict.fromkeys(process for process, _ in self.loads)
        parts = []
        for process in processes:
            rates = [rate_text(rate) for each, rate in self.loads if each == process]
            parts.append(f"{process} at {', '.join(rates)} tasks/s per cell")
        runs = f"{self.runs} run{'s' * (self.runs > 1)} of {self.episodes} episode"
        mean = "mean over the loads; " if len(self.loads) > 1 else ""
        known = any(each.ahead is not None and each.ahead.known for each in self.others)
        intervals = "; intervals: bootstrap over differences on equal workloads" if known else ""
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


def no_verdict(focus: str, scenario: str) -> str:
    """Instead of a verdict, where the focus has no results."""
    return f"{focus} has no results on {scenario}: it failed or was not played. No verdict."


def rate_text(rate: float) -> str:
    """Tasks/s for people; a trace's mean rate has more digits than anybody reads."""
    # Halves upwards, as the page's own scripts round.
    return f"{rate:g}" if rate < 10.0 else f"{math.floor(10.0 * rate + 0.5) / 10.0:g}"


def _percent(share: float) -> str:
    return "an unknown share" if math.isnan(share) else f"{100 * share:.1f} %"


def _points(difference: float) -> str:
    """A difference of two percentages: `0.3 points`."""
    return f"{100 * difference:.1f} points"


def _ordinal(number: int) -> str:
    ending = (
        "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    )
    return f"{number}{ending}"
