"""Tables are values until they are drawn."""

import math

from cosmo.report.table import Column, Table, estimate, fixed, percent, short, spread

TABLE = Table(
    "Gate–route",
    (
        Column("name", is_code=True),
        Column("rate_x", "tasks/s", short),
        Column("mean", form=spread(2)),
    ),
    (("a_b", 320.0, (0.5, 0.125)), ("c", None, (1.0, None)), ("d", math.nan, None)),
)


def test_values_are_written_as_their_column_says():
    assert TABLE.header == ["name", "rate_x (tasks/s)", "mean"]
    assert TABLE.texts() == [["a_b", "320", "0.50 ± 0.12"], ["c", "–", "1.00"], ["d", "–", "–"]]
    assert [form(0.25) for form in (fixed(1), percent)] == ["0.2", "+25.0 %"]
    assert estimate(2)((0.5, 0.125, 3)) == "0.50 ± 0.12"


def test_the_same_table_in_every_format():
    assert TABLE.markdown().splitlines()[:3] == [
        "| name | rate_x (tasks/s) | mean |", "|---|---|---|", "| `a_b` | 320 | 0.50 ± 0.12 |"
    ]  # fmt: skip
    assert TABLE.html().startswith("<table><tr><th>name</th><th>rate_x (tasks/s)</th>")
    text = TABLE.latex("x")
    assert r"\textbf{rate\_x (tasks/s)} & " in text
    assert r"a\_b & 320 & 0.50 $\pm$ 0.12 \\" in text
    assert r"\caption{Gate--route}" in text
    assert text.count("{") == text.count("}")
    assert TABLE.as_data() == {
        "title": TABLE.title, "header": TABLE.header, "rows": TABLE.texts()
    }  # fmt: skip


def test_some_columns_by_other_names():
    few = TABLE.only("Less of it", {TABLE.header[1]: "second", TABLE.header[0]: "first"})
    assert (few.title, few.header) == ("Less of it", ["second", "first"])
    assert few.texts() == [[row[1], row[0]] for row in TABLE.texts()]
