"""How one controller for all sites is trained."""

import numpy as np
import pytest

from cosmo import InputError, load, load_controller
from cosmo.arrays import read_arrays
from cosmo.learn import session
from cosmo.learn.next.config import load_next_config
from cosmo.learn.next.multi_node.config import MultiNodeConfig
from cosmo.learn.next.multi_node.evolution import (
    SIZE,
    Climb,
    candidates,
    gradient,
    scaled_at,
    shaped,
)
from cosmo.learn.next.multi_node.kinds import _load, some_kind
from cosmo.learn.next.multi_node.trainer import MultiNodeTrainer, played
from cosmo.learn.run import Run
from cosmo.policy.next.multi_node.scaling import constant
from cosmo.policy.rules.multi_node_parameters import LEAST, START
from cosmo.policy.trained import shipped
from cosmo.scenario import changed
from cosmo.workload import episode

SHORT = (
    "episodes=2", "worlds=2", "window_ms=600.0", "en.steps=3", "en.batch=16", "en.hidden=4",
    "en.joint=4", "en.kept_rounds=1", "en.tasks=1", "multi_node.generations=2",
    "multi_node.worlds=2", "multi_node.pairs=2", "multi_node.window_ms=[150.0, 250.0]",
    "multi_node.warmup_ms=50.0",
    "multi_node.kinds.ens=[1, 4]", "multi_node.kinds.sns=[1, 4]", "multi_node.kinds.named=[]",
)  # fmt: skip
CONFIG = load_next_config("universal", SHORT)


def test_candidates_are_mirrored_and_keep_to_what_is_allowed():
    drain, numbers = START._fields.index("drain_rate"), len(START)
    steps = np.zeros((1, SIZE))
    steps[0, drain], steps[0, numbers - 1] = 2.0, -100.0
    steps[0, numbers + drain], steps[0, 2 * numbers + drain] = 0.5, -0.25
    up, down = candidates(np.zeros(SIZE), steps, 0.5)
    assert up.middle.drain_rate == pytest.approx(START.drain_rate * np.e)
    assert down.middle.drain_rate == pytest.approx(START.drain_rate / np.e)
    assert up.middle.recheck_later_ms == LEAST.recheck_later_ms
    assert (up.by_balance.drain_rate, up.by_size.drain_rate) == (0.25, -0.125)
    assert (down.by_balance.drain_rate, down.by_size.drain_rate) == (-0.25, 0.125)
    assert scaled_at(np.zeros(SIZE)).middle == pytest.approx(START)


def test_the_way_up_by_ranks_by_hand():
    assert shaped(np.array([5.0, -100.0, 5.0, 7.0])).tolist() == [0.0, -0.5, 0.0, 0.5]
    steps = np.array([[1.0, 0.0], [0.0, 2.0]])
    way = gradient(steps, np.array([3.0, 1.0, 1.0, 2.0]), 0.5)
    assert way == pytest.approx([1.0 / 2.0, -0.5 * 2.0 / 2.0])


def test_a_climb_finds_the_top_and_delivers_the_mean_of_its_end():
    random, climb, top = np.random.default_rng(0), Climb(np.zeros(3)), np.array([0.5, -0.3, 0.0])
    for number in range(150):
        steps = random.standard_normal((8, 3))
        sides = (climb.centre + sign * 0.1 * step for step in steps for sign in (1.0, -1.0))
        returns = np.array([-((side - top) ** 2).sum() for side in sides])
        climb.step(gradient(steps, returns, 0.1), 0.03)
        if number >= 100:
            climb.count()
    assert climb.delivered == pytest.approx(top, abs=0.05)


def test_a_step_is_as_long_as_the_way_up_is_steep_on_average():
    climb = Climb(np.zeros(2))
    climb.step(np.array([3.0, -4.0]), 0.1)
    steep = np.sqrt((9.0 + 16.0) / 2.0)
    assert climb.centre == pytest.approx([0.1 * 3.0 / steep, -0.1 * 4.0 / steep])


def test_worlds_are_of_all_kinds_and_never_of_one_en_with_one_sn():
    kinds, random = load_next_config("universal").multi_node.kinds, np.random.default_rng(4)
    drawn = [some_kind(load("paper"), kinds, random) for _ in range(80)]
    ens, sns = ([getattr(each, kind).count for each in drawn] for kind in ("en", "sn"))
    assert max(ens) > 15
    assert max(sns) > 10
    assert (1, 1) not in zip(ens, sns, strict=True)
    assert {each.name for each in drawn} - {"drawn"} <= set(kinds.named)
    assert len({each.name for each in drawn}) > 6
    assert len({each.workload.arrivals for each in drawn}) == 4
    assert any(each.backhaul.reach != "all" for each in drawn)
    assert any(each.background.rates[1] > 0 for each in drawn)
    assert any(each.utility.update_weight > 8 for each in drawn)
    own = [each for each in drawn if each.name == "drawn"]
    assert any(each.workload.demand.spread > 0.0 for each in own)
    assert any(not each.workload.demand.declared for each in own)
    assert any(len(set(each.workload.weights or ())) > 1 for each in own)
    assert any(each.workload.wave is not None for each in own)
    assert any(each.sn.speed is not None for each in own)
    assert any(each.sn.outage is not None for each in own)
    lossy = [each.status.loss_probability > 0.0 for each in drawn]
    assert 0.0 < np.mean(lossy) < 0.4


def test_a_load_is_of_what_others_leave():
    kinds = load_next_config("universal").multi_node.kinds
    kinds = kinds.model_copy(update={"load": (0.5, 0.5), "rate": (0.0, 1e6)})
    nodes = {"en.cycles_per_ms": [1000.0, 3000.0], "en.slots": [2, 1], "en.count": 2}
    nodes |= {"sn.cycles_per_ms": [8000.0], "sn.slots": [4]}
    found = _load(np.random.default_rng(0), kinds, nodes, load("paper"), taken=0.25)
    asked = 0.5 * (2000.0 + 3000.0 + 0.75 * 32_000.0)
    assert found["workload.rate"] == pytest.approx(1000.0 * asked / 650_000.0 / 2)


def test_the_objective_is_success_less_updates_or_net_utility():
    trainers = [
        MultiNodeTrainer(
            load("paper"),
            0,
            CONFIG.multi_node.model_copy(update={"objective": name, "update_cost_weight": 0.5}),
            1,
        )
        for name in ("success", "utility")
    ]
    found = {"success_rate": 0.9, "paid": 0.02, "net_utility_per_task": 48.0, "scale": 96.0}
    assert [each._earned(found) for each in trainers] == pytest.approx([0.89, 0.5])


def test_what_updates_cost_is_counted_in_successful_tasks_a_task():
    world = changed(load("campus"), {"episode.window_ms": 500.0, "episode.warmup_ms": 100.0})
    tasks = episode(world, 0, 0)
    [[found]] = played([(world, tasks)], [constant(START)], 0)
    counted = int((tasks.tasks.time_ms >= 100.0).sum())
    spent = found["update_cost_rate"] * 0.4
    assert spent > 1.0
    assert found["paid"] == pytest.approx(spent * 4.0 / 96.0 / counted)
    assert found["scale"] == pytest.approx(96.0)


def test_any_number_of_processes_finds_the_same_bits():
    # More processes than candidates: some have nothing to play.
    trainers = [MultiNodeTrainer(load("paper"), 3, CONFIG.multi_node, 2, each) for each in (1, 5)]
    curves = [[each.train_generation(number) for number in (0, 1)] for each in trainers]
    assert curves[0] == curves[1]
    one, other = (each.saved() for each in trainers)
    for name, value in one.items():
        np.testing.assert_array_equal(value, other[name], name)


def _train(folder, until=None):
    def told(episode, curves):
        if episode == until and curves:
            raise InterruptedError

    try:
        session.train(folder, "cosmo-next", [Run(load("paper"), 3)], CONFIG, True, on_episode=told)
    except InterruptedError:
        return


def test_an_interrupted_training_ends_with_the_same_bits(tmp_path, monkeypatch):
    monkeypatch.setattr(session, "_CHECKPOINT_S", 0.0)
    _train(tmp_path / "whole")
    _train(tmp_path / "parts", until=1)
    _train(tmp_path / "parts")
    one, other = (read_arrays(tmp_path / name / "agents.npz") for name in ("whole", "parts"))
    assert one.keys() == other.keys()
    for name, value in one.items():
        np.testing.assert_array_equal(value, other[name], name)
    agents = load_controller(tmp_path / "whole").agents
    multi_node = agents.multi_node
    assert multi_node.scaled.middle != START
    assert any(multi_node.scaled.by_balance)
    assert agents.ranges[1].ens == (1, 4)


def test_it_is_one_run():
    runs = [Run(load("paper"), seed) for seed in (0, 1)]
    with pytest.raises(InputError, match="is one run: add --seeds 0"):
        session.learned_method("cosmo-next").fetched("trainer")(runs, CONFIG)


def test_the_controller_of_the_package_is_of_the_preset():
    told = load_controller(shipped("cosmo-next")).description
    recorded, preset = told["training"], load_next_config("universal").model_dump(mode="json")
    begun, begins = (each["multi_node"].pop("start") for each in (recorded, preset))
    assert recorded == preset
    # The preset begins with the slopes that were set by hand after this training (see its card).
    assert {name for name in begins if begun[name] != begins[name]} == {"subset_size"}
    assert [run["seed"] for run in told["runs"]] == [0]


def test_training_begins_where_the_configuration_says():
    config = load_next_config("universal").multi_node
    begun = MultiNodeTrainer(load("paper"), 0, config, 1).scaled
    for place, row in enumerate(begun):
        for name, value in row._asdict().items():
            assert value == pytest.approx(config.start[name][place], rel=1e-9, abs=1e-12), name
    plain = MultiNodeTrainer(load("paper"), 0, config.model_copy(update={"start": {}}), 1).scaled
    assert plain.middle == pytest.approx(START)
    assert set(plain.by_size) == {0.0}


def test_a_start_with_a_parameter_missing_is_refused():
    start = dict(load_next_config("universal").multi_node.start)
    del start["drain_rate"]
    fields = load_next_config("universal").multi_node.model_dump() | {"start": start}
    with pytest.raises(ValueError, match="wrong: drain_rate"):
        MultiNodeConfig(**fields)
