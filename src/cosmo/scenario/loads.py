"""The load of a scenario: tasks of the ENs' cells (R2, R3, R35, R36) and of tenants (R39)."""

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from cosmo.scenario.fields import (
    Dwell,
    Finite,
    NotNegative,
    Part,
    Portion,
    Positive,
    Range,
    Rate,
    Weight,
    later,
    listed,
    ordered,
    two_or_two_each,
)


class Burst(Part):
    """Two-state modulated Poisson: rates in proportion to `weights`, exponential dwell times."""

    weights: tuple[Weight, Weight]
    dwell_ms: tuple[Dwell, Dwell]

    @model_validator(mode="after")
    def _some_load(self) -> Self:
        if sum(self.weights) == 0:
            raise ValueError("weights = [0, 0]: must not both be 0")
        return self


class Steps(Part):
    """Poisson whose rate changes at given shares of the window, in proportion to `weights`."""

    weights: Annotated[tuple[Weight, ...], Field(min_length=1)]
    at: tuple[Annotated[Finite, Field(gt=0, lt=1)], ...]

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if sum(self.weights) == 0:
            raise ValueError(f"weights = {list(self.weights)}: must not all be 0")
        if len(self.at) != len(self.weights) - 1 or list(self.at) != sorted(set(self.at)):
            raise ValueError(
                f"at = {list(self.at)}: must be {len(self.weights) - 1} shares of the window, in"
                " order of time"
            )
        return self


class Wave(Part):
    """R36: the rate of EN i is multiplied by 1 + amplitude · sin(2π (t/period + i/ENs))."""

    amplitude: Portion
    period_ms: Dwell


class Demand(Part):
    """R35: true cycles are the declared ones times a lognormal factor of mean 1, exp(s z - s²/2);
    unless demands are declared, nodes see the mean of `workload.cycles` for every task.
    """

    spread: Annotated[Finite, Field(ge=0, le=2)] = 0.0
    declared: Annotated[bool, Field(strict=True)] = True


class Deadline(Part):
    """How deadlines follow from the shortest path and a random slack (R3)."""

    factor: Positive
    slack_ms: tuple[NotNegative, NotNegative]
    clip_ms: Range

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        ordered("slack_ms", self.slack_ms)
        ordered("clip_ms", self.clip_ms)
        return self


class Workload(Part):
    """Tasks of each EN's cell (R2, R3); `rate` is the mean number a second in one cell, and what
    nodes know, whatever comes (R36).
    """

    arrivals: Literal["deterministic", "poisson", "bursty", "steps", "trace"]
    rate: Rate
    rates_of_interest: Annotated[tuple[Rate, ...], Field(min_length=1)]
    input_bytes: Range
    cycles: Range
    burst: Burst
    steps: Steps
    deadline: Deadline
    trace: str = ""  # a CSV or Parquet file: the tasks come from it instead
    trace_ues: Literal["present", "walk"] = "present"  # in reach whenever they upload, or R7
    block_ms: Positive = 1000.0  # pieces of which resampled episodes of a trace are made
    weights: tuple[Weight, ...] = later(())  # one an EN: rates in this proportion; none: all equal
    wave: Wave | None = later(None)
    demand: Demand = later(Demand())
    events: str = later("")  # a CSV or Parquet file: all that happens at nodes comes from it

    @model_validator(mode="before")
    @classmethod
    def _from_trace(cls, data: Any) -> Any:
        """Who names a trace need not say that arrivals are those of the trace."""
        if isinstance(data, dict) and data.get("trace"):
            return {**data, "arrivals": "trace"}
        if isinstance(data, dict) and data.get("arrivals") == "trace":
            raise ValueError("trace: missing, and arrivals = 'trace' needs the file of one")
        return data

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        ordered("input_bytes", self.input_bytes)
        ordered("cycles", self.cycles)
        return self

    @model_validator(mode="after")
    def _loads_fit(self) -> Self:
        if self.weights and sum(self.weights) == 0:
            raise ValueError(f"weights = {listed(self.weights)}: must not all be 0")
        if self.wave is not None and self.arrivals == "deterministic" and self.wave.amplitude > 0:
            raise ValueError(
                f"wave.amplitude = {self.wave.amplitude:g}: must be 0 with arrivals ="
                " 'deterministic'; poisson, bursty and steps may have a wave"
            )
        return self


class Background(Part):
    """Tenants (R39): load at each SN that no EN sees, two-state modulated Poisson; rates of 0 mean
    none. Rates and dwell times are the same at all SNs, or a list has those of each.
    """

    rates: Annotated[
        tuple[Weight, Weight] | tuple[tuple[Weight, Weight], ...], BeforeValidator(two_or_two_each)
    ]
    dwell_ms: Annotated[
        tuple[Dwell, Dwell] | tuple[tuple[Dwell, Dwell], ...], BeforeValidator(two_or_two_each)
    ]
    cycles: Range | None = later(None)  # of a task; `workload.cycles` by default
    together: Portion = later(0.0)  # this share of the SNs, the first, change state together

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.cycles is not None:
            ordered("cycles", self.cycles)
        return self

    def each(self, name: Literal["rates", "dwell_ms"], sns: int) -> tuple[tuple[float, float], ...]:
        """[SN] rates (tasks/s) or mean dwell times (ms) of the two states."""
        value: Any = getattr(self, name)
        return value if isinstance(value[0], tuple) else (value,) * sns
