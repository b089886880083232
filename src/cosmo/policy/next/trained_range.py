"""The range of sites that a `cosmo-next` controller was trained for."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from cosmo.node import Hidden, Site
from cosmo.policy.controller_fields import Fields
from cosmo.policy.next.multi_node.scaling import DEADLINE_MS

Bounds = tuple[float, float]


@dataclass(frozen=True)
class TrainedRange:
    """Bounds (least, most) of each quantity; times in ms at a longest deadline of 220 ms."""

    ens: Bounds
    sns: Bounds
    load: Bounds  # share of the capacity that ENs ask for
    rate: Bounds  # tasks a second of an EN
    hidden: Hidden  # the worst of each

    def beyond(self, site: Site, hidden: Hidden) -> str:
        """One line that says what of a site is outside the range; empty if nothing is."""
        said = [
            f"{name} = {value:g} (trained: {low:g} to {high:g})"
            for name, value, low, high in (*self._known(site), *self._hidden(site, hidden))
            if not low <= value <= high
        ]
        return f"cosmo-next was not trained for such a site: {', '.join(said)}" if said else ""

    def _known(self, site: Site) -> Iterator[tuple[str, float, float, float]]:
        """(name, value, least, most) of each quantity that nodes know."""
        asked = site.tasks.rate / 1000.0 * site.tasks.mean_cycles * len(site.en)
        load = asked / float(site.en.full_rate.sum() + site.sn.full_rate.sum())
        yield "ENs", len(site.en), *self.ens
        yield "SNs", len(site.sn), *self.sns
        yield "share of the capacity asked for", round(load, 2), 0.0, self.load[1]
        # Presets are drawn beside the bounds, some with half the least rate.
        yield "tasks/s an EN", site.tasks.rate, 0.5 * self.rate[0], np.inf

    def _hidden(self, site: Site, hidden: Hidden) -> Iterator[tuple[str, float, float, float]]:
        """(name, value, least, most) of each quantity that nodes do not know."""
        known, scale = self.hidden, site.tasks.deadline_ms[1] / DEADLINE_MS
        yield "spread of demands", hidden.spread, 0.0, known.spread
        yield (
            "highest load of an EN over the mean",
            round(hidden.load_ratio, 2),
            0.0,
            known.load_ratio,
        )
        yield "amplitude of load waves", hidden.wave, 0.0, known.wave
        yield "time that tenants stay in ms", hidden.tenants_ms, 0.0, scale * known.tenants_ms
        yield "least speed factor", hidden.slowest, known.slowest, np.inf
        least_ms = scale * known.between_failures_ms
        yield "time between failures of an SN in ms", hidden.between_failures_ms, least_ms, np.inf
        yield "time that a failed SN is down in ms", hidden.down_ms, 0.0, scale * known.down_ms
        yield "share of statuses lost", hidden.lost, 0.0, known.lost

    def of_pairs(self, training: Fields) -> "TrainedRange":
        """The range of the networks that act where one EN has one SN, trained by themselves."""
        loads = training.group("loads")
        others = loads.groups("others") if loads.has("others") and loads.value("others") else []
        stays_ms = [ms for each in others for ms in each.numbers("dwell_ms", 0.0, 2)]
        known = Hidden(tenants_ms=max(stays_ms, default=0.0))
        return replace(self, load=(0.0, np.inf), rate=(0.0, np.inf), hidden=known)


def range_from(kinds: Fields) -> TrainedRange:
    """The range from a training's kinds of worlds; ValueError for a missing or wrong field."""

    def both(name: str) -> Bounds:
        low, high = kinds.numbers(name, 0.0, 2)
        return low, high

    weight = both("weight")
    return TrainedRange(
        ens=both("ens"),
        sns=both("sns"),
        load=both("load"),
        rate=both("rate"),
        hidden=Hidden(
            spread=both("spread")[1],
            load_ratio=weight[1] / (0.5 * sum(weight)),
            wave=both("amplitude")[1],
            tenants_ms=both("dwell_ms")[1],
            slowest=both("slow")[0],
            between_failures_ms=both("up_ms")[0],
            down_ms=both("down_ms")[1],
            lost=both("loss")[1],
        ),
    )
