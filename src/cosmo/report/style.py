"""How methods look, the same in every figure and on the page: by their place, not by their name.

Colours are those of Okabe and Ito, which people with any kind of colour vision can tell apart;
where there are more methods than colours, shapes and dashes differ.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

FOCUS_COLOUR = "#d55e00"  # vermilion: of the focus alone
YARDSTICK_COLOUR = "#202124"  # ink; the page turns it with its theme
_COLOURS = ("#0072b2", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#7a6a00", "#8c8c8c")
# Shapes for matplotlib and for Plotly, and dashes for both.
_MARKS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "h")
_SYMBOLS = (
    "circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "x", "triangle-left",
    "triangle-right", "pentagon", "hexagon",
)  # fmt: skip
_DASHES = (("-", "solid"), ("--", "dash"), (":", "dot"))


@dataclass(frozen=True)
class Look:
    """How one method is drawn: colour, marks and lines of matplotlib and Plotly."""

    colour: str
    mark: str  # matplotlib's
    symbol: str  # Plotly's
    line: str  # matplotlib's
    dash: str  # Plotly's
    width: float


def looks(
    methods: Iterable[str], focus: str | None = None, yardsticks: Collection[str] = ()
) -> dict[str, Look]:
    """A look for each method: the focus strong, yardsticks in ink, the others in turn."""
    found: dict[str, Look] = {}
    place = 0
    for name in methods:
        if name == focus:
            found[name] = Look(FOCUS_COLOUR, "*", "star", "-", "solid", 2.6)
            continue
        line, dash = _DASHES[(place // len(_COLOURS)) % len(_DASHES)]
        shape = place % len(_MARKS)
        if name in yardsticks:
            found[name] = Look(YARDSTICK_COLOUR, _MARKS[shape], _SYMBOLS[shape], ":", "dot", 1.2)
        else:
            tint = _COLOURS[place % len(_COLOURS)]
            found[name] = Look(tint, _MARKS[shape], _SYMBOLS[shape], line, dash, 1.4)
        place += 1
    return found
