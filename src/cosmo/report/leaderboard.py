"""Tables of a leaderboard: one over all tracks, and one for each track."""

import math
from typing import Any

import numpy as np

from cosmo.report.markup import in_markdown
from cosmo.report.table import Column, Table, difference, estimate, fixed
from cosmo.study.leaderboard import AHEAD, BEHIND, UNCLEAR, Board, Line, estimated

_SHOWN = (
    ("success_rate", "success", 3),
    ("net_utility_per_task", "net utility", 1),
    ("update_cost_rate", "cost", 1),
)


def overall_table(board: Board) -> Table:
    """A row a method, best rank at equal cost first: means over the tracks."""
    rows = []
    for name in sorted(board.equal_ranks, key=lambda each: board.equal_ranks[each].rank):
        lines = board.lines(name)
        entries = [line.entry for line in lines]
        verdicts = [line.verdict for line in lines]
        rows.append(
            (
                *(name, entries[0].trainings, len(lines)),
                _mean([each.default["success_rate"].mean() for each in entries]),
                _mean([each.tuned["success_rate"].mean() for each in entries]),
                _mean([line.regret.mean for line in lines if line.regret is not None]),
                board.own_ranks[name],
                board.equal_ranks[name],
                *(None if name == board.focus else verdicts.count(word) for word in _VERDICTS),
            )
        )
    columns = (
        Column("method", is_code=True), Column("trainings"), Column("tracks"),
        Column("success, default", form=fixed(3)), Column("success, tuned", form=fixed(3)),
        Column("regret, tuned", form=fixed(3)), Column("rank, own cost"),
        Column("rank, equal cost"),
        *(Column(f"{board.focus} {word} on") for word in _VERDICTS),
    )  # fmt: skip
    return Table("Leaderboard: means over all tracks", columns, tuple(rows))


_VERDICTS = (AHEAD, BEHIND, UNCLEAR)


def _mean(values: list[Any]) -> float:
    return float(np.mean(values)) if values else math.nan


def track_table(board: Board, track: str) -> Table:
    """A row a method, best rank at equal cost first, yardsticks last."""
    lines = sorted(board.tracks[track], key=_order)
    columns = (
        Column("method", is_code=True),
        *(
            Column(f"{title}, {which}", form=estimate(digits))
            for which in ("default", "tuned")
            for _, title, digits in _SHOWN
        ),
        Column("regret, tuned", form=estimate(3)),
        Column("success, equal cost", form=estimate(3)),
        Column(f"{board.focus} minus it", form=difference(3)),
        Column(f"{board.focus} is"),
        Column("rank, own cost"),
        Column("rank, equal cost"),
        Column("tuned to"),
    )
    title = f"{track}: equal cost is {board.costs[track]:.1f} units/s, that of {board.focus}"
    return Table(title, columns, tuple(map(_row, lines)))


def _order(line: Line) -> tuple[bool, float]:
    rank = math.inf if line.equal_rank is None else line.equal_rank.rank
    return line.entry.yardstick, rank


def _row(line: Line) -> tuple[Any, ...]:
    entry = line.entry
    return (
        entry.method,
        *(estimated(entry.default[metric]) for metric, *_ in _SHOWN),
        *(estimated(entry.tuned[metric]) if entry.setting else None for metric, *_ in _SHOWN),
        line.regret,
        None if entry.yardstick else estimated(entry.equal),
        line.lead,
        f"{line.verdict}{' (it is dearer)' if entry.dearer else ''}" if line.verdict else None,
        *(line.own_rank, line.equal_rank),
        entry.setting.partition(":")[2] or ("default" if entry.setting else None),
    )


def leaderboard_text(board: Board) -> str:
    """All of it in Markdown."""
    parts = [overall_table(board).markdown()]
    for track in board.tracks:
        table = track_table(board, track)
        parts.append(f"### {in_markdown(table.title)}\n\n{table.markdown()}")
    return "\n\n".join(parts)
