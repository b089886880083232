"""The words of a verdict, and the data of a page, from standings and recordings made by hand."""

from cosmo.report.page import with_common_columns
from cosmo.report.verdict import Standing, Verdict
from cosmo.study.statistics import Difference


def _one(method, success, ahead=None, cost=0.0, yardstick=False):
    return Standing(method, yardstick, success, 1.0, cost, ahead)


def _verdict(focus, *others, loads=(("poisson", 320.0),)):
    return Verdict("paper", loads, 3, 2, focus, others, ())


def test_equal_methods_share_a_place_and_yardsticks_take_none():
    found = _verdict(
        _one("ours", 0.5), _one("perfect", 0.9, yardstick=True), _one("first", 0.6),
        _one("equal", 0.5), _one("last", 0.4),
    )  # fmt: skip
    assert found.place == 2


def test_a_method_that_is_surely_worse_is_told_by_how_much():
    behind = Difference(-0.1, -0.15, -0.05)
    others = _one("first", 0.7, behind, 3.0), _one("second", 0.65), _one("last", 0.4)
    assert _verdict(_one("ours", 0.6, cost=5.0), *others).sentence() == (
        "ours is 3rd of 4 methods: with it 60.0 % of the tasks are in time; first, the best of 3"
        " rivals, manages 70.0 % (difference 10.0 points, 95 % interval 5.0 to 15.0) and sends 3.0"
        " update units a second instead of 5.0."
    )
    alone = _verdict(_one("ours", 0.6), _one("other", 0.7, behind)).sentence()
    assert alone.startswith("ours is the worse of the two methods: with it 60.0 %")
    assert alone.endswith("and sends no status, as ours.")


def test_every_arrival_process_is_named_with_its_own_loads():
    loads = (("poisson", 120.0), ("mmpp", 320.0), ("poisson", 220.0))
    assert _verdict(_one("ours", 0.6), loads=loads).where() == (
        "paper: poisson at 120, 220 tasks/s per cell; mmpp at 320 tasks/s per cell; mean over the"
        " loads; 3 runs of 2 episodes"
    )


def test_a_page_has_the_columns_of_a_common_workload_once_and_loses_none():
    common = {
        "task": [0, 1],
        "time": [1.0, 2.0],
        "en": [0, 0],
        "cycles": [9, 8],
        "deadline": [5, 5],
    }
    columns = {**common, "delays": [[12.34, 5.0], [0.06, 7.56]]}
    same = {"method": "a", "tasks": {**columns, "bytes": [10, 20], "action": [0, 1]}}
    other = {"method": "b", "tasks": {**columns, "bytes": [10, 21], "action": [1, 1]}}
    found = with_common_columns([same, other])
    assert found["workload"] == common
    rounded = {"delays": [[12.3, 5], [0.1, 7.6]]}  # ms, as the page shows them
    for given, kept in zip((same, other), found["recordings"], strict=True):
        assert kept["method"] == given["method"]
        assert found["workload"] | kept["tasks"] == given["tasks"] | rounded
    assert with_common_columns([]) == {"workload": {}, "recordings": []}
