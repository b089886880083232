"""The configuration of the training of `cosmo-next`, validated."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from cosmo.documents import Documents, Settings
from cosmo.learn.config import Count, NotNegative, Part, Positive, Share, Width
from cosmo.learn.next.multi_node.config import MultiNodeConfig
from cosmo.scenario.fields import MOST_MS
from cosmo.scenario.model import Arrivals

Span = Annotated[Positive, Field(ge=1e-3)]  # in longest deadlines; bounds how often SNs decide


class OthersConfig(Part):
    """Load of other users at the SNs, as in `background` of a scenario."""

    rates: tuple[NotNegative, NotNegative]
    dwell_ms: tuple[Positive, Positive]


class LoadsConfig(Part):
    """Loads of the training worlds. Rates are uniform between the scenario's lowest rate of
    interest times `below` and its highest times `above`. Arrival processes and loads of other users
    are drawn in equal shares; without `others`, the scenario's own background is used.
    """

    below: Positive
    above: Positive
    arrivals: Annotated[tuple[Arrivals, ...], Field(min_length=1)]
    others: tuple[OthersConfig, ...] = ()


class NextEnConfig(Part):
    """Training of the EN: its probabilities and values."""

    hidden: Width
    joint: Width
    chance_hidden: Width
    own_traffic: bool  # False, for comparison: backlogs are estimated from statuses alone
    evidence: bool  # False, for comparison: ENs ignore evidence of other users
    failure: NotNegative  # κ: cost of a failed task, in successful tasks; a rejection costs 0
    margin: NotNegative  # routes whose advantages differ by less are told apart by the task's fate
    delay_cost: NotNegative  # of a delay as long as the longest deadline, in tasks
    least_chance: Share  # least probability of being in time for a route to be taken
    horizon: Positive  # of the discount over elapsed time, in longest deadlines
    trace: Share  # λ
    exploration: Share
    tasks: Count  # that an expectation is taken over
    task_shift: Count  # decisions between two of them
    kept_rounds: Count
    steps: Count  # of the optimizer, a round
    batch: Count
    learning_rate: Positive
    gradient_clip: Positive
    averaging: Share  # of the weights that act, a step


class NextSnConfig(Part):
    """Training of the SN: the value of an update."""

    semantic: bool  # False, for comparison: a status carries all four numbers of R12
    single: bool = False  # a status is one number, as in the multi-node controller
    near: Share  # of its price, from which on an update is nearly worth it
    horizon: Positive  # for how long an update makes a difference, in longest deadlines
    look: Span  # mean time between decisions of an SN in training, likewise
    # Shares of an SN's decisions at which it sends, one of them drawn for each world.
    send_shares: Annotated[tuple[Share, ...], Field(min_length=1)]
    from_share: Share  # SNs learn from this share of the rounds on, when ENs can use statuses
    ridge: Positive
    confidence: NotNegative  # standard errors by which an update must be worth its price


class SpansConfig(Part):
    """Lengths of time, in longest deadlines of the site: see `policy.next.settings.Spans`."""

    slots: Positive
    backlog: Positive
    wait: Positive
    slack: tuple[Positive, Positive, Positive]
    far: Positive
    exact: NotNegative
    surprise: Positive
    evidence: Positive
    oldest: Positive
    horizons: tuple[Positive, Positive, Positive]
    variation: Positive
    look: Span
    rest: Span


class ScheduleConfig(Part):
    """Settings that change over the rounds, as shares of all rounds."""

    first_trace: Share  # λ at the start
    early: Positive  # until when it falls
    constant: Annotated[Share, Field(lt=1)]  # until when the rate of learning stays
    last: Share  # of the rate of learning, at the end
    fresh_rounds: Count  # first rounds whose samples are not kept, as the values are poor
    baseline_weight: Share  # of a later round in the baseline


class NextConfig(Part):
    """All settings of a training of `cosmo-next`."""

    episodes: Count
    worlds: Count
    window_ms: Annotated[Positive, Field(le=MOST_MS)]
    loads: LoadsConfig
    spans: SpansConfig
    schedule: ScheduleConfig
    en: NextEnConfig
    sn: NextSnConfig
    multi_node: MultiNodeConfig | None = None  # if given, one controller for all sites is trained


CONFIGS = Documents("training", NextConfig, "cosmo.learn.next", "next", "en.batch=512")


def load_next_config(source: str | Path = "next", settings: Settings = ()) -> NextConfig:
    """Load a preset by name or a TOML file by path, with single fields set as `en.batch=512`."""
    return CONFIGS.load(source, settings)
