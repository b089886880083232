"""Every number of the training of `cosmo-next`, validated."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from cosmo.documents import Documents
from cosmo.learn.config import Count, NotNegative, Part, Positive, Share


class LoadsConfig(Part):
    """What the worlds of training are fed: rates uniform between the scenario's lowest rate of
    interest times `below` and its highest times `above`; processes in equal shares.
    """

    below: Positive
    above: Positive
    arrivals: Annotated[
        tuple[Literal["deterministic", "poisson", "bursty", "steps"], ...], Field(min_length=1)
    ]


class NextEnConfig(Part):
    """The EN: chances and values."""

    hidden: Count
    joint: Count
    chance_hidden: Count
    books: bool  # False, for comparison: ENs forget what they have sent, only statuses tell
    evidence: bool  # False, for comparison: ENs ignore what results and statuses tell of others
    failure: NotNegative  # κ: what a failed task costs, in successful ones; a rejection costs 0
    margin: NotNegative  # routes whose advantages differ by less are told apart by the task's fate
    horizon_ms: Positive  # of the discount over elapsed time
    trace: Share  # λ
    exploration: Share
    tasks: Count  # that an expectation is taken over
    kept_rounds: Count
    steps: Count  # of the optimizer, a round
    batch: Count
    learning_rate: Positive
    gradient_clip: Positive
    averaging: Share  # of the weights that act, a step


class NextSnConfig(Part):
    """The SN: what an update is worth."""

    semantic: bool  # False, for comparison: a status carries all four numbers of R12
    horizon_ms: Positive  # for how long an update makes a difference
    look_ms: Positive
    send_shares: Annotated[tuple[Share, ...], Field(min_length=1)]  # of looks; drawn for each world
    from_share: Share  # learns from this share of the rounds on, when ENs know what to make of it
    ridge: Positive
    confidence: NotNegative  # standard errors by which an update must be worth its price


class NextConfig(Part):
    """All of it."""

    episodes: Count
    worlds: Count
    window_ms: Positive
    loads: LoadsConfig
    en: NextEnConfig
    sn: NextSnConfig


_CONFIGS = Documents("training", NextConfig, "cosmo.learn.next", "next", "en.batch=512")


def load_next_config(source: str | Path = "next", settings: Iterable[str] = ()) -> NextConfig:
    """A preset by name or a TOML file by path, with single fields set as `en.batch=512`."""
    return _CONFIGS.load(source, settings)


def next_config_from(data: dict[str, Any]) -> NextConfig:
    """A configuration from what `NextConfig.model_dump` gave."""
    return _CONFIGS.validated(data)
