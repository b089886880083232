"""Plans: presets, files, what they cut the work into, and what is refused."""

import pytest
from small import small_plan

from cosmo import InputError
from cosmo.study import load_plan, plan_names, reported
from cosmo.study.units import PlayUnit, TrainUnit
from cosmo.study.work import units_of


def test_presets():
    assert plan_names() == ["paper", "baselines", "engines", "paper-quick"]
    paper = load_plan("paper")
    points = {(arrivals, rate, name) for _, arrivals, rate, name in paper.points()}
    cosmo = {point for point in points if point[2] == "cosmo"}
    assert len(cosmo) == 14
    assert {rate for _, rate, name in points if name == "cosmo-flat"} == {120.0, 220.0, 320.0}
    paper_methods = set(reported()["method"])
    assert paper_methods <= {name for _, _, name in points}
    quick = load_plan("paper-quick")
    assert {(a, r, m) for _, a, r, m in quick.points()} == points


def test_every_point_is_in_exactly_one_unit():
    plan = load_plan("paper")
    found = []
    for unit in units_of(plan):
        if isinstance(unit, TrainUnit):
            found += [(process, unit.rate, unit.method) for process in unit.arrivals]
        else:
            assert isinstance(unit, PlayUnit)
            found += [(unit.arrivals, rate, unit.method) for rate in unit.rates]
    assert len(found) == len(set(found))
    assert set(found) == {(a, r, m) for _, a, r, m in plan.points()}
    names = [unit.name for unit in units_of(plan)]
    assert len(names) == len(set(names))


def test_every_scenario_on_every_engine():
    plan = small_plan(("all-local", "cosmo"), engines=["embedded", "ns3"])
    assert [scenario.name for scenario in plan.worlds("paper")] == ["paper", "paper-ns3"]
    assert {(s.name, s.engine) for s, *_ in plan.points()} == {
        ("paper", "embedded"),
        ("paper-ns3", "ns3"),
    }
    trained = [unit for unit in units_of(plan) if isinstance(unit, TrainUnit)]
    assert {(unit.scenario.engine, unit.engine) for unit in trained} == {
        ("embedded", "embedded"),
        ("ns3", "ns3"),
    }
    how = {"engine": "embedded", "settings": plan.training.settings}
    plan = small_plan(("cosmo",), engines=["ns3"], training=how)
    assert {(unit.scenario.engine, unit.engine) for unit in units_of(plan)} == {("ns3", "embedded")}
    with pytest.raises(InputError, match=r"engines.0 = 'omnet': must be 'embedded' or 'ns3'"):
        small_plan(engines=["omnet"])


def test_a_unit_is_named_by_its_content():
    one, other = small_plan().units(), small_plan(episodes=3).units()
    assert [unit.name for unit in one] == [unit.name for unit in small_plan().units()]
    assert not {unit.name for unit in one} & {unit.name for unit in other}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('name = "x"', "compare: missing"),
        ('name = "x"\n[[compare]]\nmethods = ["nope"]', "method = 'nope': unknown"),
        ('name = "x"\nseeds = [1, 1]\n[[compare]]\nmethods = ["random"]', "must be different"),
        ('name = "x"\nepisodes = 0\n[[compare]]\nmethods = ["random"]', "episodes = 0: must be"),
        ('name = "x"\nepisode = 1\n[[compare]]\nmethods = ["random"]', "did you mean episodes?"),
        (
            'name = "x"\narrivals = ["often"]\n[[compare]]\nmethods = ["random"]',
            "arrivals.0 = 'often': must be 'deterministic', 'poisson' or 'bursty'",
        ),
        (
            'name = "x"\narrivals = ["poisson "]\n[[compare]]\nmethods = ["random"]',
            "arrivals.0 = 'poisson ': must be 'deterministic', 'poisson' or 'bursty'",
        ),
        (
            'name = "x"\n[[compare]]\nmethods = ["random"]\narrivals = ["Poisson"]',
            "compare.0.arrivals.0 = 'Poisson': must be 'deterministic', 'poisson' or 'bursty'",
        ),
        (
            'name = "x"\nrates = [inf]\n[[compare]]\nmethods = ["random"]',
            "workload.rate = inf: must be a finite number",
        ),
        (
            'name = "x"\nseeds = [9223372036854775808]\n[[compare]]\nmethods = ["random"]',
            "seeds.0 = 9223372036854775808: must be less than",
        ),
        (
            'name = "x"\nscenarios = ["mars"]\n[[compare]]\nmethods = ["random"]',
            "scenario = 'mars': no such preset",
        ),
        (
            'name = "x"\n[training]\nsettings = ["en.batch=0"]\n[[compare]]\nmethods = ["cosmo"]',
            "en.batch = 0: must be",
        ),
    ],
)
def test_a_wrong_plan_is_one_line(tmp_path, text, line):
    path = tmp_path / "plan.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=line.replace("?", r"\?").replace("[", r"\[")) as error:
        load_plan(path)
    assert "\n" not in str(error.value)


def test_two_scenarios_of_one_name_are_refused(tmp_path):
    mine = tmp_path / "mine.toml"
    mine.write_text('extends = "paper"\n[workload]\nrate = 99')
    with pytest.raises(InputError, match="two are called 'paper'"):
        small_plan(scenarios=["paper", str(mine)])


@pytest.mark.parametrize("name", ["2024", "true", "[1]", '"quoted"', "a = b", "1e5", "#x"])
def test_a_scenario_may_be_called_anything(tmp_path, name):
    mine = tmp_path / "mine.toml"
    mine.write_text(f"extends = 'paper'\nname = '{name}'")
    plan = small_plan(scenarios=[str(mine)], engines=["embedded", "ns3"])
    assert [world.name for world in plan.worlds(str(mine))] == [name, f"{name}-ns3"]
    assert {scenario.name for scenario, *_ in plan.points()} == {name, f"{name}-ns3"}
