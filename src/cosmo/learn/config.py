"""Every number of training, validated; the paper's are the preset."""

import tomllib
from importlib import resources
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Positive = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(strict=True, ge=0, le=1)]
Count = Annotated[int, Field(strict=True, ge=1)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class EncoderConfig(_Part):
    """The semantic encoder and its pretraining."""

    hidden: tuple[Count, Count]
    dimensions: Count
    collection_episodes: Count
    epochs: Count
    batch: Count
    learning_rate: Positive
    head_hidden: Count


class ExplorationConfig(_Part):
    """Linear decay of ε over an agent's own steps (R24)."""

    start: Share
    end: Share
    steps: Count


class AuxiliaryConfig(_Part):
    """Weights and widths of the training-only losses (R23)."""

    gate: NotNegative
    route: NotNegative
    margin: NotNegative
    margin_width: NotNegative
    boundary: NotNegative
    boundary_width: NotNegative


class EnConfig(_Part):
    """The EN agent."""

    branch: Count
    fusion: Count
    learning_rate: Positive
    batch: Count
    replay: Count
    update_every: Count
    gradient_clip: Positive
    hierarchical: bool
    with_age: bool
    auxiliary: AuxiliaryConfig


class SnConfig(_Part):
    """The SN agent."""

    projection: Count
    hidden: Count
    learning_rate: Positive
    discount: Share
    batch: Count
    replay: Count
    update_every: Count
    target_every: Count
    gradient_clip: Positive
    intervals_ms: Annotated[tuple[Positive, ...], Field(min_length=1)]
    may_skip: bool
    utility_weight: Positive  # β_SN

    @property
    def actions(self) -> int:
        """Send × intervals, then, if it may skip, no-send × intervals."""
        return len(self.intervals_ms) * (2 if self.may_skip else 1)


class TrainingConfig(_Part):
    """All of it."""

    episodes: Count
    validate_every: Count
    encoder: EncoderConfig
    exploration: ExplorationConfig
    en: EnConfig
    sn: SnConfig


def load_config() -> TrainingConfig:
    """The paper's configuration."""
    text = resources.files("cosmo.learn").joinpath("presets", "paper.toml").read_text("utf-8")
    return TrainingConfig.model_validate(tomllib.loads(text))
