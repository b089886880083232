"""Status updating: what is sent when, what it costs, and how fresh it keeps the EN."""

from types import SimpleNamespace

import numpy as np
import pytest

from cosmo import load, method, play, simulate
from cosmo.policy.rules.aoci_online import delivered, end_cycle, no_knowledge, threshold
from cosmo.policy.rules.aoi_threshold import threshold_ms
from cosmo.policy.rules.aov_gap import gap_to_sent
from cosmo.study import reported
from cosmo.workload import Tasks, episode, from_tasks, squared_variation
from observations import site

RATES = (120, 160, 200, 220, 240, 280, 320)


def _no_tasks(scenario, seed=0):
    nothing, no_index = np.empty(0), np.empty(0, np.int64)
    tasks = Tasks(nothing, no_index, no_index, nothing, nothing, nothing)
    return from_tasks(scenario, tasks, seed, 0)


def _status(scenario, name, seed=0):
    [outcome] = play(scenario, method(name), [_no_tasks(scenario, seed)])
    return outcome, outcome.status


DELIVERY_MS = 2 * 80 / 24000 + 2.0  # of a raw status on an idle link, R13 and R14


@pytest.mark.parametrize("interval_ms", [20.0, 50.0, 200.0])
def test_periodic_updating_has_the_age_that_the_closed_form_says(interval_ms):
    outcome, status = _status(load("paper"), f"periodic:interval_ms={interval_ms}")
    assert status.aoi_ms == pytest.approx(DELIVERY_MS + interval_ms / 2, abs=0.02)
    assert status.peak_aoi_ms == pytest.approx(DELIVERY_MS + interval_ms)
    assert outcome.updates == 10000 / interval_ms + 1  # R21: at both ends of the window


def test_the_age_without_updates_is_the_time_since_the_start():
    _, status = _status(load("paper"), "never")
    assert status.aoi_ms == pytest.approx(6000.0)
    assert np.isnan(status.peak_aoi_ms)


@pytest.mark.parametrize(("loss", "jitter"), [(0.0, 0.0), (0.0, 30.0), (0.3, 8.0)])
def test_the_threshold_policy_has_the_age_that_renewal_theory_says(loss, jitter):
    """Updates get through after G periods, G geometric, and a delay Y: the mean age is
    E[Y] + τ·E[G²]/(2·E[G]), the mean peak E[Y] + τ·E[G]."""
    settings = [f"status.loss_probability={loss}", f"status.jitter_ms={jitter}"]
    scenario = load("paper", [*settings, "episode.window_ms=1e6"])
    period = 70.0
    name = f"periodic:interval_ms={period}"  # what the threshold policy does, see below
    _, status = _status(scenario, name)
    delay = DELIVERY_MS + jitter / 2
    assert status.aoi_ms == pytest.approx(delay + period * (1 + loss) / (2 * (1 - loss)), rel=0.01)
    assert status.peak_aoi_ms == pytest.approx(delay + period / (1 - loss), rel=0.01)


@pytest.mark.parametrize(("loss", "jitter"), [(0.0, 0.0), (0.3, 8.0)])
def test_aoi_threshold_sends_once_a_threshold_whatever_is_lost(loss, jitter):
    settings = [f"status.loss_probability={loss}", f"status.jitter_ms={jitter}"]
    settings += ["episode.window_ms=60000", "mobility.at_edge=turn"]
    scenario = load("paper", [*settings, "workload.rate=320"])
    period = threshold_ms(site(scenario), 5.1)
    [outcome] = play(scenario, method("aoi-threshold"), [episode(scenario, 0, 0)])
    assert outcome.updates == pytest.approx(60000 / period, abs=2)
    share = (1 + loss) / (2 * (1 - loss))
    # Results share the link, so that a delivery takes a little longer than on an idle one.
    expected = DELIVERY_MS + jitter / 2 + period * share
    assert outcome.status.aoi_ms == pytest.approx(expected, rel=0.06)
    assert outcome.status.decision_age_ms == pytest.approx(outcome.status.aoi_ms, rel=0.05)


def test_aoi_threshold_is_the_square_root_law():
    slow = load("paper", ["workload.arrivals=deterministic", "workload.rate=120"])
    fast = load("paper", ["workload.arrivals=poisson", "workload.rate=320"])
    assert threshold_ms(site(slow), 5.1) == pytest.approx(162.0, abs=0.5)
    assert threshold_ms(site(fast), 5.1) == pytest.approx(70.0, abs=0.5)
    # It minimises update cost plus staleness loss per second.
    cost, loss = 4.0 * 0.5 * 4, 5.1 * 320.0 * 2.0
    taus = np.linspace(0.01, 0.3, 20001)
    best = taus[np.argmin(cost / taus + loss * taus / 2)]
    assert threshold_ms(site(fast), 5.1) == pytest.approx(1000 * best, rel=1e-3)


@pytest.mark.parametrize("arrivals", ["deterministic", "poisson", "bursty"])
def test_squared_variation_is_that_of_the_gaps(arrivals):
    settings = ["episode.window_ms=3e6", "workload.rate=300", f"workload.arrivals={arrivals}"]
    scenario = load("paper", [*settings, "workload.burst.dwell_ms=[60, 120]"])
    gaps = np.diff(episode(scenario, 0, 0).tasks.time_ms)
    measured = gaps.var() / gaps.mean() ** 2
    assert squared_variation(scenario.workload) == pytest.approx(measured, rel=0.03, abs=1e-9)


P, COST = 0.3, 1.0


def _average_cost(limit, count=400_000):
    """Mean AoCI plus update cost per unit of time, from areas under the age between news."""
    random = np.random.default_rng(1)
    updates = random.geometric(P, count)  # until one brings news
    first_age = random.exponential(1.0, count)  # just after the last news: its delay
    failed = random.gamma(np.maximum(updates - 1, 1e-9), 1.0) * (updates > 1)
    last_delay = random.exponential(1.0, count)
    peak = np.maximum(limit, first_age) + failed + last_delay
    area = (peak**2 - first_age**2) / 2
    return (area + COST * updates).sum() / (peak - first_age).sum()


def test_aoci_learns_the_optimal_threshold_of_a_known_delay_law():
    """p = 0.3, exponential delays of mean 1, cost 1: H = 1.80."""
    random = np.random.default_rng(5)
    channels, cycles = 40, 2500
    learner = no_knowledge((1, channels), COST, beta=0.0, largest=100.0)
    for channel in range(channels):
        last_delay = 0.0
        for _ in range(cycles):
            # From the generation of the last new update until the first update of the cycle.
            length, updates, changed = max(threshold(learner, 0, channel), last_delay), 0, False
            while not changed:
                last_delay, changed = random.exponential(1.0), random.random() < P
                delivered(learner, 0, channel, last_delay, changed)
                length += 0.0 if changed else last_delay
                updates += 1
            end_cycle(learner, 0, channel, length, updates)
    learned = np.array([threshold(learner, 0, channel) for channel in range(channels)])
    assert learned.mean() == pytest.approx(1.80, abs=0.1)
    assert learned.std() < 0.25

    # And 1.80 is the optimum: no other threshold costs less.
    limits = np.linspace(0.8, 2.8, 11)
    costs = [_average_cost(limit) for limit in limits]
    best = np.polyfit(limits, costs, 4)
    fine = np.linspace(0.8, 2.8, 2001)
    assert fine[np.polyval(best, fine).argmin()] == pytest.approx(1.80, abs=0.1)


def _cost(name, arrivals, rate):
    scenario = load("paper", [f"workload.arrivals={arrivals}", f"workload.rate={rate}"])
    return simulate(scenario, method(name), seeds=0, episodes=2).metrics["update_cost_rate"].mean


def _reported(name, arrivals, rate):
    found = reported().filter(
        method=name, arrivals=arrivals, rate=float(rate), metric="update_cost_rate"
    )
    return found["value"].item()


@pytest.mark.parametrize("arrivals", ["deterministic", "poisson"])
@pytest.mark.parametrize(("name", "within"), [("aoi-threshold", 0.15), ("aov-gap", 0.10)])
@pytest.mark.parametrize("rate", [120, 320])
def test_update_costs_are_near_the_paper_s(name, within, arrivals, rate):
    assert _cost(name, arrivals, rate) == pytest.approx(_reported(name, arrivals, rate), rel=within)


@pytest.mark.parametrize("arrivals", ["deterministic", "poisson"])
@pytest.mark.parametrize("rate", RATES)
def test_aoci_costs_what_the_paper_says_at_every_load(arrivals, rate):
    assert 53.0 * 0.9 <= _cost("aoci-online", arrivals, rate) <= 57.0 * 1.1


def test_aov_says_every_change_once_even_while_it_is_on_its_way():
    """One task at the SN: it begins and it ends, and neither is repeated at the checks between."""
    settings = ["en.storage_bytes=40000", "episode.window_ms=2000", "episode.warmup_ms=0"]
    scenario = load("paper", settings)  # no room at the EN: it is offloaded
    one = (np.array([value]) for value in (100.0, 0, 0, 30000.0, 540000.0, 100.0))
    time, ue, en, size, cycles, deadline = one
    task = from_tasks(scenario, Tasks(time, en, ue, size, cycles, deadline), 0, 0)
    [outcome] = play(scenario, method("aov-gap:threshold=0.2"), [task])
    assert outcome.action.tolist() == [1]
    assert outcome.updates == 2
    lossy = load("paper", [*settings, "status.loss_probability=0.9"])
    [outcome] = play(lossy, method("aov-gap:threshold=0.2,timeout_ms=5"), [task])
    assert outcome.updates > 2  # what is not acknowledged in time is said again


def test_aov_is_silent_while_nothing_moves():
    outcome, status = _status(load("paper"), "aov-gap")
    assert outcome.updates == 0
    assert status.aoi_ms == pytest.approx(6000.0)
    settings = ["status.loss_probability=0.5", "episode.window_ms=3000"]
    lossy = load("paper", ["workload.rate=320", *settings])
    [outcome] = play(lossy, method("aov-gap"), [episode(lossy, 0, 0)])
    assert outcome.updates > 50  # what is lost does not silence it for good


@pytest.mark.parametrize("name", ["aoci-online", "aov-gap", "aoi-threshold", "prequal"])
def test_updaters_survive_several_nodes_losses_and_jitter(name):
    settings = ["status.loss_probability=0.4", "status.jitter_ms=15"]
    scenario = load("campus", [*settings, "workload.rate=200", "episode.window_ms=4000"])
    [outcome] = play(scenario, method(name), [episode(scenario, 0, 0)])
    assert outcome.updates > 100
    assert outcome.status.aoi_ms < 1000


def test_updates_that_are_rarely_new_lower_the_threshold_of_aoci():
    """One of four deliveries was new, each took 2: H = 10 - 2 * (3/4) / (1/4) = 4."""
    learner = no_knowledge((1, 1), 1.0, 10.0, 1000.0)
    for number in range(4):
        delivered(learner, 0, 0, 2.0, number == 0)
    assert threshold(learner, 0, 0) == pytest.approx(4.0)
    for _ in range(4):  # one of eight: 10 - 2 * 7 is below 0
        delivered(learner, 0, 0, 2.0, False)
    assert threshold(learner, 0, 0) == 0.0


def test_the_gap_to_what_was_sent_is_the_worst_field_by_its_scale():
    """(3 - 1) / 4, (40 - 40) / 10, (5 - 9) / 16, (1 - 1) / 1."""
    own = SimpleNamespace(world=0, sn=0, sn_state=np.array([3.0, 40.0, 5.0, 1.0]))
    state = SimpleNamespace(
        pending=SimpleNamespace(sent=np.array([[[1.0, 40.0, 9.0, 1.0]]])),
        scale=np.array([[4.0, 10.0, 16.0, 1.0]]),
    )
    assert gap_to_sent(SimpleNamespace(update=[own]), state, 0) == pytest.approx(0.5)
