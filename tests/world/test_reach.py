"""Who reaches whom, whom an SN tells, and what rides on results (R30, R31)."""

import numpy as np
import pytest

from cosmo import InputError, Method, Updater, Worlds, load, method, simulate
from cosmo.measure import task_table
from cosmo.node import RAW, Dispatcher
from cosmo.workload import episode

SHORT = ("episode.window_ms=300", "episode.warmup_ms=50")
SPARSE = (*SHORT, "backhaul.reach=[[0, 1], [1], [1]]", "sn.count=3", "workload.rate=200")
FAR = "backhaul.links=[{sn = 1, hops = 4, hop_delay_ms = 3}]"


class Everyone(Method, Dispatcher):
    """Offloads by turns; the updater is given."""

    carries = RAW

    def __init__(self, updater: Updater) -> None:
        self._updater = updater

    def dispatcher(self, site):
        return self

    def decide(self, tasks):
        return 1 + tasks.task % tasks.reached.sum(axis=1)

    def updater(self, site):
        return self._updater


class UpdateState(Updater):
    """Every 50 ms, to those of a mask by column."""

    def __init__(self, mask):
        self._mask = np.array(mask)

    def decide(self, nodes):
        send = np.broadcast_to(self._mask, (len(nodes), *self._mask.shape))
        return send, np.full(len(nodes), 50.0)


class Riding(Updater):
    """Nothing on its own; something with every result."""

    def decide(self, nodes):
        return np.zeros(len(nodes), bool), np.full(len(nodes), np.inf)

    def ride(self, results):
        assert (results.age_ms >= 0).all()
        return np.ones(len(results), bool)


PLAYED = (
    *("random", "all-offload", "local-until-full", "full-information", "self-tracking"),
    *("priced-books", "prequal", "aov-gap", "aov-gap/estimate", "aoi-threshold/estimate"),
    *("aoci-online", "admission-control", "periodic:interval_ms=20"),
)


@pytest.mark.parametrize("name", PLAYED)
def test_no_method_chooses_an_sn_that_its_en_does_not_reach(name):
    """The guard would refuse it; who decides so, and regret, run without a warning."""
    scenario = load("campus", [*SPARSE, FAR])
    result = simulate(scenario, method(name), seeds=3)
    [outcome] = result.outcomes
    alone = outcome.tasks.en > 0
    assert not (outcome.action[alone] == 2).any()
    assert set(outcome.action) <= {-1, 0, 1, 2, 3}
    named = task_table([outcome], scenario).filter(alone)["action"].unique().to_list()
    assert set(named) <= {"none", "local", "offload:2", "reject"}


def test_an_action_beyond_the_reach_is_refused_in_one_line():
    class Beyond(Everyone):
        """Wants the second SN of everyone."""

        def decide(self, tasks):
            return np.full(len(tasks), 2)

    scenario = load("campus", SPARSE)
    with pytest.raises(InputError, match=r"action = 2: EN [12] reaches 1 SNs, so it must be"):
        simulate(scenario, Beyond(UpdateState(False)), seeds=1)
    worlds = Worlds(scenario, [episode(scenario, 1, 0)])
    turn = worlds.advance()
    while turn.dispatch.en[0] == 0:
        worlds.answer(action=[3])
        turn = worlds.advance()
    assert turn.dispatch.sn[0].tolist() == [1, -1]
    assert np.isinf(turn.dispatch.up_backlog_ms[0, 1])
    worlds.answer(action=[2])
    with pytest.raises(ValueError, match="no SN that the EN does not reach"):
        worlds.advance()


def test_an_sn_that_nobody_reaches_is_never_asked():
    scenario = load("campus", SPARSE)
    worlds = Worlds(scenario, [episode(scenario, 1, 0)], RAW)
    asked, turn = set(), worlds.advance()
    while not turn.over:
        asked |= set(turn.update.sn.tolist())
        if len(turn.update) and turn.update.sn[0] == 0:
            assert turn.update.en[0].tolist() == [0, -1, -1]
        reject = np.full(len(turn.dispatch), 3)
        nodes = len(turn.update)
        worlds.answer(action=reject, send=np.ones(nodes), interval_ms=np.full(nodes, 40.0),
                      numbers=np.zeros((nodes, RAW)))  # fmt: skip
        turn = worlds.advance()
    assert asked == {0, 1}


@pytest.mark.parametrize(
    ("mask", "each"),
    [(True, 4), (False, 0), ([True, False, True], 3), ([False, True, True], 2)],
)
def test_each_message_is_charged_and_its_bytes_are_counted(mask, each):
    """SN 0 is reached by EN 0 alone, SN 1 by all three; seven looks of each, from 0 to 300 ms."""
    scenario = load("campus", SPARSE)
    result = simulate(scenario, Everyone(UpdateState(mask)), seeds=2)
    [outcome], [metrics] = result.outcomes, result.episodes
    assert outcome.updates == 7 * each
    assert outcome.status_bytes == 7 * each * (64 + 4 * 4)
    assert outcome.rides == 0
    assert metrics["episode_update_cost"] == 7 * each * 4 * 0.5
    assert metrics["status_bytes_rate"] == pytest.approx(
        metrics["update_cost_rate"] / (4 * 0.5) * 80, nan_ok=False
    )


def test_a_status_rides_on_every_result():
    scenario = load("campus", SPARSE)
    result = simulate(scenario, Everyone(Riding()), seeds=2)
    [outcome] = result.outcomes
    offloaded = (outcome.action > 0) & (outcome.action < 3)
    returned = int((offloaded & ~outcome.refused).sum())
    assert outcome.updates == outcome.rides == returned > 50
    assert outcome.status_bytes == returned * 4 * 4  # no header
    assert result.episodes[0]["episode_update_cost"] == returned * 4 * 0.5
    # The cache is as old as the last result, and a result takes longer by what rides on it.
    [plain] = simulate(scenario, Everyone(UpdateState(False)), seeds=2).outcomes
    assert outcome.status.aoi_ms < 0.5 * plain.status.aoi_ms
    longer = (outcome.finished_ms - plain.finished_ms)[offloaded & ~outcome.refused]
    assert np.median(longer) == pytest.approx(2 * 16 / (192 * 125), rel=1e-6)  # two hops


def test_a_large_sparse_world_takes_memory_in_proportion_to_its_links():
    """200 × 40, and as many SNs again that nobody reaches: nothing grows with ENs times SNs."""
    settings = [*SHORT, "workload.rate=20", "en.count=200", "backhaul.reach={nearest = 3}"]

    def sizes(*more):
        scenario = load("paper", [*settings, *more])
        batch = Worlds(scenario, [episode(scenario, 0, 0)], RAW)
        state, turn = batch._state, batch._turn
        links = len(scenario.links)
        return (
            links,
            sum(
                a.nbytes
                for a in (
                    *state,
                    turn.counts,
                    *turn.seen,
                    *turn.answers,
                    *turn.truth,
                    *batch._constants,
                )
            ),
            scenario,
        )

    links, forty, scenario = sizes("sn.count=40")
    assert links == 600
    assert sizes("sn.count=80")[1] < 1.1 * forty
    wider, more, _ = sizes("sn.count=40", "backhaul.reach={nearest = 6}")
    assert wider == 1200
    assert (more - forty) / (wider - links) < 500  # bytes a link
    result = simulate(scenario, method("aov-gap/estimate"), seeds=0)
    assert result.episodes[0]["success_rate"] > 0.9
