"""Plans that tune: the same budget for all, on validation episodes, the same for any executor."""

import shutil
from pathlib import Path

import polars
import pytest
import small
from small import SHORT, small_plan

from cosmo import InputError, Method
from cosmo.control import METHODS
from cosmo.learn.run import VALIDATION_EPISODES
from cosmo.report.tuned import tuned_table
from cosmo.seeds import Draws
from cosmo.study import LocalExecutor, conduct, load_plan, load_study
from cosmo.study.search import ranges_of
from cosmo.study.tune_units import frontier, tune_units
from cosmo.study.units import at_load, played_rows

TUNE = {"settings": 3, "seeds": [5], "curve": 2}


def _plan(methods=("periodic", "self-tracking", "shared-knowledge"), tune=TUNE, **changes):
    given = {"rates": [220.0], "episodes": 1, "tune": tune}
    return small_plan(methods, **given | changes)


def test_methods_with_parameters_are_tuned_and_played_on_evaluation_workloads(tmp_path):
    plan = _plan()
    conduct(plan, tmp_path / "a", LocalExecutor(1))
    study = load_study(tmp_path / "a")
    assert study.tuned["method"].unique().to_list() == ["periodic"]  # the others have no parameter
    assert set(study.tuned.select("seed", "episode").iter_rows()) == {(0, 0), (3, 0)}
    trials = polars.read_parquet(tmp_path / "a" / "trials.parquet")
    assert trials["setting"][0] == "periodic"
    assert len(trials) == 1 + 3
    chosen = study.tuned.filter("chosen")
    [setting] = chosen["setting"].unique()
    assert setting == trials.sort("success_rate", descending=True)["setting"][0]
    scenario = at_load(plan.scenario("paper"), "poisson", 220.0)
    played = played_rows(scenario, "x", METHODS["periodic"](float(setting[21:])), (0, 3), 1)
    assert chosen["success_rate"].to_list() == [row["success_rate"] for row in played]
    conduct(plan, tmp_path / "b", LocalExecutor(2))
    for name in ("tuned.parquet", "trials.parquet", "metrics.parquet"):
        one, two = (polars.read_parquet(tmp_path / each / name) for each in "ab")
        assert one.equals(two), name


def test_an_interrupted_study_ends_as_if_it_had_not_been(tmp_path):
    plan = _plan(("periodic", "aoi-threshold"))
    conduct(plan, tmp_path, LocalExecutor(1))
    before = {path.name: path.read_bytes() for path in tmp_path.glob("*.parquet")}
    units = {unit.method: tmp_path / "units" / unit.name for unit in tune_units(plan)}
    kept = (units["periodic"] / "done.json").stat().st_mtime_ns
    shutil.rmtree(units["aoi-threshold"])
    (tmp_path / "tuned.parquet").unlink()
    conduct(plan, tmp_path, LocalExecutor(1))
    assert (units["periodic"] / "done.json").stat().st_mtime_ns == kept
    assert {path.name: path.read_bytes() for path in tmp_path.glob("*.parquet")} == before


OWN = '''
import numpy as np
from cosmo import Dispatcher, Method
from small import PLAYED

class Mine(Method, Dispatcher):
    """Rejects what has less time left than `slack`."""

    def __init__(self, slack: float = 100.0, word: str = "a") -> None:
        self.slack = slack

    def dispatcher(self, site):
        PLAYED.extend((self.slack, each) for each in site.draws)
        return self

    def decide(self, tasks):
        return np.where(tasks.slack_ms < self.slack, tasks.reject, 0)
'''


def test_no_evaluation_workload_helps_to_choose(tmp_path):
    (tmp_path / "mine.py").write_text(OWN)
    plan = _plan((f"{tmp_path / 'mine.py'}:Mine",))
    [unit] = tune_units(plan)
    played = small.PLAYED
    played.clear()
    unit.carry_out(tmp_path, lambda share: None)
    evaluation = {Draws.of(seed, 0) for seed in (0, 3)}
    validation = {Draws.of(5, VALIDATION_EPISODES + number) for number in (0, 1)}
    assert {draws for _, draws in played} == evaluation | validation
    first = next(place for place, (_, draws) in enumerate(played) if draws in evaluation)
    assert all(draws in evaluation for _, draws in played[first:])
    assert len({slack for slack, _ in played[:first]}) == 1 + 3
    assert len({slack for slack, _ in played[first:]}) <= 2  # the chosen one, and of the curve


def test_ranges_without_a_word_are_around_the_default_and_within_bounds():
    found = ranges_of(METHODS["prequal"])
    assert found["quantile"] == "0.105:1:log"  # a share
    assert found["most_uses"] == "1:64:log"
    assert "numbers" not in ranges_of(METHODS["power-of-d"])  # 1 or 4 alone
    assert "interval_ms" not in ranges_of(METHODS["power-of-d"])  # has no number as default
    assert ranges_of(METHODS["periodic"], {"interval_ms": "5"}) == {}
    assert ranges_of(METHODS["self-tracking"]) == {}


def test_a_whole_number_below_eight_has_a_range_from_one():
    class Counting(Method):
        """Takes a count."""

        def __init__(self, count: int = 4, share: float = 4.0):
            pass

    assert ranges_of(Counting) == {"count": "1:32:log", "share": "0.5:32:log"}


@pytest.mark.parametrize(
    ("least", "most", "ranges"), [(0.0, 30.0, 0), (2.0, 99.0, 0), (0.5, 64.0, 1)]
)
def test_a_parameter_has_a_range_if_the_method_takes_both_ends_of_it(least, most, ranges):
    class Choosy(Method):
        """Takes a size within bounds of its own."""

        def __init__(self, size: float = 8.0):
            if not least <= size <= most:
                raise InputError(f"size = {size}: must be from {least} to {most}")

    assert len(ranges_of(Choosy)) == ranges


def test_the_trade_off_curve_has_the_cheapest_and_the_best():
    trials = polars.DataFrame(
        {
            "method": ["a", "b", "c", "d", "e", "f"],
            "success_rate": [0.5, 0.6, 0.55, 0.8, 0.9, None],
            "update_cost_rate": [1.0, 2.0, 3.0, 4.0, 5.0, None],
        }
    )
    assert frontier(trials, "success_rate", 9) == ["a", "b", "d", "e"]  # b beats c in both
    assert frontier(trials, "success_rate", 2) == ["a", "e"]
    assert frontier(trials, "success_rate", 0) == []
    # Of settings that are as good, the cheaper one; of those that cost the same, the better one.
    more = polars.DataFrame(
        {"method": ["g", "h"], "success_rate": [0.9, 0.7], "update_cost_rate": [6.0, 4.0]}
    )
    assert frontier(polars.concat([trials, more]), "success_rate", 9) == ["a", "b", "d", "e"]


def test_default_and_tuned_stand_side_by_side(tmp_path):
    conduct(_plan(("periodic",)), tmp_path, LocalExecutor(1))
    study = load_study(tmp_path)
    table = tuned_table(study.metrics, study.tuned)
    [row] = table.rows
    chosen = study.tuned.filter("chosen")
    assert row[2:4] == ("periodic", chosen["setting"][0])
    assert row[4][0] == pytest.approx(study.metrics["success_rate"].mean())
    assert row[5][0] == pytest.approx(chosen["success_rate"].mean())
    assert row[-1].mean == pytest.approx(row[5][0] - row[4][0])


@pytest.mark.parametrize(
    ("tune", "line"),
    [
        ({"over": {"periodic": {"interval": "1:5"}}}, "over interval: unknown parameter, did you"),
        ({"over": {"periodic": {"interval_ms": "5:1"}}}, "the first must be less than the second"),
        (
            {"over": {"perodic": {}}},
            "tune.over.perodic: is no method of the plan, did you mean periodic",
        ),
        ({"metric": "sucess_rate"}, "metric = 'sucess_rate': must be one of"),
        ({"settings": 0}, "tune.settings = 0: "),
    ],
)
def test_bad_tunings_are_one_line(tune, line):
    with pytest.raises(InputError, match=line) as found:
        _plan(tune=tune)
    assert "\n" not in str(found.value)


def test_an_empty_table_leaves_a_method_as_it_is():
    assert tune_units(_plan(tune={**TUNE, "over": {"periodic": {}}})) == []


def test_what_is_tuned_is_read_from_a_plan_beside_which_the_method_lies(tmp_path):
    (tmp_path / "mine.py").write_text(OWN)
    (tmp_path / "plan.toml").write_text(
        f'name = "x"\nsettings = {SHORT}\n[tune.over."mine.py:Mine"]\nslack = "1:5"\n'
        '[[compare]]\nmethods = ["mine.py:Mine"]\n'
    )
    plan = load_plan(tmp_path / "plan.toml", code="run")
    [unit] = tune_units(plan)
    assert unit.over == {"slack": "1:5"}
    assert Path(unit.method.partition(":")[0]).is_file()
    assert len(unit.loads) == 2 * len(plan.scenario("paper").workload.rates_of_interest)


def test_one_episode_is_enough_for_a_row():
    point = {"scenario": "s", "arrivals": "poisson", "rate": 220.0, "method": "periodic"}
    one = {"seed": 0, "episode": 0, "success_rate": 0.5, "update_cost_rate": 9.0}
    metrics = polars.DataFrame([point | one | {"net_utility_per_task": 1.0}])
    better = {"success_rate": 0.75, "net_utility_per_task": 2.0, "setting": "interval_ms=7"}
    tuned = polars.DataFrame([point | one | better | {"chosen": True}])
    [row] = tuned_table(metrics, tuned).rows
    assert row[:4] == ("poisson", 220.0, "periodic", "interval_ms=7")
    assert (row[4][0], row[5][0]) == (0.5, 0.75)
