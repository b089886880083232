"""A table as data: columns and rows of values, which become text only where they are drawn."""

import html
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cosmo.measure import interval_text
from cosmo.report.markup import in_code, in_markdown, in_tex

NOTHING = "–"  # where there is no value
Form = Callable[[Any], str]
short = "{:g}".format  # no more digits than a number needs, as rates of tasks are shown


def fixed(digits: int) -> Form:
    """Numbers with so many digits after the point."""
    return lambda value: f"{value:.{digits}f}"


def percent(share: float) -> str:
    """A relative difference: `+12.3 %` of 0.123."""
    return f"{100 * share:+.1f} %"


def estimate(digits: int) -> Form:
    """(mean, 95 % half-width, runs) as `cosmo.measure.interval_text` has it."""
    return lambda value: interval_text(value[0], value[1], value[2], digits)


def spread(digits: int) -> Form:
    """(mean, standard deviation or None) as `0.912 ± 0.004`."""
    return lambda value: (
        f"{value[0]:.{digits}f}" + ("" if value[1] is None else f" ± {value[1]:.{digits}f}")
    )


def difference(digits: int) -> Form:
    """A `cosmo.study.statistics.Difference` as `+0.021 [+0.012, +0.030]`."""
    return lambda value: str(value.text(digits))


@dataclass(frozen=True)
class Column:
    """A column: its name, the unit of its values, and how one of them is written."""

    name: str
    unit: str = ""
    form: Form = str
    is_code: bool = False  # names of methods, in Markdown between backquotes

    @property
    def head(self) -> str:
        """The name with the unit in brackets."""
        return f"{self.name} ({self.unit})" if self.unit else self.name


@dataclass(frozen=True)
class Table:
    """Columns, rows of values, and a title; None and NaN are values that are not known."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Any, ...], ...]

    @property
    def header(self) -> list[str]:
        """The columns' names with their units."""
        return [column.head for column in self.columns]

    def only(self, title: str, names: Mapping[str, str]) -> "Table":
        """Some of its columns, by other names, below a title of their own."""
        places = [self.header.index(name) for name in names]
        columns = (
            replace(self.columns[place], name=name, unit="")
            for place, name in zip(places, names.values(), strict=True)
        )
        rows = (tuple(row[place] for place in places) for row in self.rows)
        return Table(title, tuple(columns), tuple(rows))

    def texts(self) -> list[list[str]]:
        """All values as they are read: rows of plain text, not yet escaped for any format."""
        return [
            [_text(value, column.form) for value, column in zip(row, self.columns, strict=True)]
            for row in self.rows
        ]

    def markdown(self) -> str:
        """For GitHub, without the title."""
        doors = [in_code if column.is_code else in_markdown for column in self.columns]
        rows = [[door(cell) for door, cell in zip(doors, row, strict=True)] for row in self.texts()]
        return markdown([in_markdown(name) for name in self.header], rows)

    def __str__(self) -> str:
        return self.markdown()

    def html(self) -> str:
        """A `<table>`, without the title."""
        lines = [("th", self.header), *(("td", row) for row in self.texts())]
        body = (
            "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in row) for tag, row in lines
        )
        return f"<table>{''.join(f'<tr>{line}</tr>' for line in body)}</table>"

    def latex(self, label: str) -> str:
        """A floating table for a paper, its title the caption; needs no package."""
        heads = (rf"\textbf{{{in_tex(name)}}}" for name in self.header)
        return "\n".join(
            [
                r"\begin{table}[!t]",
                rf"\caption{{{in_tex(self.title)}}}",
                rf"\label{{tab:{label}}}",
                r"\centering",
                r"\begin{tabular}{" + "l" * len(self.columns) + "}",
                r"\hline",
                " & ".join(heads) + r" \\",
                r"\hline",
                *(" & ".join(map(in_tex, row)) + r" \\" for row in self.texts()),
                r"\hline",
                r"\end{tabular}",
                r"\end{table}",
            ]
        )

    def as_data(self) -> dict[str, Any]:
        """For JSON: `title`, `header` and `rows` of plain text."""
        return {"title": self.title, "header": self.header, "rows": self.texts()}


def _text(value: Any, form: Form) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return NOTHING
    return value if isinstance(value, str) else form(value)


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The lines of a table whose cells are Markdown already."""
    first, *others = ("| " + " | ".join(row) + " |" for row in (header, *rows))
    return "\n".join([first, "|" + "---|" * len(header), *others])
