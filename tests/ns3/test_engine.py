"""The world on ns-3 against the embedded one, and against itself."""

import json
from dataclasses import replace

import numpy as np
import pytest
from docs.calibrate import calibrate, channel_delays

from cosmo import evaluate, load, load_controller, method, simulate
from cosmo.control.evaluate import trained_on
from cosmo.engine import worlds as start
from cosmo.errors import InputError
from cosmo.learn import session
from cosmo.measure import task_utility
from cosmo.node import REFUSED, Updater
from cosmo.ns3 import Ns3Worlds
from cosmo.ns3.library import library
from cosmo.ns3.network import Ns3Network
from cosmo.scenario import changed
from cosmo.workload import episode
from cosmo.world import Outcome, Worlds
from cosmo.world.records import UNDECIDED
from scenarios import SMALL_WILD

SHORT = ["episode.window_ms=1200", "episode.warmup_ms=0"]
ON_NS3 = [*SHORT, "engine=ns3"]
FIELDS = ("action", "outcome", "decided_ms", "finished_ms", "took_feasible", "refused")


def _same(one: Outcome, other: Outcome) -> None:
    for field in FIELDS:
        np.testing.assert_array_equal(getattr(one, field), getattr(other, field), field)
    assert one.updates == other.updates
    assert str(one.status) == str(other.status)  # a regret that is not measured is no number


def _random_play(worlds, seed, hold=""):
    random = [np.random.default_rng([seed, world]) for world in range(len(worlds))]
    turn = worlds.advance()
    while not turn.over:
        tasks, nodes = turn.dispatch, turn.update
        held = hold and len(nodes if hold == "en" else tasks) > 0
        if not (held and hold == "en"):
            worlds.answer(action=[int(random[w].integers(tasks.sns + 2)) for w in tasks.world])
        if not (held and hold == "sn"):
            worlds.answer(
                send=[bool(random[w].random() < 0.5) for w in nodes.world],
                interval_ms=[float(random[w].uniform(5.0, 60.0)) for w in nodes.world],
                numbers=nodes.sn_state[:, :4],
            )
        turn = worlds.advance(hold if held else "")
    return [worlds.outcome(world) for world in range(len(worlds))]


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("paper", []),
        ("paper", ["wifi.transport=tcp"]),
        ("paper", ["wifi.rts=true", "wifi.short_guard_interval=true", "wifi.channel_mhz=20"]),
        ("campus", []),
        ("shared-sn", ["status.loss_probability=0.3", "status.jitter_ms=4"]),
        ("fading-backhaul", ["mobility.at_edge=turn", "mobility.speed_m_per_s=30"]),
        ("wild", [*SMALL_WILD, "workload.wave={amplitude = 0.2, period_ms = 300}"]),
    ],
)
def test_the_same_seed_gives_the_same_packets_in_any_process(name, more):
    scenario = load(name, [*ON_NS3, *more, "workload.rate=150"])
    episodes = [episode(scenario, seed, 0) for seed in (4, 5)]
    first = _random_play(Ns3Worlds(scenario, episodes, 4), 1)
    turned = _random_play(Ns3Worlds(scenario, [episodes[1]], 4), 1)
    here = Worlds(scenario, [episodes[0]], 4, networks=[Ns3Network(scenario, episodes[0])])
    _same(_random_play(here, 1)[0], first[0])
    library().cosmo_end()
    for outcome in first:
        assert outcome.lost.any() == (name == "wild")
        assert set(outcome.outcome.tolist()) <= {1, 2, 3, 4, UNDECIDED}
        decided = outcome.outcome != UNDECIDED
        assert decided.mean() > 0.99
        assert (outcome.decided_ms[decided] > outcome.tasks.time_ms[decided]).all()
        assert np.isfinite(task_utility(scenario, outcome)).all()
    # The actions differ (another world's stream), the packets before the first of them do not.
    assert turned[0].decided_ms[0] == first[1].decided_ms[0]
    other = replace(episodes[0], network_seed=episodes[0].network_seed + 1)
    [another] = _random_play(Ns3Worlds(scenario, [other], 4), 1)
    assert (another.decided_ms != first[0].decided_ms).any()


@pytest.mark.parametrize("hold", ["en", "sn"])
def test_held_worlds_play_as_ever(hold):
    scenario = load("paper", ON_NS3)
    episodes = [episode(scenario, seed, 0) for seed in range(3)]
    plain = _random_play(Ns3Worlds(scenario, episodes, 4), 3)
    held = _random_play(Ns3Worlds(scenario, episodes, 4), 3, hold)
    for one, other in zip(plain, held, strict=True):
        _same(one, other)


def test_a_world_can_start_again():
    scenario = load("paper", ON_NS3)
    first, second = episode(scenario, 0, 0), episode(scenario, 0, 1)
    worlds = Ns3Worlds(scenario, [first], 4)
    with pytest.raises(ValueError, match="not over"):
        worlds.restart(0, second)
    _random_play(worlds, 1)
    assert worlds.generated == len(first.tasks)
    worlds.restart(0, second)
    _same(_random_play(worlds, 2)[0], _random_play(Ns3Worlds(scenario, [second], 4), 2)[0])


def test_bad_answers_change_nothing():
    scenario = load("paper", ON_NS3)
    worlds = Ns3Worlds(scenario, [episode(scenario, 0, 0)])
    turn = worlds.advance()
    time_ms = turn.dispatch.time_ms.copy()
    worlds.answer(action=[7])
    with pytest.raises(ValueError, match="from 0 to 2"):
        worlds.advance()
    worlds.answer(action=[0])
    assert worlds.advance().dispatch.time_ms[0] > time_ms[0]


def test_the_uplink_is_close_to_the_embedded_channel():
    """R6 was fitted to ns-3: within 12 % of the mean at every rate; short episodes waver more."""
    scenario = load("paper", ["engine=ns3", "episode.window_ms=5000", "workload.rate=160"])
    found = simulate(scenario, method("all-local"), seeds=3)
    tasks, decided = found.outcomes[0].tasks, found.outcomes[0].decided_ms
    access = scenario.access
    ours = channel_delays(tasks, access.overhead_ms, access.contention_ms, access.rate_mbps)
    assert np.mean(decided - tasks.time_ms) == pytest.approx(ours.mean(), rel=0.15)


def test_success_is_close_to_that_of_the_embedded_engine():
    for name in ("self-tracking", "aoi-threshold", "local-until-full"):
        settings = ["episode.window_ms=4000", "episode.warmup_ms=500", "workload.rate=200"]
        rates = [
            simulate(load("paper", [*settings, f"engine={engine}"]), method(name), seeds=2)
            .metrics["success_rate"]
            .mean
            for engine in ("embedded", "ns3")
        ]
        assert rates[1] == pytest.approx(rates[0], abs=0.04), name


def test_what_the_air_loses_has_no_decision():
    """R4: a frame may wait 2 ms only, on a channel that needs 60 ms for a task."""
    scenario = load("paper", [*ON_NS3, "wifi.mcs=0", "wifi.queue_ms=2"])
    [outcome] = simulate(scenario, method("random")).outcomes
    tasks, lost = outcome.tasks, outcome.outcome == UNDECIDED
    assert lost.sum() > 0.9 * len(tasks)
    assert (outcome.action[lost] == -1).all()
    last_chance = tasks.time_ms + tasks.deadline_ms + scenario.episode.undecided_after_ms
    np.testing.assert_array_equal(outcome.finished_ms[lost], last_chance[lost])
    assert (task_utility(scenario, outcome)[lost] == 0).all()


def test_refusals_travel_on_ns3_too():
    """R27: a notice takes two hops of 1 ms and the time of its packet, headers included."""
    scenario = load("paper", [*ON_NS3, "workload.rate=320", "sn.queue_capacity=2"])
    worlds = Ns3Worlds(scenario, [episode(scenario, 0, 0)])
    heard, turn = {}, worlds.advance()
    while True:
        told = turn.feedback
        heard |= dict(
            zip(told.task.tolist(), zip(told.fate, told.time_ms, strict=True), strict=True)
        )
        if turn.over:
            break
        worlds.answer(action=np.ones(len(turn.dispatch), int))
        turn = worlds.advance()
    outcome = worlds.outcome(0)
    decided = np.flatnonzero(outcome.outcome != UNDECIDED)
    assert sorted(heard) == decided.tolist()
    fate, time_ms = (np.array(column) for column in zip(*(heard[k] for k in decided), strict=True))
    refused = outcome.refused[decided]
    assert refused.sum() > 20
    np.testing.assert_array_equal(fate == REFUSED, refused)
    late = time_ms - outcome.finished_ms[decided]
    assert (late[~refused] == 0).all()
    alone = 2.0 + 2 * (64 + 30) / 24000  # behind a result it waits for that to leave
    assert late[refused].min() == pytest.approx(alone, abs=1e-3)
    assert late[refused].max() < alone + 1.0


class _Riding(Updater):
    """Tells the last of its ENs now and then, and all with their results."""

    def decide(self, nodes):
        some = np.zeros((len(nodes), nodes.ens), bool)
        some[np.arange(len(nodes)), nodes.reached.sum(axis=1) - 1] = True
        return some, np.full(len(nodes), 100.0)

    def ride(self, results):
        return np.ones(len(results), bool)


class _Piggyback(method("aov-gap/estimate").__class__):
    def updater(self, site):
        return _Riding()


def test_reach_and_riding_statuses_on_ns3():
    """The near SN of one EN, a far one of both (R30, R31): the books of both engines agree."""
    reach = ["en.count=2", "sn.count=3", "backhaul.reach=[[0, 2], [2]]"]
    far = "backhaul.links=[{sn = 2, hops = 3, hop_delay_ms = 4}]"
    [there], [here] = (
        simulate(load("paper", [*more, *reach, far, "workload.rate=90"]), _Piggyback()).outcomes
        for more in (ON_NS3, SHORT)
    )
    for outcome in (there, here):
        alone = outcome.tasks.en == 1
        assert not (outcome.action[alone] == 2).any()
        returned = (outcome.action > 0) & (outcome.action < 3) & ~outcome.refused
        assert outcome.rides == returned.sum() > 20
        own = outcome.updates - outcome.rides
        assert own == 2 * 13  # two SNs, thirteen looks each
        assert outcome.status_bytes == own * 80 + outcome.rides * 16
    assert abs((there.outcome == 1).mean() - (here.outcome == 1).mean()) < 0.1


def test_a_ue_out_of_range_uploads_nothing():
    """R7 is imposed on ns-3 too, whose radio would reach much farther."""
    away = ["mobility.distances_m=[5.2, 100, 6.8, 5.2]", "mobility.speed_m_per_s=0"]
    scenario = load("paper", [*ON_NS3, *away])
    [outcome] = simulate(scenario, method("all-local")).outcomes
    np.testing.assert_array_equal(outcome.outcome == UNDECIDED, outcome.tasks.ue == 1)


def test_training_and_evaluation_on_ns3(tmp_path):
    from cosmo.learn.config import load_config
    from cosmo.learn.run import Run

    settings = ["episodes=1", "encoder.collection_episodes=3", "encoder.epochs=2"]
    scenario = load("paper", ON_NS3)
    runs = [Run(scenario, seed) for seed in (0, 1)]
    session.train(tmp_path, "cosmo", runs, load_config("paper", settings))
    controller = load_controller(tmp_path)
    assert trained_on(controller)[0].engine == "ns3"
    found = evaluate(controller, episodes=2)
    assert [len(each.outcomes) for each in found] == [2, 2]
    embedded = [changed(each, ["engine=embedded"]) for each in trained_on(controller)]
    there = evaluate(controller, scenario=embedded, episodes=2)
    for one, other in zip(found, there, strict=True):
        assert one.outcomes[0].tasks.time_ms.tolist() == other.outcomes[0].tasks.time_ms.tolist()
        assert one.outcomes[0].decided_ms[0] != other.outcomes[0].decided_ms[0]


def test_the_engine_is_a_field_of_the_scenario():
    assert isinstance(start(load("paper", SHORT), [episode(load("paper", SHORT), 0, 0)]), Worlds)
    scenario = load("paper", ON_NS3)
    assert isinstance(start(scenario, [episode(scenario, 0, 0)]), Ns3Worlds)


def test_commands_take_the_engine(cosmo, tmp_path):
    arguments = ["--set", SHORT[0], "--set", SHORT[1], "--rate", "150"]
    for engine in ("embedded", "ns3"):
        code, out, _ = cosmo(
            "simulate", "-m", "random", "--engine", engine, *arguments, "--json",
            "--tasks-out", tmp_path / f"{engine}.csv",
        )  # fmt: skip
        assert code == 0
        assert json.loads(out)["engine"] == engine
    embedded, ns3 = ((tmp_path / f"{name}.csv").read_text() for name in ("embedded", "ns3"))
    assert embedded != ns3
    assert len(embedded.splitlines()) == len(ns3.splitlines())
    code, _, err = cosmo("simulate", "-m", "random", "--engine", "omnet")
    assert (code, err.count("\n")) == (2, 1)
    assert "engine = 'omnet': must be 'embedded', 'ns3' or 'live'" in err


def test_a_study_compares_engines(cosmo, tmp_path):
    plan = tmp_path / "plan.toml"
    plan.write_text(
        'name = "both"\nengines = ["embedded", "ns3"]\narrivals = ["poisson"]\nrates = [150.0]\n'
        f"seeds = [0]\nepisodes = 1\nsettings = {json.dumps(SHORT)}\n"
        '[[compare]]\nmethods = ["all-local", "self-tracking"]\n'
    )
    code, _, err = cosmo("study", "run", plan, "-o", tmp_path / "study")
    assert code == 0, err
    import polars

    table = polars.read_parquet(tmp_path / "study" / "metrics.parquet")
    assert sorted(table["scenario"].unique()) == ["paper", "paper-ns3"]
    assert table.height == 4


def test_calibration_finds_the_idle_channel():
    found = calibrate(load("paper", ["episode.window_ms=4000"]), [200.0], 1000, 1)
    assert found.rate_mbps == pytest.approx(128.6, rel=0.01)
    assert found.overhead_ms == pytest.approx(0.043, abs=0.02)
    [fit] = found.fits
    # With one rate to fit, its mean is met.
    assert fit.embedded_mean_ms == pytest.approx(fit.mean_ms, rel=0.01)


def test_calibration_takes_the_first_cell_of_any_scenario():
    """Lists of nodes and tables of links stay as they are."""
    lists = ["en.slots=[2, 3, 1]", "sn.slots=[4, 2]", "backhaul.up_mbps=[[9, 8], [7, 6], [5, 4]]"]
    scenario = load("campus", [*lists, "episode.window_ms=2500", "episode.warmup_ms=0"])
    found = calibrate(scenario, [150.0], 0, 1)
    assert found.rate_mbps == pytest.approx(128.6, rel=0.02)
    tasks = episode(changed(scenario, ["workload.rate=150"]), 0, 0).tasks
    assert found.fits[0].tasks == (tasks.en == 0).sum() < len(tasks)
    assert found.fits[0].lost == 0


def test_calibration_without_arrivals_is_refused():
    with pytest.raises(InputError, match=r"workload.rate = 0.001: no task arrives"):
        calibrate(load("paper", SHORT), [200.0, 0.001], 1000, 1)
