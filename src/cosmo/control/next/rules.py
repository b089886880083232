"""What a controller of `cosmo-next` is told, rather than learns."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_SEMANTIC, _RAW = 2, 4  # numbers in a status


@dataclass(frozen=True, slots=True)
class NextRules:
    """Of ENs and SNs alike; what is False by choice is for comparison."""

    failure: float = 1.0  # κ: what a failed task costs, in successful ones
    margin: float = 0.1  # values that differ by less cannot be told apart
    books: bool = True  # ENs keep books of what they have sent; else only statuses tell
    evidence: bool = True  # ENs learn of others from results and statuses
    semantic: bool = True  # a status is work and room; False: all four numbers of R12

    @property
    def dimensions(self) -> int:
        """How many numbers a status carries."""
        return _SEMANTIC if self.semantic else _RAW


def rules_from(training: Mapping[str, Any]) -> NextRules:
    """Those of a configuration of training, as plain data."""
    en, sn = training["en"], training["sn"]
    # Controllers that were trained before there was a choice acted as these defaults say.
    return NextRules(
        failure=en["failure"],
        margin=en.get("margin", 0.0),
        books=en.get("books", True),
        evidence=en["evidence"],
        semantic=sn.get("semantic", True),
    )
