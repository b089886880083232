"""One HTML file with everything in it: charts, tables, the episode viewer; works offline."""

from collections.abc import Sequence
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

import polars

from cosmo.files import whole_file
from cosmo.report import markup
from cosmo.report.page_data import empty_data, page_data
from cosmo.report.verdict import no_verdict
from cosmo.study.store import Study

# In this order they are one script.
_SCRIPTS = (
    "helpers.js",
    "base.js",
    "explained.js",
    "compare.js",
    "cost.js",
    "training.js",
    "engines.js",
    "film.js",
    "map.js",
    "player.js",
    "viewer.js",
    "main.js",
)
# What all recordings of one workload have in common.
_WORKLOAD = ("task", "time", "en", "bytes", "cycles", "deadline")
# In ms, with a number for each SN or route: most of a recording. The page shows one decimal.
_WIDE = ("delays", "true", "believed", "age")


def write_page(
    study: Study,
    summary: polars.DataFrame,
    bounds: polars.DataFrame,
    recordings: list[dict[str, Any]],
    path: Path,
    left_out: Sequence[str] = (),
) -> None:
    """Write the page of a study; its first sentence is the verdict about the focus.

    `left_out` says which methods are not in the episode viewer, and why.
    """
    data = page_data(study, summary, bounds) | {"leftOut": list(left_out)}
    told = {"sentence": no_verdict(study.focus, data["home"]), "where": ""}
    told |= next((each for each in data["verdicts"] if each["scenario"] == data["home"]), {})
    title = f"CoSMO: {study.plan.name}"
    _write(path, title, told["sentence"], told["where"], data, recordings)


def write_episodes(recordings: list[dict[str, Any]], title: str, path: Path) -> None:
    """Write a page that has nothing but the viewer of recorded episodes."""
    about = [("p", "Recorded episodes; the page was made by cosmo view, simulate --view or play.")]
    _write(path, title, "", "", empty_data("", about), recordings)


def _write(
    path: Path,
    title: str,
    sentence: str,
    where: str,
    data: dict[str, Any],
    recordings: list[dict[str, Any]],
) -> None:
    plotly, packed_plotly = _plotly()
    script = markup.one_newline("".join(map(part, _SCRIPTS)))
    values = {
        "POLICY": markup.in_html(markup.policy([plotly, script])),
        "TITLE": markup.in_html(title),
        "VERDICT": markup.in_html(sentence),
        "WHERE": markup.in_html(where),
        "CSS": part("report.css") + part("map.css"),
        "MAP": part("map.html"),
        "PLOTLY": packed_plotly,
        "DATA": markup.packed(markup.as_json(data)),
        "EPISODES": markup.packed(markup.as_json(with_common_columns(recordings))),
        "JS": script,
    }
    with whole_file(path) as temporary:
        temporary.write_text(markup.filled(part("report.html"), values), encoding="utf-8")


@lru_cache(maxsize=1)  # of all pages that a process writes
def _plotly() -> tuple[str, str]:
    """The library of the charts, as it is and packed."""
    from plotly.offline import get_plotlyjs

    source = markup.one_newline(get_plotlyjs())
    return source, markup.packed(source)


def part(name: str) -> str:
    """A file of the pages, as text."""
    return resources.files("cosmo.report").joinpath("page", name).read_text(encoding="utf-8")


def with_common_columns(recordings: list[dict[str, Any]]) -> dict[str, Any]:
    """The recordings, with the columns of a workload that all have in common once."""
    if not recordings:
        return {"workload": {}, "recordings": []}
    recordings = [each | {"tasks": _shortened(each["tasks"])} for each in recordings]
    first = recordings[0]["tasks"]
    common = {
        name: first[name]
        for name in _WORKLOAD
        if all(each["tasks"].get(name) == first[name] for each in recordings)
    }
    return {
        "workload": common,
        "recordings": [
            each
            | {"tasks": {name: each["tasks"][name] for name in each["tasks"] if name not in common}}
            for each in recordings
        ],
    }


def _shortened(tasks: dict[str, Any]) -> dict[str, Any]:
    """The columns of a recording with the wide ones in as many digits as the page shows."""
    return tasks | {name: _to_one_decimal(tasks[name]) for name in _WIDE if name in tasks}


def _to_one_decimal(value: Any) -> Any:
    if isinstance(value, list):
        return [_to_one_decimal(each) for each in value]
    if not isinstance(value, float):
        return value
    short = round(value, 1)
    return int(short) if short.is_integer() else short
