"""Leaderboards: values at equal cost, ranks, verdicts; and the benchmark in its small form."""

import math

import numpy as np
import pytest
from small import SHORT, small_plan

from cosmo import InputError
from cosmo.report.leaderboard import leaderboard_text, overall_table, track_table
from cosmo.study import LocalExecutor, conduct, load_plan, load_study
from cosmo.study.leaderboard import (
    AHEAD,
    UNCLEAR,
    at_cost,
    board_of,
    compared,
    estimated,
    holm,
    resampled_ranks,
)

TRACKS = ("pair", "shared", "crowd", "sparse tenants", "skewed", "uncertain", "throttled")
TRACKS += ("failing", "wild")


def test_holm_multiplies_the_least_by_all_and_never_falls():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.9, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_success_at_a_cost_lies_on_the_line_between_neighbours():
    curve = [(10.0, np.array([0.8, 0.6])), (2.0, np.array([0.4, 0.4])), (4.0, np.array([0.5, 0.5]))]
    found, dearer = at_cost(curve, 7.0)
    assert found == pytest.approx([0.65, 0.55])
    assert not dearer
    assert at_cost(curve, 100.0)[0] == pytest.approx([0.8, 0.6])  # cheaper at any setting
    assert at_cost(curve, 4.0)[0] == pytest.approx([0.5, 0.5])
    found, dearer = at_cost(curve, 1.0)
    assert found == pytest.approx([0.4, 0.4])
    assert dearer


def test_a_paired_test_is_students():
    one, other = np.array([[3.0, 5.0, 7.0]]), np.array([[2.0, 3.0, 4.0]])
    lead, p = compared(one, other)  # leads of 1, 2, 3: t = 2 / (1 / √3) = 3.46 with 2 degrees
    assert lead.mean == pytest.approx(2.0)
    assert p == pytest.approx(0.0742, abs=1e-4)
    assert lead.high == pytest.approx(2.0 + 4.3027 / math.sqrt(3.0), abs=1e-3)
    assert compared(one, one)[1] == 1.0
    assert compared(one, one - 1.0)[1] == 0.0
    assert not compared(one[:, :1], other[:, :1])[0].known


def test_trainings_that_differ_widen_intervals():
    same = np.array([[0.5, 0.6, 0.7]] * 3)
    apart = same + np.array([[-0.3], [0.0], [0.3]])
    assert estimated(apart).mean == pytest.approx(estimated(same).mean)
    # Over workloads 0.1 / √3, over trainings 0.3 / √3; the same degrees of freedom.
    ratio = estimated(apart).ci95 / estimated(same).ci95
    assert ratio == pytest.approx(math.sqrt(0.1**2 + 0.3**2) / 0.1)


def test_two_trainings_leave_one_degree_of_freedom_however_many_workloads_there_are():
    found = estimated(np.array([[0.5] * 9, [0.7] * 9]))
    # Means of 0.5 and 0.7: a standard error of 0.1, times Student's 12.706 for one degree.
    assert (found.mean, found.ci95) == pytest.approx((0.6, 1.2706), abs=1e-4)


def test_ranks_share_ties_and_follow_workloads_that_are_drawn_anew():
    best, mixed = np.array([[0.9, 0.9, 0.9, 0.9]]), np.array([[0.1, 0.1, 0.99, 0.1]])
    measured, drawn = resampled_ranks([best, mixed, best], seed=1)
    assert measured.tolist() == [1.5, 3.0, 1.5]
    assert set(drawn[:, 1]) == {1.0, 3.0}  # in (1/4)⁴ of the draws it is alone with its best one
    assert np.mean(drawn[:, 1] == 1.0) == pytest.approx(1 / 256, abs=0.005)
    again = resampled_ranks([best, mixed, best], seed=1)[1]
    assert (again == drawn).all()


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """The benchmark with short episodes, few settings and one more training of a method."""
    folder = tmp_path_factory.mktemp("board")
    plan = load_plan(
        "benchmark",
        [
            f"settings={SHORT}",
            "seeds=[0, 1, 2]",
            "tune.settings=2",
            "tune.seeds=[0]",
            'compare=[{methods=["cosmo-next", "periodic", "all-local", "shared-knowledge"]}]',
            'repeats={"periodic"=["periodic:interval_ms=50"]}',
        ],
    )
    progress = conduct(plan, folder, LocalExecutor(2))
    assert not progress.failed
    return load_study(folder)


def test_the_benchmark_has_every_method_on_every_track(small):
    board = board_of(small)
    assert tuple(board.tracks) == TRACKS
    methods = ["cosmo-next", "periodic", "all-local", "shared-knowledge"]
    for lines in board.tracks.values():
        assert [line.entry.method for line in lines] == methods
        ours, periodic, local, yardstick = lines
        assert (ours.lead, ours.verdict) == (None, "")
        assert (periodic.entry.trainings, local.entry.trainings) == (2, 1)
        assert local.entry.setting == ""  # it has no parameter
        assert periodic.entry.setting.startswith("periodic")
        assert (yardstick.own_rank, yardstick.regret) == (None, None)
        ideal = yardstick.entry.default["success_rate"].mean()
        success = local.entry.default["success_rate"].mean()
        assert local.regret.mean == pytest.approx(ideal - success)
        assert sum(line.own_rank.rank for line in lines[:3]) == pytest.approx(6.0)
        lead = ours.entry.default["success_rate"].mean() - local.entry.equal.mean()
        assert local.lead.mean == pytest.approx(lead)
        assert {line.verdict for line in (periodic, local)} <= {AHEAD, UNCLEAR, "behind"}
    assert set(board.equal_ranks) == set(methods[:3])


def test_the_leaderboard_is_the_same_text_every_time(small):
    text = leaderboard_text(board_of(small))
    assert text == leaderboard_text(board_of(small))
    assert text.count("\n### ") == len(TRACKS)
    overall = overall_table(board_of(small))
    assert [row[2] for row in overall.rows] == [9, 9, 9]
    crowd = track_table(board_of(small), "crowd")
    assert crowd.title.startswith("crowd: equal cost is ")
    assert crowd.rows[-1][0] == "shared-knowledge"


def test_only_a_plan_with_tracks_has_a_leaderboard(tmp_path):
    conduct(small_plan(("all-local",), rates=[120.0], seeds=[0]), tmp_path, LocalExecutor(1))
    with pytest.raises(InputError, match="plan = 'small': has no tracks"):
        board_of(load_study(tmp_path))


def test_tracks_have_names_and_scenarios_of_their_own():
    track = {"name": "a", "scenario": "paper", "rate": 220.0}
    with pytest.raises(InputError, match=r"^tracks\.name = 'a': is there twice$"):
        small_plan(tracks=[track, {**track, "scenario": "campus"}])
    with pytest.raises(InputError, match=r"^tracks\.scenario = 'paper': is there twice$"):
        small_plan(tracks=[track, {**track, "name": "b"}])


def test_methods_can_be_added_to_any_plan():
    plan = load_plan("benchmark", ['also=["random"]'])
    played = {scenario.name for scenario, _, _, name in plan.points() if name == "random"}
    assert len(played) == len(TRACKS)
