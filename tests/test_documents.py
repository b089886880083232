"""Documents that nobody in their right mind would write: one line, or the same text again."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small import small_plan

from cosmo import InputError, load
from cosmo.documents import dump
from cosmo.scenario import changed
from cosmo.study import load_plan

_DEEP = 3000


def _line(raised):
    text = str(raised.value)
    assert text
    assert len(text) < 300
    return text


@pytest.mark.parametrize(
    ("setting", "line"),
    [
        ("max-delay=3", "max-delay: unknown field"),
        ("sn.slot-s=3", "sn.slot-s: unknown field, did you mean slots?"),
        ("max-delay.x=3", "max-delay: unknown field"),
        ("sn.=3", "must look like"),
        ("=3", "must look like"),
        ("workload.rate=" + "9" * 5000, "workload.rate = '999"),
        ("workload.rate=0x" + "f" * 5000, "workload.rate = a very long int: must be"),
        ("sn.slots=" + "9" * 400, "sn.slots = 999"),
        ("workload.rate=" + "[" * _DEEP + "]" * _DEEP, "nested too deeply"),
        ("workload.rate=" + "{a=" * _DEEP + "1" + "}" * _DEEP, "nested too deeply"),
        ("workload.rate.x=3", "workload.rate.x: rate is a value"),
    ],
)
def test_odd_settings_are_one_line(setting, line):
    with pytest.raises(InputError) as raised:
        load("paper", [setting])
    assert line in _line(raised)


@pytest.mark.parametrize(
    "text",
    [
        'extends = "paper"\nname = ' + "9" * 5000,
        'extends = "paper"\n[workload]\nrate = 0x' + "f" * 5000,
        'extends = "paper"\nx = ' + "[" * _DEEP + "]" * _DEEP,
        'extends = "paper"\n[' + ".".join("a" * 1 for _ in range(_DEEP)) + "]\nx = 1",
        'extends = "paper"\n[' + "sn." * _DEEP + "x]\nx = 1",
        'extends = "a\\u0000b"',
        f'extends = "{"x" * 5000}"',
        f'extends = "{"x" * 5000}.toml"',
    ],
)
def test_odd_files_are_one_line(tmp_path, text):
    path = tmp_path / "odd.toml"
    path.write_text(text)
    with pytest.raises(InputError) as raised:
        load(path)
    _line(raised)


@pytest.mark.parametrize("name", ["x" * 5000, "a\0b", "x" * 5000 + ".toml", "a\0b.toml", ""])
def test_names_that_no_file_can_have_are_one_line(tmp_path, name):
    plan = tmp_path / "plan.toml"
    told = "".join(f"\\u{ord(sign):04x}" for sign in name)
    plan.write_text(f'name = "x"\nscenarios = ["{told}"]\n[[compare]]\nmethods = ["random"]')
    for attempt in (lambda: load(name), lambda: load_plan(name), lambda: load_plan(plan)):
        with pytest.raises(InputError):
            attempt()


@given(st.text(), st.text())
def test_a_plan_is_read_back_as_it_was(name, description):
    plan = small_plan(name=name, description=description)
    told = tomllib.loads(dump(plan))
    assert (told["name"], told["description"]) == (name, description)


@given(st.text(min_size=1))
def test_a_scenario_is_read_back_as_it_was(name):
    scenario = changed(load(), {"name": name})
    assert scenario.name == name
    assert tomllib.loads(dump(scenario))["name"] == name


def test_a_short_list_of_numbers_is_one_line_and_a_long_one_has_a_line_for_each():
    rates = [float(rate) for rate in range(100, 130)]
    text = dump(changed(load(), {"workload.rates_of_interest": rates}))
    assert "\ninput_bytes = [20000.0, 50000.0]\n" in text
    assert "\n    100.0,\n    101.0,\n" in text
    assert tomllib.loads(text)["workload"]["rates_of_interest"] == rates
