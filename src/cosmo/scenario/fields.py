"""The kinds of fields that a scenario has, and what is allowed in each."""

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

MOST_MS = 1e9  # of a window: eleven days
MOST_AMOUNT = 1e15  # whole numbers up to here are exact, and squares are far from overflowing
LEAST_MS = 1e-3  # of times that something is repeated after


def not_tiny(value: float) -> float:
    """Refuse numbers whose inverse is beyond all that makes sense."""
    if value < 1.0 / MOST_AMOUNT:
        raise PydanticCustomError("too_small", "Input should be at least 1e-15")
    return value


Finite = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=-MOST_AMOUNT, le=MOST_AMOUNT)]
Positive = Annotated[Finite, Field(gt=0), AfterValidator(not_tiny)]
Dwell = Annotated[Positive, Field(ge=LEAST_MS)]
Weight = Annotated[Finite, Field(ge=0, le=1e6)]
NotNegative = Annotated[Finite, Field(ge=0)]
Rate = Annotated[Positive, Field(le=1e6)]
Share = Annotated[Finite, Field(gt=0, le=1)]
Portion = Annotated[Finite, Field(ge=0, le=1)]
Count = Annotated[int, Field(strict=True, ge=1, le=1_000_000)]
Range = tuple[Positive, Positive]
PerLink = Positive | Annotated[tuple[tuple[Positive, ...], ...], Field(min_length=1)]

Number = Annotated[int, Field(strict=True)]  # of a node, from 0
Chosen = Number | Annotated[tuple[Number, ...], Field(min_length=1)]  # one of them, or several
Hops = Annotated[Count, Field(le=100)]
NodeCount = Annotated[Count, Field(le=100_000)]


def two_or_two_each(value: Any) -> Any:
    """Two numbers, or a list of such pairs: say so before every member of the list is looked at."""
    if isinstance(value, list | tuple):
        nested = [each for each in value if isinstance(each, list | tuple)]
        pairs = nested if len(nested) == len(value) else [value]
        if not pairs or any(len(pair) != 2 for pair in pairs):
            raise PydanticCustomError(
                "two_or_two_each", "must be two numbers, or a list with two numbers for each SN"
            )
    return value


class Part(BaseModel):
    """A table of a scenario: immutable, without unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def later(default: Any) -> Any:
    """A field that scenarios did not always have: left out of what is written while it is at its
    default, so that stored studies of before (units are named by a digest) stay what they are.
    """
    return Field(default=default, exclude_if=lambda value: value == default)


def ordered(name: str, bounds: tuple[float, float]) -> None:
    """Refuse bounds that are the wrong way round."""
    if bounds[0] > bounds[1]:
        raise ValueError(f"{name} = {list(bounds)}: must be [lowest, highest]")


def listed(value: tuple[Any, ...]) -> str:
    """A tuple as TOML would have it, and not longer than a line."""
    text = str([list(each) if isinstance(each, tuple) else each for each in value])
    return text if len(text) <= 60 else text[:57] + "..."
