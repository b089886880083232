"""What tuning found: the best setting, its lead over the default, and every trial."""

import html
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars

from cosmo.study.statistics import Difference
from cosmo.study.style import METRIC_TITLES

# After the point; shares have three.
DIGITS = {"net_utility_per_task": 1, "utility_per_task": 1, "update_cost_rate": 1}


@dataclass(frozen=True, repr=False)
class Tuned:
    """The answer of `cosmo.tune`.

    `best_mean`, `default_mean` and `difference` are of validation episodes that the search did not
    use; the trials' numbers are of those that it used.
    """

    method: str  # the best, by a name that can be pasted; the default's if nothing beat it
    parameters: Mapping[str, str]  # its setting, as text; empty if it is the default
    default: str
    metric: str
    trials: polars.DataFrame  # a row a trial, the default first
    best_mean: float  # of the metric, over the loads
    default_mean: float
    difference: Difference | None  # best minus default, paired; None if there is nothing to compare
    document: Mapping[str, Any]  # the question: workloads, ranges, seeds
    checked_on: int  # episodes of the comparison at each load

    def to_frame(self) -> polars.DataFrame:
        """A row for every trial, in the order in which they were tried, the default first.

        Columns: `method`, each parameter as text (null: its default), the metric, success, net
        utility and update cost as means over the loads, `failed` (the cause, or null).
        """
        return self.trials

    def ranked(self) -> polars.DataFrame:
        """The same, best first, every method once; what failed comes last."""
        once = self.trials.unique("method", maintain_order=True, keep="first")
        return once.sort(self.metric, descending=True, nulls_last=True, maintain_order=True)

    def sentence(self) -> str:
        """The best setting against the default, in words."""
        title = METRIC_TITLES.get(self.metric, self.metric.replace("_", " "))
        digits = DIGITS.get(self.metric, 3)
        if not self.parameters:
            value = f"{title} {self.default_mean:.{digits}f}"
            return (
                f"No setting beats the default {self.default} ({value} on {self.checked_on}"
                " validation episodes that the search did not use)."
            )
        setting = ", ".join(f"{name}={value}" for name, value in self.parameters.items())
        means = f"{title} {self.best_mean:.{digits}f} against {self.default_mean:.{digits}f}"
        lead = self.difference
        where = f"on {self.checked_on} validation episodes that the search did not use"
        if lead is None or not lead.known:
            return f"{setting}: {means} of the default, {where}, too few to say which is better."
        told = f"{lead.mean:+.{digits}f} [{lead.low:+.{digits}f}, {lead.high:+.{digits}f}]"
        if lead.low > 0.0:
            return f"{setting} beats the default: {means}, {told}, {where}."
        if lead.high < 0.0:
            return f"{setting} is worse than the default after all: {means}, {told}, {where}."
        return f"{setting} and the default cannot be told apart: {means}, {told}, {where}."

    def plot(self) -> Any:
        """The metric over each parameter, a point a trial, as a matplotlib `Figure`."""
        from cosmo.study.sweeps import trials_figure

        names = list(self.document["over"])
        played = self.trials.filter(polars.col(self.metric).is_not_null())
        panels = {}
        for name in names:
            rows = played.filter(polars.col(name).is_not_null())
            panels[name] = (rows[name].to_list(), rows[self.metric].to_list())
        best = {name: self.parameters.get(name) for name in names}
        label = METRIC_TITLES.get(self.metric, self.metric)
        return trials_figure(panels, best, label)

    def __repr__(self) -> str:
        return f"<Tuned {self.method}: {self.sentence()}>"

    def _repr_html_(self) -> str:
        return (
            f"<p><b>{html.escape(self.sentence())}</b><br><code>{html.escape(self.method)}</code>"
            "</p>"
        )
