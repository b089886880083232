"""What a crowd is made of, each of it to be left out for comparison: `cosmo-next:off=rivals`."""

from collections.abc import Mapping

from cosmo.errors import InputError, did_you_mean
from cosmo.policy.next.crowd.numbers import MOST, Numbers

# What the numbers are without a part.
PARTS: Mapping[str, Mapping[str, float]] = {
    "keeping": {"keep": MOST.keep_more * MOST.keep},  # ENs keep to all SNs, and are told by all
    "rivals": {"rivals": 0.0, "doubt_rivals": 0.0},  # ENs count their own sends alone
    "doubt": {"doubt_ms": 0.1, "doubt_age": 0.0, "doubt_rivals": 0.0},  # books are taken for true
    "full": {"hold_ms": 1e-4, "firm": 0.0},  # that an SN was full is forgotten at once
    "blame": {"blame": 0.0},  # late results do not count against an SN
    "chance": {"noise": 0.0},  # near equals are not left to chance
    "price": {"price": 0.0, "price_home": 0.0},  # capacity has no price
    "insisting": {"insist": 0.0},  # news does not grow while it is not told
    "stagger": {"stagger": 0.0},  # all ENs are told at once
    "updates": {"worth": 0.0, "confirm": 0.0},  # nothing is told
}


def without(numbers: Numbers, part: str) -> Numbers:
    """The numbers without a part; InputError in one line if there is none such."""
    if part not in PARTS:
        known = did_you_mean(part, PARTS) or f" (parts: {', '.join(PARTS)})"
        raise InputError(f"off = {part!r}: is no part of a crowd{known}")
    return numbers._replace(**PARTS[part])
