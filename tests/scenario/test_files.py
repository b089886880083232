"""Scenarios from presets and files; mistakes are named in one line."""

import tomllib

import pytest
from pydantic import ValidationError

from cosmo import InputError, load, preset_names
from cosmo.scenario import changed, dump


def test_presets():
    others = ["block", "campus", "city", "district", "fading-backhaul", "failing", "shared-sn"]
    others += [
        "skewed",
        "tenants",
        "tenants-dense",
        "throttled",
        "uncertain",
        "undeclared",
        "volatile",
        "wild",
    ]
    assert preset_names() == ["paper", *others]
    paper = load("paper")
    assert paper.capacity_cycles_per_ms == 144000.0
    shared = load("shared-sn")
    assert shared.background.rates == (20.0, 140.0)
    assert shared.workload.rates_of_interest == (80.0, 120.0, 160.0, 200.0)
    assert shared.en == paper.en
    campus = load("campus")
    assert (campus.en.count, campus.sn.count) == (3, 2)
    fading = load("fading-backhaul")
    assert fading.fading.factors != (1.0, 1.0)


def test_a_scenario_cannot_be_changed():
    with pytest.raises(ValidationError):
        load("paper").workload.rate = 3.0


@pytest.mark.parametrize("name", preset_names())
def test_a_dumped_scenario_is_a_complete_file(name, tmp_path):
    path = tmp_path / "whole.toml"
    path.write_text(dump(load(name)))
    assert load(path) == load(name)
    assert "extends" not in tomllib.loads(path.read_text())


def test_a_file_extends_a_preset_and_overrides_single_fields(tmp_path):
    (tmp_path / "base.toml").write_text('extends = "shared-sn"\n[workload]\nrate = 90\n')
    (tmp_path / "mine.toml").write_text(
        'extends = "base.toml"\nname = "mine"\n[sn]\nslots = 8\n[workload.deadline]\nfactor = 2\n'
    )
    scenario = load(tmp_path / "mine.toml", ["sn.queue_capacity=12"])
    assert scenario.name == "mine"
    assert scenario.workload.rate == 90.0
    assert scenario.workload.deadline.factor == 2.0
    assert scenario.workload.deadline.clip_ms == (60.0, 220.0)
    assert (scenario.sn.slots, scenario.sn.queue_capacity) == (8, 12)
    assert scenario.background.rates == (20.0, 140.0)


def test_settings_take_bare_words_lists_and_tables():
    scenario = load(
        "campus",
        ["workload.arrivals=bursty", "sn.slots=[2, 6]", "backhaul.up_mbps=[[9,8],[7,6],[5,4]]"],
    )
    assert scenario.workload.arrivals == "bursty"
    assert scenario.sn.slots == (2, 6)
    assert scenario.backhaul.up_mbps == ((9.0, 8.0), (7.0, 6.0), (5.0, 4.0))


def test_code_sets_values_and_nothing_in_them_is_read():
    scenario = changed(load("paper"), {"name": "2024", "workload.rate": 90})
    assert (scenario.name, scenario.workload.rate) == ("2024", 90.0)
    assert scenario.workload.deadline == load("paper").workload.deadline
    with pytest.raises(InputError, match=r"workload\.rate = 'fast': must be a valid number"):
        changed(load("paper"), {"workload.rate": "fast"})


@pytest.mark.parametrize(
    ("setting", "line"),
    [
        ("workload.rate=-3", "workload.rate = -3: must be greater than 0, in tasks/s"),
        ("workload.rate=fast", "workload.rate = 'fast': must be a valid number, in tasks/s"),
        ("workload.rate=true", "workload.rate = True: must be a valid number, in tasks/s"),
        ("episode.window_ms=nan", "episode.window_ms = nan: must be a finite number, in ms"),
        (
            "backhaul.up_mbps='96 Mbps'",
            "backhaul.up_mbps = '96 Mbps': must be a valid number, in Mbps",
        ),
        (
            "workload.arrivals=pois",
            "workload.arrivals = 'pois': must be 'deterministic', 'poisson', 'bursty', 'steps' or"
            " 'trace'",
        ),
        ("workload.rat=3", "workload.rat: unknown field, did you mean rate?"),
        ("episode.window_s=10", "episode.window_s: unknown field, did you mean window_ms?"),
        ("sn.slots=2.5", "sn.slots = 2.5: must be a valid integer"),
        ("sn.slots=[3,4]", "sn.slots = [3, 4]: must be one number or a list of 1"),
        ("sn.slots=[-4]", "sn.slots.0 = -4: must be greater than or equal to 1"),
        (
            "backhaul.up_mbps=[[1,2]]",
            "backhaul.up_mbps = [[1.0, 2.0]]: must be one number or a table of "
            "1 rows (ENs) and 1 columns (SNs)",
        ),
        ("workload.cycles=[5,3]", "workload.cycles = [5.0, 3.0]: must be [lowest, highest]"),
        ("workload.cycles=7", "workload.cycles = 7: must be a list, in cycles"),
        ("en=3", "en = 3: must be a group of fields"),
        (
            "episode.warmup_ms=10000",
            "episode.warmup_ms = 10000: must be less than window_ms = 10000",
        ),
        (
            "mobility.headings_deg=[1]",
            "mobility.headings_deg = [1.0]: must have 4 entries, as distances_m has",
        ),
        (
            "workload.steps.at=[0.7, 0.4]",
            "workload.steps.at = [0.7, 0.4]: must be 2 shares of the window, in order of time",
        ),
        (
            "workload.steps.weights=[0,0,0]",
            "workload.steps.weights = [0.0, 0.0, 0.0]: must not all be 0",
        ),
        ("rate", "setting 'rate': must look like workload.rate=220"),
        ("workload..rate=1", "setting 'workload..rate=1': must look like workload.rate=220"),
        ("workload.rate.x=1", "workload.rate.x: rate is a value, not a group of fields"),
    ],
)
def test_a_mistake_is_one_line_with_field_value_and_what_is_allowed(setting, line):
    with pytest.raises(InputError) as caught:
        load("paper", [setting])
    assert str(caught.value) == line


def test_several_mistakes_are_counted():
    with pytest.raises(InputError, match=r"workload\.rate = -1.*\(and 1 more\)"):
        load("paper", ["workload.rate=-1", "sn.count=0"])


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("x = [", "not valid TOML"),
        ("name = 'alone'", 'description: missing (start from a preset with extends = "paper")'),
        ("extends = 3", "extends = 3: must be a preset's name or a path"),
        ("extends = 'none.toml'", "cannot be read (No such file or directory)"),
        ("extends = 'bad.toml'", "a file may not extend itself"),
    ],
)
def test_a_bad_file_is_one_line(text, line, tmp_path):
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        load(path)
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_unknown_preset_lists_the_known_ones():
    with pytest.raises(InputError, match=r"no such preset or file \(presets: paper, block"):
        load("papre")
