"""Formulas of policies with numbers that can be checked on paper."""

import sys
from dataclasses import fields
from types import ModuleType, SimpleNamespace
from typing import cast

import numpy as np
import pytest

from cosmo import InputError, load
from cosmo.node import DONE, Feedback
from cosmo.policy import outside
from cosmo.policy.chance import DrawPerTask
from cosmo.policy.dispatchers import prequal
from cosmo.policy.dispatchers.admission import AdmissionDispatcher
from cosmo.policy.dispatchers.priced import PricedBooksDispatcher
from cosmo.policy.next import values
from cosmo.policy.next.books import Books
from cosmo.policy.next.load import Load
from cosmo.policy.next.rules import Measures, NextRules, Spans, measures_of
from cosmo.policy.next.told import Told
from cosmo.policy.updaters.aoci_online import AociThreshold
from cosmo.policy.updaters.aoi_threshold import ROUNDING_MS, AoiThresholdUpdater, threshold_ms
from cosmo.seeds import Purpose
from observations import site, tasks

M = Measures(
    failure=2.0, margin=0.1, haste_per_ms=0.01, least_chance=0.2, slots_ms=10.0, backlog_ms=4.0,
    wait_ms=20.0, slack_ms=(5.0, 50.0, 100.0), far_ms=40.0, evidence_ms=8.0, oldest_ms=24.0,
)  # fmt: skip


def test_the_aoci_threshold_is_never_below_zero():
    learner = AociThreshold(2, cost=8.0, beta=4.0, largest_beta=100.0)
    rows = np.array([0, 1])
    learner.delivered(rows, np.array([10.0, 1.0]), np.array([True, True]))
    learner.delivered(rows, np.array([10.0, 1.0]), np.array([False, False]))
    # p = 1/2, so one update fails on average: 4 − 10·1 is below 0, 4 − 1·1 is not.
    assert learner.threshold(rows).tolist() == [0.0, 3.0]


def test_a_step_of_the_aoci_threshold():
    learner = AociThreshold(1, cost=8.0, beta=4.0, largest_beta=100.0)
    row = np.array([0])
    learner.delivered(row, np.array([5.0]), np.array([True]))
    learner.cycle(row, np.array([6.0]), np.array([3.0]))
    # β + (X²/2 + cost·N − β·X) / (2·E[Y]) = 4 + (18 + 24 − 24) / 10
    assert learner.threshold(row).tolist() == [5.8]


def test_slots_that_an_sn_has_not_are_no_work():
    scenario = load("campus", ["sn.slots=[1,4]", "sn.cycles_per_ms=[1000,2000]"])
    dispatcher = PricedBooksDispatcher(site(scenario), 1e12, 1e-9)
    dispatcher.slot_free[0, 0, 0, 0] = 1003.0 + 6.0
    dispatcher.slot_free[0, 0, 1, :2] = 1003.0 + 2.0, 1003.0 - 5.0
    seen = tasks(load("campus"), en_state=[2, 0, 36_000.0, 1, 0, 0])
    total = site(scenario).en.full_rate[0] + 1000 + 4 * 2000
    # 36 000 cycles here, 6 ms of 1000 cycles and 2 ms of 2000 there.
    assert dispatcher.outstanding_ms(seen).tolist() == [(36_000 + 6_000 + 4_000) / total]


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
    way, nines = values.way_there(before, task), np.full((1, 1, 4), 9.0)
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
    load_of = Load(made, spans)
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


@pytest.mark.parametrize(
    ("rate", "arrivals", "expected"), [(120, "deterministic", 161.7), (320, "poisson", 70.0)]
)
def test_the_age_threshold_is_the_model_s(rate, arrivals, expected):
    here = site(load("paper", [f"workload.rate={rate}", f"workload.arrivals={arrivals}"]))
    assert threshold_ms(here, 5.1) == pytest.approx(expected, abs=0.05)


def test_an_update_is_due_when_its_age_is_but_for_rounding():
    updater = AoiThresholdUpdater(site(load("paper")), 5.1)
    updater.threshold_ms = 10.0 + ROUNDING_MS
    for age, due in ((9.0, False), (10.0, True), (11.0, True)):
        send, wait = updater.decide(SimpleNamespace(age_ms=np.array([[age, 0.0]])))
        assert send.tolist() == [due]
        assert wait.tolist() == [updater.threshold_ms - (0.0 if due else age)]


def test_spans_are_shares_of_the_longest_deadline():
    spans = Spans(
        slots=0.5, backlog=0.25, wait=2.0, slack=(0.1, 1.0, 3.0), far=4.0, exact=0, surprise=1,
        evidence=0.75, oldest=1.5, horizons=(1, 1, 1), variation=1, look=1, rest=1,
    )  # fmt: skip
    given = dict.fromkeys((field.name for field in fields(NextRules)), 0.0)
    given |= {"failure": 2.0, "margin": 0.1, "haste": 5.0, "least_chance": 0.3, "spans": spans}
    here = site(load("paper", ["workload.deadline.clip_ms=[60, 200]"]))
    assert measures_of(NextRules(**given), here) == Measures(
        failure=2.0, margin=0.1, haste_per_ms=0.025, least_chance=0.3, slots_ms=100.0,
        backlog_ms=50.0, wait_ms=400.0, slack_ms=(20.0, 200.0, 600.0), far_ms=800.0,
        evidence_ms=150.0, oldest_ms=300.0,
    )  # fmt: skip


def test_a_failure_is_remembered_for_a_window_in_steps_of_a_twentieth():
    scenario, zero = load("paper"), np.zeros(1, np.int64)
    dispatcher = AdmissionDispatcher(site(scenario), 0.95, 1.0, 1000.0, 0.8)
    dispatcher.draws = SimpleNamespace(of=lambda seen: np.zeros(len(seen)))  # rejects if it may
    late = Feedback(zero, zero, zero, zero, zero + DONE, zero.astype(bool), np.array([49.0]))
    dispatcher.observe(late)
    for now, rejected in ((60.0, True), (999.0, True), (1000.0, False)):
        seen = tasks(scenario, time_ms=now, generated_ms=now - 1.0)
        assert (dispatcher.decide(seen) == seen.reject).tolist() == [rejected]


def test_surprise_fades_and_adds_up():
    books = object.__new__(Books)
    books._surprise, books._heard_ms = np.array([4.0, 4.0]), np.array([100.0, 100.0])
    books._surprise_ms = 20.0
    books._note((np.array([0, 1]),), np.array([10.0, 0.0]), np.array([140.0, 90.0]))
    # 40 ms later e⁻² is left of it; what is heard late does not grow.
    np.testing.assert_allclose(books._surprise, [4.0 * np.exp(-2.0) + 0.5, 4.0])
    assert books._heard_ms.tolist() == [140.0, 100.0]


@pytest.mark.parametrize(
    ("answer", "actions"),
    [([[0.2, 0.1], [0.3, 0.4]], [0, 1]), ([[1], [0]], [1, 0]), ([2, 0], [2, 0])],
    ids=["scores", "a column", "a row"],
)
def test_a_model_of_others_answers_with_scores_or_with_actions(
    answer, actions, monkeypatch, tmp_path
):
    class Session:
        def __init__(self, _file, options, providers):
            assert options.intra_op_num_threads == options.inter_op_num_threads == 1
            assert providers == ["CPUExecutionProvider"]

        def get_inputs(self):
            return [SimpleNamespace(name="seen", shape=["batch", 3])]

        def run(self, _outputs, _given):
            return [np.array(answer)]

    fake = SimpleNamespace(InferenceSession=Session, SessionOptions=SimpleNamespace)
    monkeypatch.setitem(sys.modules, "onnxruntime", cast(ModuleType, fake))
    file = tmp_path / "model.onnx"
    file.touch()
    assert outside._onnx(file)(np.zeros((2, 3), np.float32)).tolist() == actions


def test_an_updater_of_others_sends_with_its_first_actions_and_waits_with_the_others():
    actions = iter(range(5))
    chosen = outside.from_callable(
        lambda seen: np.zeros(len(seen), int), lambda seen: np.array([next(actions)]), (20.0, 50.0)
    )
    updater = chosen.updater(site(load("paper")))
    updater._view = SimpleNamespace(of=lambda _: np.zeros((1, 3), np.float32))
    for answer in ((True, 20.0), (True, 50.0), (False, 20.0), (False, 50.0)):
        send, interval_ms = updater.decide(None)
        assert (send.tolist(), interval_ms.tolist()) == ([answer[0]], [answer[1]])
    with pytest.raises(InputError, match=r"action = 4: must be from 0 to 3"):
        updater.decide(None)


def test_a_probe_is_known_by_its_time_and_none_is_from_before_all_times():
    scenario = load("paper")
    for status_ms, probe_ms in ((990.0, 990.0), (np.nan, -np.inf)):
        seen = tasks(scenario, status_ms=np.array([[status_ms]]))
        assert prequal._probe_ms(seen).tolist() == [[probe_ms]]


def test_one_number_says_how_much_work_there_is_and_whether_anything_fits_in():
    scenario = load("paper")  # 4 slots of 27 000 cycles a ms; the longest deadline is 220 ms
    told = Told(site(scenario), SimpleNamespace(carried=(), single=True))
    sn = np.zeros(2, np.int64)
    work, room = told.read(sn, np.array([[5.0], [225.0]]))
    assert work.tolist() == [5.0 * 4 * 27_000.0] * 2
    assert room[0] > 0.0
    assert room[1] == 0.0


def test_draws_are_one_a_task_in_the_order_of_tasks():
    where = site(load("paper"))
    draws = DrawPerTask(where)
    [random] = where.random(Purpose.DISPATCHER)
    np.testing.assert_array_equal(draws.first(3)[0], random.random((3, 1)))
    seen = tasks(load("paper"), task=np.array([2]))
    assert draws.of(seen).tolist() == draws.first(3)[0, 2].tolist()
