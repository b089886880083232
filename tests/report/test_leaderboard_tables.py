"""Tables of a leaderboard, worked out by hand: two tracks, a focus, a rival, a yardstick."""

import math
from dataclasses import replace

import numpy as np
import pytest

from cosmo.report.leaderboard import leaderboard_text, overall_table, track_table
from cosmo.study.leaderboard import (
    AHEAD,
    BEHIND,
    UNCLEAR,
    YARDSTICK,
    Board,
    Entry,
    Estimate,
    Line,
    Rank,
)
from cosmo.study.statistics import Difference


def entry(method, default, tuned=None, setting="", dearer=False):
    def values(success):
        success = np.array([success])
        return {
            "success_rate": success,
            "net_utility_per_task": 10.0 * success,
            "update_cost_rate": 100.0 * success,
        }

    better = values(tuned or default)
    yardstick = method == YARDSTICK
    equal = better["success_rate"]
    return Entry(method, setting, yardstick, values(default), better, equal, dearer)


def line(entry, rank=None, verdict="", regret=None):
    lead = Difference(0.1, 0.05, 0.15) if verdict else None
    ranks = (None, None) if rank is None else (Rank(rank, rank, rank), Rank(3.0 - rank, 1.0, 2.0))
    return Line(entry, regret and Estimate(regret, 0.01, 2), lead, verdict, *ranks)


def board():
    rival = entry("rival", [0.5, 0.6], [0.6, 0.8], "rival:kappa=2,d=3", dearer=True)
    same = entry("rival", [0.3, 0.4], None, "rival")
    focus = entry("focus", [0.8, 0.9])
    ideal = entry(YARDSTICK, [0.95, 0.97])
    tracks = {
        "one": [
            line(ideal), line(rival, 1.0, AHEAD, regret=0.26), line(focus, 2.0, regret=0.11)
        ],
        "two": [line(same, 2.0, UNCLEAR, regret=0.6), line(focus, 1.0, regret=0.1)],
    }  # fmt: skip
    ranks = {"rival": Rank(1.5, 1.0, 2.0), "focus": Rank(1.25, 1.0, 2.0)}
    return Board("focus", tracks, {"one": 12.34, "two": 5.0}, ranks, ranks)


def rows(table):
    """[{column: value}] of a table."""
    names = [column.name for column in table.columns]
    return [dict(zip(names, row, strict=True)) for row in table.rows]


def test_the_table_over_all_tracks_has_means_and_counts_of_verdicts():
    focus, rival = rows(overall_table(board()))  # the better rank first
    assert (focus["method"], focus["tracks"], focus["trainings"]) == ("focus", 2, 1)
    assert [focus[f"focus {word} on"] for word in (AHEAD, BEHIND, UNCLEAR)] == [None] * 3
    assert [rival[f"focus {word} on"] for word in (AHEAD, BEHIND, UNCLEAR)] == [1, 0, 1]
    assert rival["success, default"] == pytest.approx((0.55 + 0.35) / 2)
    assert rival["success, tuned"] == pytest.approx((0.7 + 0.35) / 2)
    assert rival["regret, tuned"] == pytest.approx((0.26 + 0.6) / 2)
    assert str(rival["rank, equal cost"]) == "1.5 [1.0, 2.0]"


def test_means_of_nothing_are_unknown():
    bare = board()
    for lines in bare.tracks.values():
        lines[:] = [replace(each, regret=None) for each in lines]
    assert all(math.isnan(row["regret, tuned"]) for row in rows(overall_table(bare)))


def test_a_track_has_yardsticks_last_and_says_what_is_dearer_and_tuned_to_what():
    table = track_table(board(), "one")
    assert table.title == "one: equal cost is 12.3 units/s, that of focus"
    focus, rival, ideal = rows(table)  # by rank at equal cost: 1, 2, none
    assert [each["method"] for each in (focus, rival, ideal)] == ["focus", "rival", YARDSTICK]
    assert rival["focus is"] == "ahead (it is dearer)"
    assert focus["focus is"] is None
    assert rival["tuned to"] == "kappa=2,d=3"
    assert (focus["tuned to"], focus["success, tuned"]) == (None, None)
    assert rival["success, default"].mean == pytest.approx(0.55)
    assert rival["success, tuned"].mean == pytest.approx(0.7)
    assert rival["cost, tuned"].mean == pytest.approx(70.0)
    assert rival["net utility, default"].mean == pytest.approx(5.5)
    assert rival["focus minus it"].low == 0.05
    assert ideal["success, equal cost"] is None
    [rival, _] = sorted(
        rows(track_table(board(), "two")), key=lambda each: each["method"] != "rival"
    )
    assert rival["tuned to"] == "default"
    assert rival["focus is"] == UNCLEAR


def test_the_text_has_a_heading_for_each_track():
    text = leaderboard_text(board())
    assert [part.partition(":")[0] for part in text.split("### ")[1:]] == ["one", "two"]
    assert "| 0.800 … 0.900 | 8.0 … 9.0 | 80.0 … 90.0 |" in text  # success, net utility, cost
