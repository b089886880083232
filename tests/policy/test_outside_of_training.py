"""A controller says in one line where it was not trained, before it is played and while it is."""

from types import SimpleNamespace

import numpy as np
import pytest

from cosmo import load, simulate
from cosmo.node.calls import NOTHING_HIDDEN, Hidden
from cosmo.policy.next.met import met_by_sns
from cosmo.policy.next.trained_range import TrainedRange
from cosmo.policy.registry import method
from cosmo.world import hidden_of, site_of

OURS = method("cosmo-next")
PRESETS = ("volatile", "tenants", "tenants-dense", "skewed", "uncertain", "undeclared")
TRAINED = (*PRESETS, "throttled", "failing", "wild", "campus", "district", "shared-sn", "paper")


def noticed(name, *settings):
    scenario = load(name, settings)
    return OURS.notice(site_of(scenario), hidden_of(scenario))


@pytest.mark.parametrize("name", TRAINED)
def test_nothing_is_said_of_a_world_that_it_was_trained_in(name):
    assert noticed(name) == ""


@pytest.mark.parametrize(
    ("name", "settings", "said"),
    [
        ("city", [], "ENs = 300 (trained: 1 to 30), SNs = 60 (trained: 1 to 20)"),
        ("district", ["workload.rate=300"], "share of the capacity asked for = 1."),
        ("tenants", ["workload.rate=1"], "tasks/s an EN = 1 (trained: 2 to inf)"),
        ("campus", ["workload.demand.spread=1.5"], "spread of demands = 1.5 (trained: 0 to 1.2)"),
        ("tenants", ["background.dwell_ms=[200, 5000]"], "tenants stay in ms = 5000 (trained: 0"),
        ("tenants", ["workload.weights=[9, 1, 1, 1]"], "highest load of an EN over the mean = 3"),
        ("throttled", ["sn.speed.factors=[1.0, 0.1]"], "least speed factor = 0.1 (trained: 0.3"),
        ("failing", ["sn.outage.up_ms=500"], "between failures of an SN in ms = 500 (trained: 2"),
        ("failing", ["sn.outage.down_ms=9000"], "a failed SN is down in ms = 9000 (trained: 0"),
        ("campus", ["status.loss_probability=0.5"], "share of statuses lost = 0.5 (trained: 0"),
        # Its networks for one EN with one SN have seen tenants, and nothing else of this.
        ("paper", ["workload.demand.spread=0.5"], "spread of demands = 0.5 (trained: 0 to 0)"),
        ("shared-sn", ["background.dwell_ms=[400, 4000]"], "stay in ms = 4000 (trained: 0 to 600)"),
    ],
)
def test_what_is_outside_is_named_with_what_it_was_trained_for(name, settings, said):
    assert said in noticed(name, *settings)
    assert noticed(name, *settings).startswith("cosmo-next was not trained for such a site: ")


def test_times_are_in_proportion_to_the_longest_deadline():
    slower = "workload.deadline.clip_ms=[600, 2200]"
    assert noticed("tenants", slower, "background.dwell_ms=[5000, 5000]") == ""


def test_rules_are_made_for_any_site():
    scenario = load("city")
    assert method("self-tracking").notice(site_of(scenario), hidden_of(scenario)) == ""


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"workload.demand.spread": 2.0}, "off their estimates (trained: up to 90 %)"),
        ({"workload.weights": [5.0, 1.0, 1.0, 1.0, 1.0, 1.0]}, "times the planned load"),
        (
            {"background.rates": [0.0, 900.0], "background.dwell_ms": [3000.0, 6000.0]},
            "busy times of an SN last",
        ),
    ],
)
def test_nodes_measure_what_they_are_not_told(settings, said):
    long = {"episode.window_ms": 60_000.0, "mobility.at_edge": "turn"}
    usual = simulate("block", "cosmo-next", rates=40, settings=long)
    assert usual.remarks == ()
    played = simulate("block", "cosmo-next", rates=40, settings=long | settings)
    [line] = played.remarks
    assert said in line


@pytest.mark.parametrize(("longest_ms", "most_ms"), [(220.0, 600.0), (440.0, 1200.0)])
def test_busy_times_of_sns_are_in_proportion_to_the_longest_deadline(longest_ms, most_ms):
    """Trained for tenants that stay 600 ms at 220 ms; what is measured may be a fifth more."""
    scenario = load("paper", [f"workload.deadline.clip_ms=[60, {longest_ms}]"])
    trained = TrainedRange((1, 1), (1, 1), (0, 1), (0, 9), Hidden(tenants_ms=600.0))

    def said(busy_ms, times=5.0):
        closing = SimpleNamespace(
            times=np.array([[[9.0, times]]]), lasts_ms=np.array([[[1e9, busy_ms]]])
        )
        return met_by_sns(trained, site_of(scenario), SimpleNamespace(closing=closing))

    assert said(1.19 * most_ms) == ""
    line = f"busy times of an SN last {1.21 * most_ms:.0f} ms (trained: up to {most_ms:.0f})"
    assert said(1.21 * most_ms).endswith(line)
    assert said(1.21 * most_ms, times=4.0) == ""  # too few to say anything


def test_what_nobody_says_is_hidden_is_nothing_unusual():
    """An operator who tells nothing gets no warning, whatever a controller was trained for."""
    plain = TrainedRange(*[(0.0, float("inf"))] * 4, Hidden())
    assert plain.beyond(site_of(load("campus")), NOTHING_HIDDEN) == ""
    uneven = Hidden(load_ratio=2.0)
    assert "highest load of an EN over the mean = 2" in plain.beyond(
        site_of(load("campus")), uneven
    )
