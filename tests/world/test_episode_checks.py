"""What compiled code is kept from: episodes that are right but for one number."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from cosmo import InputError, load
from cosmo.workload import episode
from cosmo.world.check import check_episode, check_size
from cosmo.world.records import MOST_ACTIONS

SETTINGS = ["episode.window_ms=60", "episode.warmup_ms=0", "background.rates=[300, 300]"]
CAMPUS = load("campus", SETTINGS)
RIGHT = episode(CAMPUS, 0, 0)


def _with(group, column, place, value):
    """The right episode but for one number of a column, or without it if `value` is None."""
    table = getattr(RIGHT, group)
    told = np.array(getattr(table, column))
    if value is None:
        told = np.delete(told, place)
    else:
        told[place] = value
    return replace(RIGHT, **{group: replace(table, **{column: told})})


def test_there_are_enough_rows_to_be_wrong_in():
    check_episode(CAMPUS, RIGHT)
    assert min(len(RIGHT.tasks), len(RIGHT.background)) > 3


@pytest.mark.parametrize(
    ("group", "column", "count"), [("tasks", "en", 3), ("tasks", "ue", 4), ("background", "sn", 2)]
)
def test_numbers_of_nodes(group, column, count):
    for place in (0, 2, -1):
        for right in (0, count - 1):
            check_episode(CAMPUS, _with(group, column, place, right))
        for wrong in (-1, count):
            line = rf"^{group}\.{column} = {wrong}: must be from 0 to {count - 1}$"
            with pytest.raises(InputError, match=line):
                check_episode(CAMPUS, _with(group, column, place, wrong))


@pytest.mark.parametrize(
    ("group", "column"),
    [
        *(("tasks", name) for name in ("input_bytes", "cycles", "deadline_ms")),
        *(("background", name) for name in ("input_bytes", "cycles")),
    ],
)
def test_amounts_and_lengths(group, column):
    check_episode(CAMPUS, _with(group, column, 1, 1e-9))
    for wrong in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(InputError, match=f"{group}.{column}: must be finite and greater"):
            check_episode(CAMPUS, _with(group, column, 1, wrong))
    with pytest.raises(InputError, match=f"{group}: all columns must have the same length"):
        check_episode(CAMPUS, _with(group, column, 1, None))


@pytest.mark.parametrize("group", ["tasks", "background"])
def test_times(group):
    times = getattr(RIGHT, group).time_ms
    check_episode(CAMPUS, _with(group, "time_ms", 0, 0.0))
    check_episode(CAMPUS, _with(group, "time_ms", 1, times[0]))  # at once is in order
    for place, wrong in ((0, -1e-9), (-1, np.inf), (-1, np.nan)):
        with pytest.raises(InputError, match=rf"{group}\.time_ms: must be finite and not negative"):
            check_episode(CAMPUS, _with(group, "time_ms", place, wrong))
    for place, wrong in ((1, times[0] - 1e-9), (1, np.nan), (-1, times[0])):
        with pytest.raises(InputError, match=rf"{group}\.time_ms: must be in order of time"):
            check_episode(CAMPUS, _with(group, "time_ms", place, wrong))


def test_rates_of_links():
    fades = load("campus", [*SETTINGS, "fading.factors=[0.5, 1.0]"])
    faded = episode(fades, 0, 0)
    check_episode(fades, faded)
    one_step = replace(faded, rate_factor=faded.rate_factor[:, :, :1])
    check_episode(fades, one_step)
    for scenario, wrong in (
        (fades, RIGHT),
        (CAMPUS, faded),
        (CAMPUS, one_step),
        (fades, replace(faded, rate_factor=faded.rate_factor[:1])),
        (fades, replace(faded, rate_factor=faded.rate_factor[:, 1:])),
    ):
        with pytest.raises(InputError, match="rate_factor: must be for the links and the fading"):
            check_episode(scenario, wrong)


def test_an_en_has_as_many_sns_as_an_action_has_numbers():
    check_size(SimpleNamespace(links=SimpleNamespace(most_sns=MOST_ACTIONS - 1)))
    with pytest.raises(InputError, match=r"an EN reaches \d+ SNs, must be at most \d+$"):
        check_size(SimpleNamespace(links=SimpleNamespace(most_sns=MOST_ACTIONS)))
