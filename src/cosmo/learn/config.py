"""Every number of training, validated; the paper's are the preset."""

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from cosmo.documents import Documents, Settings
from cosmo.node import RAW
from cosmo.policy.features import EN_LINK, EN_LOCAL, SN_OTHERS
from cosmo.scenario.fields import not_tiny

Finite = Annotated[float, Field(strict=True, allow_inf_nan=False, le=1e12)]
Positive = Annotated[Finite, Field(gt=0), AfterValidator(not_tiny)]
NotNegative = Annotated[Finite, Field(ge=0)]
Share = Annotated[float, Field(strict=True, ge=0, le=1)]
Count = Annotated[int, Field(strict=True, ge=1, le=1_000_000)]
Width = Annotated[int, Field(strict=True, ge=1, le=4096)]  # of layers and messages
EN_EXTRA = 5  # columns of an EN transition after its observation
Interval = Annotated[Positive, Field(ge=0.1)]  # ms, between two decisions of an SN


class Part(BaseModel):
    """A group of fields: unknown ones are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class EncoderConfig(Part):
    """The semantic encoder and its pretraining."""

    semantic: bool  # False: the SN sends its state as it is
    hidden: tuple[Width, Width]
    dimensions: Width
    collection_episodes: Count
    epochs: Count
    batch: Count
    learning_rate: Positive
    head_hidden: Width


class ExplorationConfig(Part):
    """Linear decay of ε over an agent's own steps (R24)."""

    start: Share
    end: Share
    steps: Count


class AuxiliaryConfig(Part):
    """Weights and widths of the training-only losses (R23)."""

    enabled: bool
    gate: NotNegative
    route: NotNegative
    margin: NotNegative
    margin_width: NotNegative
    boundary: NotNegative
    boundary_width: NotNegative


class EnConfig(Part):
    """Settings of the EN agent's training."""

    branch: Width
    fusion: Width
    learning_rate: Positive
    batch: Count
    replay: Count
    update_every: Count
    gradient_clip: Positive
    hierarchical: bool
    with_age: bool
    auxiliary: AuxiliaryConfig
    # These two came later: by default the target of a task is its utility, as in the paper.
    discount: Share = 0.0  # per task, of the value of the EN's next decision
    target_every: Count = 200  # updates, of the network that values it

    @property
    def bootstraps(self) -> bool:
        """Whether what comes after a task counts too."""
        return self.discount > 0.0

    def row_width(self, inputs: int) -> int:
        """Columns of a transition: an observation and what came of it; where values bootstrap,
        whether there is a next observation, and that one.
        """
        return inputs + EN_EXTRA + (1 + inputs if self.bootstraps else 0)


class SnConfig(Part):
    """Settings of the SN agent's training."""

    projection: Width
    hidden: Width
    learning_rate: Positive
    discount: Share
    batch: Count
    replay: Count
    update_every: Count
    target_every: Count
    gradient_clip: Positive
    intervals_ms: Annotated[tuple[Interval, ...], Field(min_length=1, max_length=1000)]
    may_skip: bool
    utility_weight: Positive  # β_SN
    stale_loss_weight: NotNegative
    reward_scale: Positive  # s_r, in units of the task value V
    # These two came later: by default they are what they were before there was a choice.
    utility_shift: Finite = 0.0  # added to every task's utility in the SN's reward (R33's test)
    discount_within_interval: bool = False  # R33

    @property
    def actions(self) -> int:
        """Send × intervals, then, if it may skip, no-send × intervals."""
        return len(self.intervals_ms) * (2 if self.may_skip else 1)

    @property
    def discount_per_ms(self) -> float:
        """What 1 ms inside an interval takes from a task's utility (R33); 1 by the paper's letter.

        Between intervals the discount counts time in units of the shortest one; so does this.
        """
        per_ms: float = self.discount ** (1.0 / min(self.intervals_ms))
        return per_ms if self.discount_within_interval else 1.0


class TrainingConfig(Part):
    """All settings of a training of `cosmo`."""

    episodes: Count
    validate_every: Count
    encoder: EncoderConfig
    exploration: ExplorationConfig
    en: EnConfig
    sn: SnConfig

    @property
    def dimensions(self) -> int:
        """How many numbers a status carries."""
        return self.encoder.dimensions if self.encoder.semantic else RAW

    @property
    def remote_inputs(self) -> int:
        """What the EN's remote branch sees of one SN (R20)."""
        return self.dimensions + EN_LINK + int(self.en.with_age)

    def en_inputs(self, sns: int) -> tuple[int, int]:
        """What an EN sees at a decision (R20), of itself and the task, and of so many SNs."""
        return EN_LOCAL, sns * self.remote_inputs

    @property
    def sn_inputs(self) -> int:
        """Of the SN's network (R19), which sees one EN at a time."""
        return 2 * self.dimensions + SN_OTHERS


CONFIGS = Documents("training", TrainingConfig, "cosmo.learn", "paper", "en.batch=64")


def load_config(source: str | Path = "paper", settings: Settings = ()) -> TrainingConfig:
    """A preset by name or a TOML file by path, with single fields set as `en.batch=64`."""
    return CONFIGS.load(source, settings)
