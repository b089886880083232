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
    "pressure": {"press": 0.0},  # an SN that is often full tells as any other
    "insisting": {"insist": 0.0},  # news does not grow while it is not told
    "stagger": {"stagger": 0.0},  # all ENs are told at once
    "updates": {"worth": 0.0, "confirm": 0.0},  # nothing is told
}


SHAPE = "shape"  # numbers do not bend with the site, and are those of the middle


def known_part(part: str) -> str:
    """The same; InputError in one line if there is none such."""
    if part not in (*PARTS, SHAPE):
        known = did_you_mean(part, [*PARTS, SHAPE]) or f" (parts: {', '.join([*PARTS, SHAPE])})"
        raise InputError(f"off = {part!r}: is no part of a crowd{known}")
    return part


def without(numbers: Numbers, part: str) -> Numbers:
    """The numbers without a part."""
    return numbers._replace(**PARTS[part])
