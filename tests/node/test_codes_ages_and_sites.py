"""What nodes are made of: codes, columns and ages."""

from dataclasses import replace

import numpy as np

from cosmo import Method, UpdateObservation, load
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
from cosmo.seeds import Draws, run_digest
from observations import site, tasks


def test_codes_of_fates_and_columns_of_states_are_what_logs_and_outsiders_know():
    assert (DONE, REFUSED, GIVEN_UP) == (1, 2, 3)
    assert (IDLE, WAIT, WORK, STORAGE, REQUESTS, LATENCY) == (0, 1, 2, 3, 4, 5)
    assert (NOTHING, RAW, STATE_FIELDS) == (0, 4, 6)


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
    assert (alone.draws, alone.worlds, alone.runs) == ((Draws.of(0, 0),), 1, (run_digest(0),))
    two = replace(made, draws=(Draws.of(3, 0), Draws.of(4, 1)))
    assert two.runs == (run_digest(3), run_digest(4))
