"""What `cosmo-next` computes from what an EN knows, with numbers that can be checked on paper."""

from dataclasses import fields
from types import SimpleNamespace

import numpy as np
import pytest

from cosmo import load
from cosmo.node import STORAGE, WORK
from cosmo.policy.next import values
from cosmo.policy.next.arrival_rates import ArrivalRates
from cosmo.policy.next.settings import NextSettings, SiteSettings, Spans, settings_at
from cosmo.policy.next.status_encoding import StatusEncoding
from observations import site, tasks

M = SiteSettings(
    failure=2.0, margin=0.1, delay_cost_per_ms=0.01, least_chance=0.2, slots_ms=10.0,
    backlog_ms=4.0,
    wait_ms=20.0, slack_ms=(5.0, 50.0, 100.0), far_ms=40.0, evidence_ms=8.0, oldest_ms=24.0,
)  # fmt: skip


def test_a_full_en_is_never_in_time():
    shapes = values.value_shapes(3, 2) | values.chance_shapes(2)
    p = {name: np.zeros((1, *shape), np.float32) for name, shape in shapes.items()}
    rows = np.ones((1, 3))
    before = {
        "local": np.zeros((1, 3, 2)), "local_taken": rows, "local_share": rows,
        "local_room": np.array([[0.0, 1.0, 1.0]]), "remote": np.zeros((1, 3, 1, 2)),
        "count": rows[..., None], "backlog": rows[..., None], "evidence": np.zeros((1, 3, 1, 4)),
        "load": np.zeros((1, 3, 5)),
    }  # fmt: skip
    task = {
        "local_service": np.array([[5.0, 5.0, 5.001]]), "slack": 5.0 * rows,
        "service": rows[..., None], "sending": rows[..., None], "transfer": rows[..., None],
        "back": rows[..., None],
    }  # fmt: skip
    advantage, _, _ = values.weighed(p, before, task, np.array([10.0]), M)
    # No room; room and just in time; room, but a microsecond late.
    assert advantage[0, :, 0].tolist() == [values.NEVER, 1.0, values.NEVER]


def test_a_status_of_one_number_tells_of_work_and_about_how_many_tasks_fit_in():
    """108000 cycles/ms on four slots, tasks of 650000 cycles, half done on average, of which ten
    fit into the SN: 30 ms of work are 10 halves, and that may be 4 running and 3 waiting tasks.
    """
    here = site(load("paper", ["sn.storage_bytes=500000", "sn.count=2", "sn.slots=4"]))
    encoding = StatusEncoding(here, SimpleNamespace(carried=(WORK, STORAGE), single=True))
    longest_ms = here.tasks.deadline_ms[1]
    told = np.array([0.0, 10.0, 30.0, longest_ms - 1.0, longest_ms + 30.0])[:, None]
    work, room = encoding.read(np.ones(5, np.int64), told)
    ms = np.array([0.0, 10.0, 30.0, longest_ms - 1.0, 30.0])
    np.testing.assert_allclose(work, ms * 108_000.0)
    # Nothing; 4 tasks; 4 and 3; more than fit in, but it said that one more does; none does.
    np.testing.assert_allclose(room, [500_000.0, 300_000.0, 150_000.0, 50_000.0, 0.0])


def test_what_an_en_sees_of_itself():
    free = np.array([[20.0, 90.0]])  # cut off at 40 ms
    found = values.local_inputs(free, np.array([0.25]), M, np)
    assert found.tolist() == [[2.0, 4.0, 0.25, 3.0]]


def test_what_an_en_sees_of_an_sn():
    free = np.array([[[30.0, 0.0, 90.0, 10.0, 20.0]]])  # four of five, in order, and their mean
    evidence = np.array([[[7.0, 8.0, 9.0, 6.0]]])
    found = values.remote_inputs(
        free, np.array([[3.0]]), np.array([[2.0]]), evidence, np.array([12.0]), M, np
    )
    expected = [0.0, 1.0, 3.0, 4.0, 2.0, 0.25, 0.5, 7.0, 8.0, 9.0, 6.0]
    np.testing.assert_allclose(found, [[expected]])


def test_what_evidence_says():
    evidence = np.array([[[12.0, 0.5, 6.0, 8.0], [99.0, -9.0, 6.0, 99.0]]])
    found = values.evidence_inputs(evidence, np.array([12.0, 12.0]), M, np)
    one = [1.5, 2.0, 0.5 * np.exp(-1.0), 1.0]
    other = [3.0, -3.0, 0.5 * np.exp(-99.0 / 8.0), 3.0]
    np.testing.assert_allclose(found, [[one, other]])


def test_what_a_chance_depends_on():
    before = {
        "remote": np.array([[[30.0, 50.0]]]), "backlog": np.array([[6.0]]),
        "count": np.array([[3.0]]), "evidence": np.array([[[0.0, 0.0, 4.0, 0.0]]]),
    }  # fmt: skip
    task = {
        "slack": np.array([60.0]), "transfer": np.array([[4.0]]), "service": np.array([[7.0]]),
        "back": np.array([[3.0]]),
    }  # fmt: skip
    way, nines = values.path_times(before, task), np.full((1, 1, 4), 9.0)
    assert [each.tolist() for each in way] == [[[10.0]], [[20.0]]]
    found = values.chance_inputs(before, task, way, nines, np.array([10.0]), M, np)
    # Upload 10, wait 20: 60 − 10 − 20 − 7 − 3 = 20 ms are left; room for 10 − 3 − 0.5 = 6.5 more.
    slack = [3.0, 20.0 / 50.0, 20.0 / 100.0]
    rest = [1.0, 0.65, 1.0, (30.0 + 40.0) / 20.0, (6.5 - 4.0) / 2.0]
    np.testing.assert_allclose(found, [[[*slack, *rest, 9.0, 9.0, 9.0, 9.0]]], rtol=1e-6)


def test_the_load_by_hand():
    spans = Spans(
        slots=1, backlog=1, wait=1, slack=(1, 1, 1), far=1, exact=0, surprise=1, evidence=1,
        oldest=1, horizons=(0.1, 0.5, 2.0), variation=1.0, look=1, rest=1,
    )  # fmt: skip
    scenario = load("paper")
    made = site(scenario)
    unit = scenario.workload.deadline.clip_ms[1]
    load_of = ArrivalRates(made, spans)
    born = [30.0, 50.0]
    for time in born:
        seen = load_of.see(tasks(scenario, generated_ms=time, time_ms=time))
    # Capacity: two slots of 18 000 and four of 27 000 cycles/ms, tasks of 650 000 on average.
    capacity = (2 * 18_000 + 4 * 27_000) / 650_000
    for place, share in enumerate((0.1, 0.5, 2.0)):
        span = share * unit
        seen_share = (1.0 - np.exp(-(50.0 + 1.0) / span)) * span * capacity
        expected = (1.0 + np.exp(-20.0 / span)) / seen_share
        assert seen[0, place] == pytest.approx(min(expected, 4.0))
    fade = np.exp(-20.0 / unit)
    count, total, squares = 1 + fade, 20 + 30 * fade, 400 + 900 * fade
    assert seen[0, 3] == pytest.approx(max(0.5 * (squares * count / total**2 - 1.0), 0.0))
    assert seen[0, 4] == pytest.approx(np.exp(-51.0 / unit))


def test_spans_are_shares_of_the_longest_deadline():
    spans = Spans(
        slots=0.5, backlog=0.25, wait=2.0, slack=(0.1, 1.0, 3.0), far=4.0, exact=0, surprise=1,
        evidence=0.75, oldest=1.5, horizons=(1, 1, 1), variation=1, look=1, rest=1,
    )  # fmt: skip
    given = dict.fromkeys((field.name for field in fields(NextSettings)), 0.0)
    given |= {"failure": 2.0, "margin": 0.1, "delay_cost": 5.0, "least_chance": 0.3, "spans": spans}
    here = site(load("paper", ["workload.deadline.clip_ms=[60, 200]"]))
    assert settings_at(NextSettings(**given), here) == SiteSettings(
        failure=2.0, margin=0.1, delay_cost_per_ms=0.025, least_chance=0.3, slots_ms=100.0,
        backlog_ms=50.0, wait_ms=400.0, slack_ms=(20.0, 200.0, 600.0), far_ms=800.0,
        evidence_ms=150.0, oldest_ms=300.0,
    )  # fmt: skip
