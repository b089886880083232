"""Rules in compiled code decide as the plain ones do, task by task."""

import numpy as np
import pytest

from cosmo import load, method, play
from cosmo.measure import Regret
from cosmo.workload import episode

WORLD = load(
    "campus",
    [
        *("episode.window_ms=700", "episode.warmup_ms=100", "workload.rate=220", "sn.count=3"),
        *("backhaul.reach=[[0, 1, 2], [1], [0, 2]]", "status.loss_probability=0.1"),
        *("backhaul.links=[{sn = 1, hops = 4, hop_delay_ms = 3}]", "sn.slots=[4, 2, 3]"),
        "fading.factors=[0.3, 1.0]",
    ],
)
# Few tasks, but nodes that are soon full.
SMALL = load(
    "campus",
    [
        *("episode.window_ms=60", "episode.warmup_ms=10", "workload.rate=400", "sn.count=3"),
        *("backhaul.reach=[[0, 1, 2], [1], [0, 2]]", "status.loss_probability=0.2"),
        *("backhaul.links=[{sn = 1, hops = 4, hop_delay_ms = 3}]", "sn.slots=[1, 2, 1]"),
        *("en.slots=1", "sn.storage_bytes=150000", "en.storage_bytes=100000"),
        *("fading.factors=[0.3, 1.0]", "fading.period_ms=20"),
    ],
)
COMPILED = (
    *("all-local", "all-offload", "local-until-full", "full-information", "self-tracking"),
    *("never", "periodic:interval_ms=15", "aoi-threshold", "aoi-threshold/estimate"),
    *("aov-gap", "aov-gap/estimate:threshold=0.2"),
    *("power-of-d:keep=2,d=1,threshold_ms=4", "power-of-d:numbers=4", "power-of-d:interval_ms=7"),
    "cosmo-next",
)


def _decides_alike(name, world, episodes):
    """Task by task, status by status; what the plain one did."""
    chosen = method(name)
    plain, fast = (
        play(world, chosen, episodes, watchers=[Regret(world, chosen)], compiled=compiled)
        for compiled in (False, True)
    )
    for one, other in zip(plain, fast, strict=True):
        for field in ("action", "outcome", "decided_ms", "finished_ms", "refused"):
            np.testing.assert_array_equal(getattr(one, field), getattr(other, field), field)
        assert (one.updates, one.status_bytes) == (other.updates, other.status_bytes)
        assert repr(one.status) == repr(other.status)  # NaN where nothing was measured
    return plain


@pytest.mark.parametrize("name", COMPILED)
def test_a_compiled_rule_decides_as_the_plain_one_where_nodes_are_soon_full(name):
    [plain] = _decides_alike(name, SMALL, [episode(SMALL, 4, 0)])
    assert plain.refused.any() or (plain.action == 4).any()


@pytest.mark.parametrize("name", COMPILED)
def test_a_compiled_rule_decides_as_the_plain_one(name):
    plain = _decides_alike(name, WORLD, [episode(WORLD, 4, number) for number in range(2)])
    assert len(np.unique(plain[0].action)) > 1 or name in ("all-local",)


def test_what_has_no_compiled_form_is_played_all_the_same():
    episodes = [episode(WORLD, 4, 0)]
    plain, other = (
        play(WORLD, method("prequal"), episodes, compiled=compiled) for compiled in (False, True)
    )
    np.testing.assert_array_equal(plain[0].action, other[0].action)
