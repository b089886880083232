"""What a plan's rows say: simulator against live, method by method, and in one sentence."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from cosmo.live.bed.compare import Compared
from cosmo.live.bed.plan import BedPlan
from cosmo.measure import Interval
from cosmo.measure.statistics import interval

_PLAIN = re.compile(r".*?\.py:[^:]*|[^:]*")  # a method without its parameters


@dataclass(frozen=True)
class Standing:
    """A method at one load and time scale, over its episodes."""

    method: str  # as short as it can be told from the others
    arrivals: str
    rate: float
    scale: float
    simulated: float  # mean share of tasks in time
    live: float
    difference: Interval  # live minus simulated, over episodes
    same: float
    simulated_updates: float  # a second
    live_updates: float
    timer_p99_ms: float  # of the worst episode
    decision_p99_ms: float
    faults: int
    errors: int
    episodes: int
    refused: int  # episodes without a verdict

    @property
    def valid(self) -> bool:
        """Whether all of its episodes have a verdict."""
        return self.refused == 0

    def within(self, limit: float) -> bool:
        """Whether it has a verdict, and is as close as that."""
        return self.valid and abs(self.difference.mean) <= limit


def standings(plan: BedPlan, rows: Sequence[Compared]) -> list[Standing]:
    """In the plan's order."""
    names = short_names(plan.methods)
    groups: dict[tuple[str, float, float, str], list[Compared]] = {}
    for row in rows:
        groups.setdefault((row.arrivals, row.rate, row.scale, row.method), []).append(row)
    window_s = plan.loads()[0].episode.window_ms / 1000.0
    return [
        _standing(names[spec], own, window_s)
        for (_, _, _, spec), own in groups.items()
    ]  # fmt: skip


def _standing(name: str, own: list[Compared], window_s: float) -> Standing:
    count, first = len(own), own[0]
    return Standing(
        method=name,
        arrivals=first.arrivals,
        rate=first.rate,
        scale=first.scale,
        simulated=sum(row.simulated for row in own) / count,
        live=sum(row.live for row in own) / count,
        difference=interval([row.live - row.simulated for row in own]),
        same=sum(row.same for row in own) / count,
        simulated_updates=sum(row.simulated_updates for row in own) / count / window_s,
        live_updates=sum(row.live_updates for row in own) / count / window_s,
        timer_p99_ms=max(row.timer_p99_ms for row in own),
        decision_p99_ms=max(row.decision_p99_ms for row in own),
        faults=sum(row.faults for row in own),
        errors=sum(row.errors for row in own),
        episodes=count,
        refused=sum(not row.valid for row in own),
    )


def short_names(methods: Sequence[str]) -> dict[str, str]:
    """{method: its name without parameters}, with them where that would be another's, too."""
    plain = [_PLAIN.match(spec)[0] for spec in methods]  # type: ignore[index]  # matches all
    return {
        spec: name if plain.count(name) == 1 else spec
        for spec, name in zip(methods, plain, strict=True)
    }


def sentence(plan: BedPlan, found: Sequence[Standing]) -> str:
    """The verdict: how many are as close to the simulator as the plan asks for."""
    told = [each for each in found if each.valid]
    if not told:
        return (
            "No verdict: timers were late by more than"
            f" {plan.most_late_ms:g} ms (p99), or calls failed."
        )
    close = sum(each.within(plan.within) for each in told)
    worst = max(told, key=lambda each: abs(each.difference.mean))
    line = (
        f"Live nodes are within {plan.within:g} of the simulator's share of tasks in time in"
        f" {close} of {len(told)} comparisons; the largest difference is"
        f" {worst.difference.mean:+.3f} ({worst.method}, {worst.rate:g} tasks/s,"
        f" {pace_told(worst.scale)})."
    )
    if len(told) < len(found):
        few = len(found) - len(told)
        have = "has" if few == 1 else "have"
        line += f" {few} {have} no verdict: timers were late, or calls failed."
    return line


def pace_told(scale: float) -> str:
    """How fast it was."""
    return "real time" if scale == 1.0 else f"{scale:g} times slower"


def difference_told(each: Standing) -> str:
    """Live minus simulated for people, with the 95 % interval where there is one."""
    mean, ci95 = each.difference
    return f"{mean:+.3f}" + (f" ± {ci95:.3f}" if each.episodes > 2 else "")
