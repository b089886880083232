"""A controller says in one line where it was not trained, before it is played and while it is."""

import pytest

from cosmo import load, simulate
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
    usual = simulate("block", "cosmo-next", rate=40, settings=long)
    assert usual.remarks == ()
    played = simulate("block", "cosmo-next", rate=40, settings=long | settings)
    [line] = played.remarks
    assert said in line
