"""What nodes are made of: codes, columns and ages."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from cosmo import InputError, Method, UpdateObservation, load
from cosmo.node import (
    DONE,
    GIVEN_UP,
    IDLE,
    LATENCY,
    NOTHING,
    RAW,
    REFUSED,
    REQUESTS,
    STATE_FIELDS,
    STORAGE,
    WAIT,
    WORK,
    Site,
)
from cosmo.node.guard import checked_actions, checked_update
from cosmo.node.messages import Task
from observations import site, tasks


def test_codes_of_fates_and_columns_of_states_are_what_logs_and_outsiders_know():
    assert (DONE, REFUSED, GIVEN_UP) == (1, 2, 3)
    assert (IDLE, WAIT, WORK, STORAGE, REQUESTS, LATENCY) == (0, 1, 2, 3, 4, 5)
    assert (NOTHING, RAW, STATE_FIELDS) == (0, 4, 6)


def test_what_is_left_of_a_deadline():
    assert Task(1, "", 1.0, deadline_ms=60.0, elapsed_ms=2.5, input=b"").budget_ms == 57.5


def test_a_method_is_told_in_the_first_line_of_its_docstring():
    class Told(Method):
        """Says so.

        And more.
        """

    class Silent(Method):
        __doc__ = None

    assert Told.summary() == "Says so."
    assert Silent.summary() == ""


def test_an_age_is_since_the_start_without_a_status():
    campus = load("campus")
    seen = tasks(campus, time_ms=50.0, sn=[0, -1], status_ms=[np.nan, np.nan])
    assert seen.age_ms.tolist() == [[50.0, np.inf]]
    assert tasks(campus, time_ms=50.0, status_ms=[20.0, np.nan]).age_ms.tolist() == [[30.0, 50.0]]
    nothing = np.zeros(1)
    nodes = UpdateObservation(
        world=np.zeros(1, np.int64), sn=np.zeros(1, np.int64), time_ms=np.array([50.0]),
        sn_state=np.zeros((1, 6)), en=np.array([[0, 1, -1]]), acknowledged=np.zeros((1, 3, 4)),
        acknowledged_ms=np.array([[45.0, np.nan, np.nan]]), recent_delay_ms=nothing,
        recent_success=nothing, recent_failure=nothing, down_link_mbps=np.ones((1, 3, 3)),
    )  # fmt: skip
    assert nodes.age_ms.tolist() == [[5.0, 50.0, 0.0]]
    assert nodes.heard.tolist() == [[True, False, False]]


def test_ens_are_alike_if_all_reach_as_many_sns():
    assert site(load("campus")).links.all_alike
    links = site(load("campus", ["backhaul.reach=[[0, 1], [1], [0]]"])).links
    assert not links.all_alike
    # Of links that are not there, numbers by which one can divide.
    away = ~links.exist
    assert set(links.up_mbps[away]) == set(links.down_mbps[away]) == set(links.hops[away]) == {1}
    assert set(links.hop_delay_ms[away]) == {0.0}


def test_a_real_node_is_world_0_of_run_0():
    made = site(load("paper"))
    alone = Site(*(getattr(made, name) for name in tuple(made.__dataclass_fields__)[:-1]))
    assert (alone.streams, alone.worlds, alone.runs) == (((0, 0),), 1, (0,))
    assert replace(made, streams=((3, 0), (4, 1))).runs == (3, 4)


def test_books_have_room_for_one_task_at_least():
    for storage, most in ((480_000, 9), (50_000, 1), (10_000, 1)):
        made = site(load("paper", [f"sn.storage_bytes={storage}"]))
        assert made.most_tasks(made.sn).tolist() == [most]


def test_one_wrong_answer_among_right_ones_is_refused():
    seen = tasks(load("paper"), count=3)
    assert checked_actions(None, [0, 2, 1], seen).tolist() == [0, 2, 1]
    for wrong in ([0, 3, 1], [0, -1, 1]):
        with pytest.raises(InputError, match=f"action = {wrong[1]}: must be from 0 to 2"):
            checked_actions(None, wrong, seen)

    class Nodes(SimpleNamespace):
        def __len__(self):
            return 2

    nodes = Nodes(ens=1, reached=np.array([[True], [True]]))
    told, wait = checked_update(None, ([True, False], [1.0, 2.0]), nodes)
    assert (told.tolist(), wait.tolist()) == ([[True], [False]], [1.0, 2.0])
    for wrong in ([5.0, 0.0], [np.nan, 5.0]):
        with pytest.raises(InputError, match="intervals must be greater than 0 ms"):
            checked_update(None, ([True, True], wrong), nodes)
