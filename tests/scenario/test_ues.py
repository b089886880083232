"""The number of UEs as a field."""

import pytest

from cosmo import InputError, load, simulate


def test_positions_are_spread_where_none_are_given_for_so_many():
    many = load("paper", ["ue.count=10"])
    assert many.ues == len(many.mobility.headings_deg) == 10
    distances = many.mobility.distances_m
    assert all(0.65 * 8 <= each <= 0.85 * 8 for each in distances)
    assert len(set(distances)) == 10
    assert load("paper", ["ue.count=10"]) == many
    # As many as are listed: they stay where they are.
    assert load("paper", ["ue.count=4"]).mobility == load("paper").mobility


def test_without_it_nothing_changes_and_nothing_is_written():
    assert "ue" not in load("paper").model_dump()
    assert load("paper").ues == 4


def test_tasks_come_from_all_of_them():
    found = simulate("paper", "all-offload", settings=["ue.count=7", "episode.window_ms=3000"])
    assert 0.0 < found.metrics["success_rate"].mean <= 1.0


@pytest.mark.parametrize("count", ["0", "-1", "1.5", "10001", '"many"'])
def test_nonsense_is_refused_in_one_line(count):
    with pytest.raises(InputError, match=r"ue\.count") as caught:
        load("paper", [f"ue.count={count}"])
    assert "\n" not in str(caught.value)
