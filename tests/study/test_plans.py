"""Plans: presets, files, what they cut the work into, and what is refused."""

import pytest
from small import small_plan

from cosmo import InputError, load
from cosmo.study import load_plan, plan_checked, plan_names, reported
from cosmo.study.plan_files import plan_from
from cosmo.study.units import PlayUnit, TrainUnit
from cosmo.study.work import units_of


def test_presets():
    assert plan_names() == ["paper", "baselines", "benchmark", "paper-quick"]
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
            loads = [scenario.workload for scenario in unit.played_on]
            found += [(load.arrivals, load.rate, unit.label) for load in loads]
        else:
            assert isinstance(unit, PlayUnit)
            found += [(unit.arrivals, rate, unit.method) for rate in unit.rates]
    assert len(found) == len(set(found))
    assert set(found) == {(a, r, m) for _, a, r, m in plan.points()}
    names = [unit.name for unit in units_of(plan)]
    assert len(names) == len(set(names))


def test_a_field_of_training_that_came_later_renames_nothing_at_its_default():
    """What was finished before there was a choice is finished still."""
    plain, shifted = (
        units_of(small_plan(("cosmo",), training={"settings": settings}))[0]
        for settings in ([], ["sn.utility_shift=1.0"])
    )
    assert "utility_shift" not in plain._content()["training"]["sn"]
    assert shifted._content()["training"]["sn"]["utility_shift"] == 1.0
    assert plain.name != shifted.name
    plan = small_plan(("cosmo",))
    kept = plan_from(plan.model_dump(mode="json"), plan.resolved())
    assert kept.config("cosmo").sn.utility_shift == 0.0


def test_a_study_whose_training_has_settings_of_an_earlier_version_is_to_be_carried_out_again():
    data = {"train": [{"name": "cosmo-next", "method": "cosmo-next"}]}
    plan = small_plan(("cosmo-next",), **data)
    told = plan.resolved()
    settings = told["training"]["cosmo-next"]["en"]
    settings["books"] = settings.pop("own_traffic")
    line = r"resolved\.training\.cosmo-next: en\.own_traffic: .*; carry the study out again"
    with pytest.raises(InputError, match=line):
        plan_from(plan.model_dump(mode="json"), told)


def _engines(unit):
    """Where a unit's runs are played, and where they are trained."""
    [played] = {scenario.engine for scenario in unit.played_on}
    [trained] = {scenario.engine for scenario in unit.trained_on}
    return played, trained


def test_a_method_for_all_loads_is_trained_once_wherever_it_is_played():
    data = {
        "seeds": [0, 1],
        "train": [
            {"name": "away", "method": "cosmo-next", "scenario": "shared-sn",
             "settings": ["episodes=3"], "world": ["sn.slots=5"]},
            {"name": "cosmo-next", "method": "cosmo-next"},
        ],
        "compare": [
            {"methods": ["cosmo-next", "away"], "rates": [120.0, 320.0]},
            {"methods": ["cosmo-next", "away"], "scenarios": ["campus"], "rates": [150.0],
             "arrivals": ["poisson"]},
        ],
    }  # fmt: skip
    units = units_of(plan_checked({"name": "x", **data}))
    assert len(units) == 3  # cosmo-next where it is played, away once
    away, *own = sorted(units, key=lambda unit: unit.label)
    assert all(unit.everywhere for unit in units)
    [home] = away.trained_on
    assert (home.name, home.sn.slots, away.config.episodes) == ("shared-sn", 5, 3)
    assert {scenario.name for scenario in away.played_on} == {"paper", "campus"}
    assert len(away.played_on) == 2 * 2 + 1
    assert sorted(unit.trained_on[0].name for unit in own) == ["campus", "paper"]
    assert {unit.config.episodes for unit in own} == {54}  # the shipped preset


def test_a_sweep_is_an_axis_of_its_own():
    price = {"field": "utility.update_weight", "values": [0.0, 4.0]}
    interval = {"field": "method.interval_ms", "values": [5, 50]}
    plan = plan_checked(
        {
            "name": "x",
            "arrivals": ["poisson"],
            "rates": [220.0],
            "compare": [
                {"methods": ["self-tracking", "aov-gap"]},
                {"methods": ["aov-gap"], "sweep": price},
                {"methods": ["periodic"], "sweep": interval},
            ],
        }
    )
    points = [(scenario.name, rate, name) for scenario, _, rate, name in plan.points()]
    assert points == [
        ("paper", 220.0, "self-tracking"),
        ("paper", 220.0, "aov-gap"),
        ("paper utility.update_weight=0.0", 220.0, "aov-gap"),
        ("paper utility.update_weight=4.0", 220.0, "aov-gap"),
        ("paper", 220.0, "periodic:interval_ms=5"),
        ("paper", 220.0, "periodic:interval_ms=50"),
    ]
    weights = [scenario.utility.update_weight for scenario, *_ in plan.points()]
    assert weights == [4.0, 4.0, 0.0, 4.0, 4.0, 4.0]
    assert plan.axes() == [
        ("paper utility.update_weight=0.0", "aov-gap", "paper", "utility.update_weight", 0.0),
        ("paper utility.update_weight=4.0", "aov-gap", "paper", "utility.update_weight", 4.0),
        ("paper", "periodic:interval_ms=5", "periodic", "method.interval_ms", 5.0),
        ("paper", "periodic:interval_ms=50", "periodic", "method.interval_ms", 50.0),
    ]


@pytest.mark.parametrize(
    ("train", "line"),
    [
        ({"name": "a", "method": "random"}, "'random': cannot be trained"),
        ({"name": "a", "method": "cosmo", "scenario": "campus"}, "'a': scenario and world are for"),
        ({"name": "a", "method": "cosmo-next", "settings": ["en.batc=1"]}, "did you mean batch?"),
        ({"name": "", "method": "cosmo"}, "train.0.name = ''"),
    ],
)
def test_a_wrong_training_is_one_line(train, line):
    data = {"name": "x", "train": [train], "compare": [{"methods": ["a", "random"]}]}
    with pytest.raises(InputError) as caught:
        plan_checked(data)
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)


def test_every_scenario_on_every_engine():
    plan = small_plan(("all-local", "cosmo"), engines=["embedded", "ns3"])
    assert [scenario.name for scenario in plan.worlds("paper")] == ["paper", "paper-ns3"]
    assert {(s.name, s.engine) for s, *_ in plan.points()} == {
        ("paper", "embedded"),
        ("paper-ns3", "ns3"),
    }
    trained = [unit for unit in units_of(plan) if isinstance(unit, TrainUnit)]
    assert {_engines(unit) for unit in trained} == {("embedded", "embedded"), ("ns3", "ns3")}
    how = {"engine": "embedded", "settings": plan.training.settings}
    plan = small_plan(("cosmo",), engines=["ns3"], training=how)
    assert {_engines(unit) for unit in units_of(plan)} == {("ns3", "embedded")}
    with pytest.raises(
        InputError, match=r"engines.0 = 'omnet': must be 'embedded', 'ns3' or 'live'"
    ):
        small_plan(engines=["omnet"])


def test_in_real_time_every_episode_is_a_unit_of_its_own():
    plan = small_plan(("all-local",), engines=["embedded", "live"])
    whole, *single = units_of(plan)
    assert (whole.alone, whole.rates, whole.seeds, whole.episodes) == (False, (120, 320), (0, 3), 2)
    assert [(*unit.rates, *unit.seeds, unit.first_episode) for unit in single] == [
        (rate, seed, number) for rate in (120.0, 320.0) for seed in (0, 3) for number in (0, 1)
    ]
    assert all(unit.alone and unit.episodes == 1 for unit in single)
    assert len({unit.name for unit in single}) == 8


def test_a_unit_is_named_by_its_content():
    one, other = units_of(small_plan()), units_of(small_plan(episodes=3))
    assert [unit.name for unit in one] == [unit.name for unit in units_of(small_plan())]
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
            "arrivals.0 = 'often': must be 'deterministic', 'poisson', 'bursty' or 'steps'",
        ),
        (
            'name = "x"\narrivals = ["poisson "]\n[[compare]]\nmethods = ["random"]',
            "arrivals.0 = 'poisson ': must be 'deterministic', 'poisson', 'bursty' or 'steps'",
        ),
        (
            'name = "x"\n[[compare]]\nmethods = ["random"]\narrivals = ["Poisson"]',
            "compare.0.arrivals.0 = 'Poisson': must be 'deterministic', 'poisson', 'bursty' or",
        ),
        (
            'name = "x"\nrates = [inf]\n[[compare]]\nmethods = ["random"]',
            "rates.0 = inf: must be less than or equal to 1000000, in tasks/s",
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


def test_fields_that_scenarios_got_later_do_not_rename_what_was_stored_before():
    """Units are named by a digest of their scenario, which has no such field while it is off."""
    unit = PlayUnit(load("paper"), "poisson", (120.0,), "never", (0,), 1)
    assert unit.name == "never-paper-poisson-98ad793306"


def test_progress_of_a_unit_is_the_share_of_its_rates():
    shares = []
    scenario = load("paper", ["episode.window_ms=200", "episode.warmup_ms=0"])
    unit = PlayUnit(scenario, "poisson", (60.0, 70.0, 80.0, 90.0), "all-local", (0,), 1)
    unit.played(lambda name: name, shares.append)
    assert shares == [0.25, 0.5, 0.75, 1.0]
