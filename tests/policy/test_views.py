"""What agents see, number by number, on R18's scales."""

import numpy as np
import pytest

from cosmo import UpdateObservation, load
from cosmo.policy.features import Features
from cosmo.policy.views import EnView, SnView
from observations import site, tasks

SCENARIO = load(
    "campus",
    [
        *("en.slots=2", "en.cycles_per_ms=1000", "en.storage_bytes=400000"),
        *("sn.slots=[4, 5]", "sn.cycles_per_ms=2000", "sn.storage_bytes=800000"),
        *("backhaul.up_mbps=50", "backhaul.down_mbps=200", "backhaul.reach=[[0, 1], [1], [0, 1]]"),
        *("workload.input_bytes=[1000, 40000]", "workload.cycles=[100000, 500000]"),
        "workload.deadline.clip_ms=[60, 200]",
    ],
)
CAMPUS = load("campus")  # observations are laid out by it
SITE = site(SCENARIO)
SCALES = SITE.scales
TASK = {
    "throughput_mbps": 60.0, "throughput_trend_mbps": -15.0, "residual_ms": 4500.0,
    "en_state": [1, 30.0, 50_000.0, 100_000.0, 0, 0], "input_bytes": 10_000.0, "cycles": 250_000.0,
    "deadline_ms": 100.0,
}  # fmt: skip
# R18: N over slots, W over 100 ms, B over 100 ms of the full rate, M over the storage.
LOCAL = [0.6, -0.15, 0.3, 0.5, 0.3, 0.25, 0.25, 0.25, 0.5, 0.5]


def test_the_scales_are_r18_s():
    assert (SCALES.throughput_mbps, SCALES.residual_ms) == (100.0, 15_000.0)
    assert (SCALES.wait_ms, SCALES.age_ms, SCALES.most_age) == (100.0, 200.0, 10.0)


def test_what_an_en_sees_of_itself_and_its_task():
    found = Features(SITE).en_local(tasks(CAMPUS, **TASK))
    np.testing.assert_allclose(found, [LOCAL], rtol=1e-6)


def _two_ens():
    """EN 0, which reaches both SNs, and EN 1, which reaches one."""
    return tasks(
        CAMPUS, count=2, carries=2, **TASK, en=[0, 1], sn=[[0, 1], [1, -1]],
        status=[[[0.1, 0.2], [0.3, 0.4]], [[0.5, 0.6], [0.0, 0.0]]],
        status_ms=[[903.0, np.nan], [1003.0, np.nan]],
        up_link_mbps=[[[25.0, 5.0, -10.0], [50.0, 0.0, 0.0]], [[40.0, 0.0, 0.0], [1.0, 0.0, 0.0]]],
    )  # fmt: skip


def test_what_an_en_sees_of_sns_is_nothing_where_there_is_none():
    one, other = Features(SITE).en_remote(_two_ens(), with_age=True)
    ages = 0.5, 1003.0 / 200.0  # of a status that is 100 ms old, and of none
    np.testing.assert_allclose(
        one, [0.1, 0.2, 0.5, 0.1, -0.2, ages[0], 0.3, 0.4, 1.0, 0.0, 0.0, ages[1]], rtol=1e-6
    )
    np.testing.assert_allclose(other[:6], [0.5, 0.6, 0.8, 0.0, 0.0, 0.0], rtol=1e-6)
    assert not other[6:11].any()
    without = Features(SITE).en_remote(_two_ens(), with_age=False)
    np.testing.assert_allclose(without[0], [0.1, 0.2, 0.5, 0.1, -0.2, 0.3, 0.4, 1.0, 0.0, 0.0])


def _sns():
    """SN 0, which two ENs reach, and SN 1, which all three do."""
    return UpdateObservation(
        world=np.array([0, 0]), sn=np.array([0, 1]), time_ms=np.array([500.0, 4000.0]),
        sn_state=np.array([[1, 20.0, 80_000.0, 200_000.0, 0, 0], [5, 0, 0, 800_000.0, 0, 0]]),
        en=np.array([[0, 2, -1], [0, 1, 2]]),
        acknowledged=np.array(
            [[[4, 10.0, 40_000.0, 400_000.0], [2, 0, 0, 8e5], [0, 0, 0, 0]], [[0, 0, 0, 0]] * 3]
        ),
        acknowledged_ms=np.array([[480.0, 400.0, np.nan], [3900.0, np.nan, 3000.0]]),
        recent_delay_ms=np.array([50.0, 0.0]), recent_success=np.array([0.75, 0.0]),
        recent_failure=np.array([0.25, 0.0]),
        down_link_mbps=np.array(
            [[[100.0, 20.0, -50.0], [200.0, 0, 0], [1, 0, 0]], [[200.0, 0, 0]] * 3]
        ),
    )  # fmt: skip


def test_an_sn_sees_of_each_en_what_that_one_holds():
    found = Features(SITE).sn(_sns(), np.array([[7.0, 8.0], [9.0, 6.0]]))
    # EN 0 holds what is 20 ms old, EN 2 what is 100 ms old; SN 1 was never heard of by EN 1.
    one = [7.0, 8.0, 4.0, 10.0, 40_000.0, 400_000.0, 0.1, 0.25, 0.75, 0.25, 0.5, 0.1, -0.25]
    other = [7.0, 8.0, 2.0, 0.0, 0.0, 800_000.0, 0.5, 0.25, 0.75, 0.25, 1.0, 0.0, 0.0]
    np.testing.assert_allclose(found[0, :2], [one, other])
    assert found[1, :, 6].tolist() == [0.5, 10.0, 5.0]  # ages are cut off


def test_an_outsider_s_view_of_an_en():
    view = EnView(SITE)
    seen = tasks(
        CAMPUS, count=2, **TASK, en=[0, 1], sn=[[0, 1], [1, -1]], local_wait_ms=25.0,
        local_room=[True, False], generated_ms=993.0,
        status=[[[1, 20.0, 80_000.0, 200_000.0], [9, 9, 9, 9]]] * 2,
        status_ms=[[903.0, np.nan], [1003.0, np.nan]], up_backlog_ms=[[10.0, 1e9], [0.0, 0.0]],
        up_link_mbps=[[[25.0, 5.0, -10.0], [50.0, 0.0, 0.0]]] * 2,
    )  # fmt: skip
    found = view.of(seen)
    # 100 ms of deadline, 10 of them over: 0.45 of 200 ms are left.
    np.testing.assert_allclose(found[0, :13], [*LOCAL, 0.45, 0.25, 1.0], rtol=1e-6)
    assert found[1, 12] == 0.0
    told = [0.25, 0.2, 0.1, 0.25, 0.5, 0.5, 0.1, -0.2, 0.1]
    np.testing.assert_allclose(found[0, 13:22], told, rtol=1e-6)
    idle = [1.0, 0.0, 0.0, 1.0, 1003.0 / 200.0, 1.0, 0.0, 0.0, 10.0]
    np.testing.assert_allclose(found[0, 22:], idle, rtol=1e-6)
    assert found[1, 22:].tolist() == [0.0, 0.0, 0.0, 0.0, 10.0, 0.0, 0.0, 0.0, 0.0]
    assert len(view.names) == found.shape[1]
    assert view.names[10:15] == ("task_slack", "local_wait", "local_room", "sn0_idle", "sn0_wait")
    assert view.names[-1] == "sn1_link_backlog"
    signed = {name for name, low in zip(view.names, view.low, strict=True) if low == -10.0}
    trends = {"throughput_trend", "sn0_link_rate_trend", "sn1_link_rate_trend"}
    assert signed == {*trends, "task_slack"}
    assert set(view.high) == {10.0}
    assert set(view.low) == {-10.0, 0.0}


def test_an_outsider_s_view_of_an_sn():
    view = SnView(SITE)
    found = view.of(_sns())
    own = [0.25, 0.2, 0.1, 0.25, 0.25, 0.75, 0.25]
    first = [1.0, 0.1, 0.05, 0.5, 0.1, 0.5, 0.1, -0.25]
    second = [0.5, 0.0, 0.0, 1.0, 0.5, 1.0, 0.0, 0.0]
    np.testing.assert_allclose(found[0], [*own, *first, *second, *[0.0] * 8], rtol=1e-6)
    # EN 1 has heard nothing of SN 1: an idle one, and 4000 ms cut off at ten scales.
    np.testing.assert_allclose(found[1, 15:23], [1.0, 0, 0, 1.0, 10.0, 1.0, 0, 0], rtol=1e-6)
    signed = [name for name, low in zip(view.names, view.low, strict=True) if low < 0.0]
    assert signed == [f"en{en}_link_rate_trend" for en in range(3)]
    other = SnView(SITE, carries=2)
    assert [name for name, low in zip(other.names, other.low, strict=True) if low < 0.0][:3] == [
        "en0_acknowledged_0", "en0_acknowledged_1", "en0_link_rate_trend",
    ]  # fmt: skip


def test_numbers_of_others_are_shown_as_they_are_and_cut_off():
    given = _sns()
    given.acknowledged = np.array([[[0.5, -0.5], [99.0, -99.0], [3.0, 3.0]]] * 2)
    found = SnView(SITE, carries=2).of(given)
    np.testing.assert_allclose(found[0, 7:9], [0.5, -0.5])
    np.testing.assert_allclose(found[0, 13:15], [10.0, -10.0])
    assert not found[0, 19:].any()


@pytest.mark.parametrize(("age_ms", "scaled"), [(0.0, 0.0), (200.0, 1.0), (3000.0, 10.0)])
def test_ages(age_ms, scaled):
    assert SCALES.age(np.array([age_ms])).tolist() == [scaled]
