"""Documents that nobody in their right mind would write: one line, or the same text again."""

import itertools
import time
import tomllib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small import small_plan

from cosmo import InputError, load
from cosmo.control.arguments import as_settings
from cosmo.documents import dump
from cosmo.live.config import load_config
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


@pytest.mark.parametrize("loader", [load, load_plan, load_config])
@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("".join(f"k{k}=1\n" for k in range(10**6)), "has 1000000 keys and tables"),
        ("[[t]]\n" * 10**6, "has 2000000 keys and tables"),
        ("".join(f"[t{k}]\n" for k in range(200_000)), "has 200000 keys and tables"),
        ("x = [" + "{}," * 10**5 + "]\n", "keys and tables, must be at most 100000"),
        (".".join(["a"] * 10**5) + " = 1\n", "nested too deeply"),
        ("[" + ".".join(["a"] * 10**5) + "]\n", "nested too deeply"),
        ("x = {" + " . ".join(['"a b"'] * 10**5) + " = 1}\n", "nested too deeply"),
    ],
    ids=["keys", "tables in a list", "tables", "inline tables", "key", "table", "inline key"],
)
def test_a_file_that_would_take_minutes_to_read_is_refused_at_once(tmp_path, loader, text, line):
    path = tmp_path / "large.toml"
    path.write_text(text)
    before = time.process_time()
    with pytest.raises(InputError) as raised:
        loader(path)
    assert line in _line(raised)
    assert time.process_time() - before < 5.0


def test_of_a_million_wrong_numbers_the_first_is_named(tmp_path):
    path = tmp_path / "large.toml"
    path.write_text('extends = "paper"\n[workload]\nrates_of_interest = [1, ' + "-1," * 10**6 + "]")
    with pytest.raises(InputError, match=r"^workload\.rates_of_interest\.1 = -1: must be greater"):
        load(path)
    path.write_text(path.read_text().replace("[1, ", "[" + "1," * 2000))
    with pytest.raises(InputError, match=r"^scenario: has 1000000 values that are not allowed"):
        load(path)


def test_long_lists_and_texts_with_dots_are_read(tmp_path):
    path = tmp_path / "long.toml"
    dots = "# " + "." * 300 + "\n"
    numbers = ",\n".join(["1.5"] * 200_000)
    path.write_text(f'extends = "paper"\n{dots * 100}[workload]\nrates_of_interest = [{numbers}]')
    assert len(load(path).workload.rates_of_interest) == 200_000


def test_a_byte_order_mark_and_other_line_ends_change_nothing(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_bytes(b'\xef\xbb\xbfextends = "paper"\r\nname = "mine"\r\n')
    assert load(path) == load("paper", {"name": "mine"})


@pytest.mark.parametrize("source", [None, 5, b"paper", ["paper"], {}])
def test_what_is_no_name_of_a_document_is_one_line(source):
    for attempt in (load, load_plan, load_config):
        with pytest.raises(InputError, match="must be a preset's name or the path of a file"):
            attempt(source)


@pytest.mark.parametrize(
    "settings",
    [
        5, "sn.slots=6", [5], [b"sn.slots=6"], {5: 6}, {("sn", "slots"): 6}, {b"sn.slots": 6},
        {"sn.slots": object()}, {"sn.slots": 10**5000}, {"sn.slots": np.array([[1]])},
        {f"x{number}": 1 for number in range(100_000)}, itertools.repeat("sn.slots=6"),
    ],
)  # fmt: skip
def test_odd_settings_in_python_are_one_line(settings):
    with pytest.raises(InputError) as raised:
        load("paper", settings)
    _line(raised)


def test_settings_have_numbers_of_numpy_and_paths(tmp_path):
    slots = load("paper", {"sn.slots": np.int64(3), "workload.rate": np.float32(40)})
    assert (slots.sn.slots, slots.workload.rate) == (3, 40.0)
    told = as_settings({"episodes": np.int64(3), "x": tmp_path})
    assert told == ["episodes=3", f'x="{tmp_path}"']
    with pytest.raises(InputError, match=r"^settings = "):
        as_settings({"x": object()})


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
