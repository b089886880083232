"""Settings of a controller of `cosmo-next` that are not learned, and their values at a site."""

from dataclasses import dataclass, fields
from typing import Any

from cosmo.node import IDLE, STORAGE, WAIT, WORK, Site
from cosmo.policy.controller_fields import Fields

_LEAST_SPAN = 1e-4  # in the longest deadline: an SN that looked more often would never end
_SEMANTIC, _RAW = (WORK, STORAGE), (IDLE, WAIT, WORK, STORAGE)


@dataclass(frozen=True, slots=True)
class Spans:
    """Lengths of time, in the longest deadline of a site, so that they fit any site."""

    slots: float  # when slots will be free is seen on this scale, …
    backlog: float  # … and a link's backlog, …
    wait: float  # … the wait for a slot, …
    slack: tuple[float, float, float]  # … and, from fine to coarse, the slack that is left
    far: float  # slots that are busy for longer are all the same
    exact: float  # deviations from the estimate below this say nothing about others
    surprise: float  # for how long surprises count
    evidence: float  # the age of evidence is seen on this scale, …
    oldest: float  # … and cut off here
    horizons: tuple[float, float, float]  # of the rates of arrivals
    variation: float  # of the variation of their gaps, and for how long a start counts as one
    look: float  # an SN decides again: soon if an update is nearly worth its price, …
    rest: float  # … else later


@dataclass(frozen=True, slots=True)
class NextSettings:
    """Of ENs and SNs alike; what is False by choice is for comparison."""

    failure: float  # κ: what a failed task costs, in successful ones
    margin: float  # values that differ by less cannot be told apart
    haste: float  # what a delay of a longest deadline costs, in tasks: it decides between equals
    least_chance: float  # routes that are less likely to be in time are never taken
    near: float  # share of its price from which on an update is nearly worth it
    own_traffic: bool  # ENs estimate backlogs from their own traffic too, not from statuses only
    evidence: bool  # ENs learn of others from results and statuses
    semantic: bool  # a status is work and room; False: all four numbers of R12
    single: bool  # a status is one number, as that of the multi-node controller
    spans: Spans

    @property
    def carried(self) -> tuple[int, ...]:
        """The fields of an SN's state that a status carries, in order, unless it is one number."""
        return _SEMANTIC if self.semantic else _RAW

    @property
    def dimensions(self) -> int:
        """How many numbers a status carries."""
        return 1 if self.single else len(self.carried)


def settings_from(training: Fields) -> NextSettings:
    """Those of a configuration of training; ValueError for a field that is missing or wrong."""
    en, sn = training.group("en"), training.group("sn")
    return NextSettings(
        failure=en.number("failure"),
        margin=en.number("margin"),
        haste=en.number("haste"),
        least_chance=en.number("least_chance", most=1.0),
        near=sn.number("near", most=1.0),
        own_traffic=en.truth("books"),
        evidence=en.truth("evidence"),
        semantic=sn.truth("semantic"),
        single=sn.has("single") and sn.truth("single"),
        spans=_spans(training.group("spans")),
    )


def _spans(told: Fields) -> Spans:
    found: dict[str, Any] = {
        each.name: told.number(each.name, _LEAST_SPAN)
        for each in fields(Spans)
        if each.name not in ("exact", "slack", "horizons")
    }
    return Spans(
        exact=told.number("exact"),
        slack=_three(told, "slack"),
        horizons=_three(told, "horizons"),
        **found,
    )


def _three(told: Fields, name: str) -> tuple[float, float, float]:
    first, second, third = told.numbers(name, _LEAST_SPAN, 3)
    return first, second, third


@dataclass(frozen=True, slots=True)
class SiteSettings:
    """The settings at a site, in ms; hashable, so that compiled code can be cached for each."""

    failure: float
    margin: float
    haste_per_ms: float
    least_chance: float
    slots_ms: float
    backlog_ms: float
    wait_ms: float
    slack_ms: tuple[float, float, float]
    far_ms: float
    evidence_ms: float
    oldest_ms: float


def settings_at(settings: NextSettings, site: Site) -> SiteSettings:
    """The settings at a site: times are in units of its longest deadline."""
    unit, spans = site.tasks.deadline_ms[1], settings.spans
    fine, middle, coarse = spans.slack
    return SiteSettings(
        failure=settings.failure,
        margin=settings.margin,
        haste_per_ms=settings.haste / unit,
        least_chance=settings.least_chance,
        slots_ms=spans.slots * unit,
        backlog_ms=spans.backlog * unit,
        wait_ms=spans.wait * unit,
        slack_ms=(fine * unit, middle * unit, coarse * unit),
        far_ms=spans.far * unit,
        evidence_ms=spans.evidence * unit,
        oldest_ms=spans.oldest * unit,
    )
