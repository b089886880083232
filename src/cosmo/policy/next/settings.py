"""Settings of a `cosmo-next` controller that are not learned, and their values at a site."""

from dataclasses import dataclass, fields
from typing import Any

from cosmo.node import IDLE, STORAGE, WAIT, WORK, Site
from cosmo.policy.controller_fields import Fields

_LEAST_SPAN = 1e-4  # in longest deadlines: simulations of SNs that decide more often never end
_SEMANTIC, _RAW = (WORK, STORAGE), (IDLE, WAIT, WORK, STORAGE)


@dataclass(frozen=True, slots=True)
class Spans:
    """Lengths of time, in units of the longest deadline of a site, so that they fit any site."""

    slots: float  # when slots will be free is seen on this scale, …
    backlog: float  # … and a link's backlog, …
    wait: float  # … the wait for a slot, …
    slack: tuple[float, float, float]  # … and, from fine to coarse, the slack that is left
    far: float  # slots that are busy for longer are all the same
    exact: float  # smaller deviations from the estimate are no evidence of other users
    surprise: float  # for how long surprises count
    evidence: float  # the age of evidence is seen on this scale, …
    oldest: float  # … and cut off here
    horizons: tuple[float, float, float]  # of the rates of arrivals
    variation: float  # of the variation of their gaps, and for how long a start counts as one
    look: float  # an SN decides again: soon if an update is nearly worth its price, …
    rest: float  # … else later


@dataclass(frozen=True, slots=True)
class NextSettings:
    """Settings of ENs and SNs; the flags are there for comparison."""

    failure: float  # κ: cost of a failed task, in successful tasks
    margin: float  # values that differ by less cannot be told apart
    delay_cost: float  # of a delay as long as the longest deadline, in tasks: it breaks ties
    least_chance: float  # routes that are less likely to be in time are never taken
    near: float  # share of its price from which on an update is nearly worth it
    own_traffic: bool  # ENs estimate backlogs from their own traffic too, not from statuses only
    evidence: bool  # ENs detect other users from results and statuses
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
    """Read the settings of a training; ValueError for a field that is missing or wrong."""
    en, sn = training.group("en"), training.group("sn")
    if not en.has("own_traffic"):  # the settings had other names in earlier versions
        raise ValueError(f"{en.name('own_traffic')}: is missing; train it again, with this version")
    return NextSettings(
        failure=en.number("failure"),
        margin=en.number("margin"),
        delay_cost=en.number("delay_cost"),
        least_chance=en.number("least_chance", most=1.0),
        near=sn.number("near", most=1.0),
        own_traffic=en.truth("own_traffic"),
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
    delay_cost_per_ms: float
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
        delay_cost_per_ms=settings.delay_cost / unit,
        least_chance=settings.least_chance,
        slots_ms=spans.slots * unit,
        backlog_ms=spans.backlog * unit,
        wait_ms=spans.wait * unit,
        slack_ms=(fine * unit, middle * unit, coarse * unit),
        far_ms=spans.far * unit,
        evidence_ms=spans.evidence * unit,
        oldest_ms=spans.oldest * unit,
    )
