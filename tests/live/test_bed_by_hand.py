"""The test bed without daemons: verdicts, grounds and the generator of tasks, by hand."""

import asyncio
from types import SimpleNamespace

import grpc
import numpy as np
import pytest

from cosmo import InputError, load
from cosmo.errors import EngineError
from cosmo.live import load as generator
from cosmo.live.bed import compare, namespaces
from cosmo.live.bed.generator import read_replayed, write_replayed
from cosmo.live.bed.plan import Unit, load_bed_plan
from cosmo.live.bed.results import difference_told, sentence, standings
from cosmo.live.items import Fate
from cosmo.live.load import Load, Replayed, replayed
from cosmo.world.records import FP, TP
from live.beds import row

# Verdicts.


def test_a_standing_is_over_its_episodes():
    settings = ["episode.window_ms=2000", "episode.warmup_ms=0", "within=0.05"]
    plan = load_bed_plan("one", [*settings, 'methods=["priced-books", "all-local"]'])
    rows = [
        row(
            live=0.95, same=0.9, simulated_updates=100, live_updates=80, timer_p99_ms=0.5,
            decision_p99_ms=0.1, errors=1, faults=2, valid=False,
        ),
        row(live=0.85, same=0.8, episode=1, simulated=0.7, simulated_updates=60, errors=2),
    ]  # fmt: skip
    [found] = standings(plan, rows)
    assert (found.simulated, found.live, found.same) == pytest.approx((0.8, 0.9, 0.85))
    assert found.difference.mean == pytest.approx(0.1)
    assert (found.simulated_updates, found.live_updates) == (40.0, 42.5)  # in 2 s
    assert (found.timer_p99_ms, found.decision_p99_ms) == (0.5, 0.2)
    assert (found.faults, found.errors, found.episodes, found.refused) == (2, 3, 2, 1)
    assert not found.valid
    assert difference_told(found) == "+0.100"
    [three] = standings(plan, [row(live=0.95, episode=k) for k in range(3)])
    assert difference_told(three) == "+0.050 ± 0.000"
    assert (three.within(0.0499), three.within(0.05 + 1e-9)) == (False, True)
    late = [row(valid=False, scale=scale) for scale in (2.0, 3.0)]
    few = standings(plan, [row(), *late])
    assert sentence(plan, few).endswith(" 2 have no verdict: timers were late, or calls failed.")
    far = standings(plan, [row(), row("all-local", 0.7, scale=5.0)])
    assert sentence(plan, far) == (
        "Live nodes are within 0.05 of the simulator's share of tasks in time in 1 of 2"
        " comparisons; the largest difference is -0.200 (all-local, 220 tasks/s, 5 times slower)."
    )


def test_an_episode_is_compared_task_by_task_after_its_warm_up(monkeypatch):
    scenario = load("paper", ["episode.window_ms=40", "episode.warmup_ms=10"])
    unit = Unit(scenario, 2.0, "all-local", 100, 0)
    time_ms = np.array([9.0, 10.0, 20.0, 30.0, 35.0])
    tasks = SimpleNamespace(tasks=SimpleNamespace(time_ms=time_ms))
    outcome = SimpleNamespace(outcome=np.array([TP, TP, TP, FP, FP]), updates=7)
    fate = np.array([Fate.LATE, Fate.DONE, Fate.LATE, Fate.DONE, Fate.REFUSED], np.int8)
    told = Replayed(fate, [""] * 5, np.zeros(5), {}, late_p99_ms=3.0, late_most_ms=4.0)
    facts = [
        {"timer_p99_ms": 5.0, "timer_most_ms": 8.0, "decision_p99_ms": 0.5, "faults": 1.0},
        {"timer_p99_ms": 2.0, "timer_most_ms": 9.0, "updates": 4.0},
        {"timer_p99_ms": 2.0, "timer_most_ms": 1.0, "updates": 5.0},
    ]
    monkeypatch.setattr(compare, "episode", lambda *_: tasks)
    monkeypatch.setattr(compare, "_simulated", lambda *_: outcome)
    monkeypatch.setattr(compare, "_live", lambda *_: (told, facts))

    def compared(most_late_ms=2.5, **errors):
        told.errors = errors
        return compare.compared(unit, SimpleNamespace(name="loopback"), most_late_ms)

    found = compared()
    assert (found.tasks, found.simulated, found.live, found.same) == (4, 0.5, 0.5, 0.5)
    assert (found.simulated_updates, found.live_updates) == (7, 9)
    assert (found.timer_p99_ms, found.timer_most_ms) == (2.5, 4.5)  # in ms of the nodes
    assert (found.decision_p99_ms, found.faults, found.errors) == (0.5, 1, 0)
    assert found.valid
    assert not compared(2.49).valid
    failed = compared(UNAVAILABLE=2, INTERNAL=1)
    assert (failed.errors, failed.valid) == (3, False)


# Grounds.


def test_links_between_namespaces_let_through_what_they_should(monkeypatch):
    done = []
    monkeypatch.setattr(namespaces, "_run", lambda *words: done.append(" ".join(words)))
    ground = namespaces.Namespaces(0)
    ground.make({name: f"own-{name}" for name in ("ues", "en0", "sn0")})
    done.clear()
    ground.join("ues", "en0", None)
    assert not any("qdisc" in each for each in done)
    ground.join("en0", "sn0", (96.0, 48.0))
    slow = [each for each in done if "qdisc" in each]
    bits = [round(mbps * 1e6 * 1514 / 1448) for mbps in (96, 48)]
    assert slow == [
        f"tc -n own-en0 qdisc add dev sn0 root tbf rate {bits[0]}bit burst 3028 limit 8000000",
        f"tc -n own-sn0 qdisc add dev en0 root tbf rate {bits[1]}bit burst 3028 limit 8000000",
    ]
    assert ground.address("ues", "en0", 5) == "10.77.0.2:5"
    assert ground.address("en0", "sn0", 5) == "10.77.1.2:5"
    assert ground.address("sn0", "en0", 5) == "10.77.1.1:5"
    ground._addresses |= {(str(k), "x"): "" for k in range(2 * 257 - 4)}
    ground.join("ues", "sn0", None)
    assert ground.address("ues", "sn0", 5) == "10.78.1.2:5"


def test_the_network_of_a_scenario_is_slowed_down_with_its_time(monkeypatch):
    done, waited, kept = [], [], []
    keeper = SimpleNamespace(stdin=SimpleNamespace(close=int), wait=waited.append)
    monkeypatch.setattr(namespaces, "_run", lambda *words: done.append(" ".join(words)))
    monkeypatch.setattr(
        namespaces.subprocess, "Popen", lambda command, **_: kept.append(command) or keeper
    )
    uneven = load("campus", ["en.count=1", "backhaul.up_mbps=[[96, 48]]"])
    with namespaces.namespaces(uneven, 4.0) as ground:
        assert "chrt" not in ground.command("en0")
    rates = [each.split(" rate ")[1].split("bit")[0] for each in done if " rate " in each]
    down = uneven.backhaul.down_mbps
    wanted = [round(mbps / 4.0 * 1e6 * 1514 / 1448) for mbps in (96, down, 48, down)]
    assert rates == [str(each) for each in wanted]
    [command] = kept
    assert [name.rpartition("-")[2] for name in command[4:]] == ["ues", "en0", "sn0", "sn1"]
    assert waited == [20.0 + 2.0 * 4]


def test_what_a_command_of_the_network_says_is_passed_on(monkeypatch):
    def run(*_, **__):
        return SimpleNamespace(returncode=1, stderr="first\nsecond")

    monkeypatch.setattr(namespaces.subprocess, "run", run)
    with pytest.raises(InputError, match=r"\(ip netns add: first\)$"):
        namespaces._run("ip", "netns", "add", "x")

    def missing(*_, **__):
        raise FileNotFoundError

    monkeypatch.setattr(namespaces.subprocess, "run", missing)
    with pytest.raises(InputError, match="there is no ip here"):
        namespaces._run("ip", "netns")


def test_daemons_of_a_bed_keep_to_the_simulator_s_rules():
    unit = Unit(load("campus"), 2.0, "periodic", 7, 0)
    for slow_links in (False, True):
        ens, sns = compare.daemons_of(unit, SimpleNamespace(slow_links=slow_links))
        for each in (*ens, *sns):
            assert (each.scale, each.method.use, each.method.seed) == (2.0, "periodic", 7)
            assert (each.links.emulate, each.links.emulate_rate) == (True, not slow_links)
            rules = each.behaviour
            assert (rules.late, rules.refresh_ms, rules.most_updates_per_s) == ("finish", 0, 1000)
            assert rules.updates_per_task == rules.update_burst == 1e6
            assert each.limits.calls == 4096


def test_the_generator_has_a_minute_more_than_its_tasks_take(monkeypatch):
    scenario = load("paper", ["episode.window_ms=60", "episode.warmup_ms=0"])
    unit, tasks = Unit(scenario, 5.0, "all-local", 0, 0), compare.episode(scenario, 0, 0).tasks
    reached = compare.arrivals_at_ens(scenario, tasks).time_ms
    ground = SimpleNamespace(address=lambda *told: f"h:{told[2]}", command=lambda name: (name,))
    here = [SimpleNamespace(config=SimpleNamespace(name="en0"), port=9)]
    given, ends = [], SimpleNamespace(returncode=2, stderr="first\nlast\n")

    def run(command, timeout, **_):
        given.append((command, timeout))
        return ends

    monkeypatch.setattr(compare.subprocess, "run", run)
    with pytest.raises(EngineError, match=r"the load generator has failed \(last\)"):
        compare._replayed(unit, tasks, ground, here)
    [(command, timeout)] = given
    assert (command[0], command[-1]) == ("ues", "h:9")
    last_ms = reached[-1] + tasks.deadline_ms.max()
    assert timeout == pytest.approx(last_ms * 5.0 / 1000.0 + 60.0)
    ends.stderr, ends.returncode = "", 1
    with pytest.raises(EngineError, match=r"\(no reason given\)"):
        compare._replayed(unit, tasks, ground, here)


# The generator of tasks.


class _Host:
    """Rings every timer in the event loop's next turn, at its very time."""

    def __init__(self, loop, scale):
        self._loop, self._now, self.due, self.sent = loop, 0.0, [], []
        self.lateness_ms = SimpleNamespace(quantile=lambda share: share, most=7.0)
        _Host.last = self

    def now(self):
        return self._now

    def at(self, time_ms, kind, call):
        self.due.append(time_ms)
        self._now = time_ms
        self._loop.call_soon(call)

    def close(self):
        pass


class _Client:
    """Keeps what it is given; one EN does not answer."""

    one_way_ms = 0.004

    def __init__(self, address, scale):
        self._address = address

    async def submit(self, content, **told):
        _Host.last.sent.append((self._address, len(content), told))
        if self._address == "b":
            code = grpc.StatusCode.UNAVAILABLE
            raise grpc.aio.AioRpcError(code, None, None)
        return SimpleNamespace(fate=Fate.DONE, where="local", delay_ms=3.5)

    async def close(self):
        pass


def test_tasks_are_sent_when_they_reach_their_en_in_that_order(monkeypatch):
    monkeypatch.setattr(generator, "RealHost", _Host)
    monkeypatch.setattr(generator, "AsyncClient", _Client)
    four = np.array([1.0, 2.0, 3.0, 4.0])
    tasks = Load(
        time_ms=10.0 * four, reached_ms=np.array([31.0, 25.0, np.nan, 45.0]), residual_ms=four,
        en=np.array([0, 0, 0, 1]), input_bytes=100.0 * four, cycles=1000.0 * four,
        deadline_ms=50.0 + four,
    )  # fmt: skip
    found = asyncio.run(replayed(tasks, ["a", "b"], 1e-3))
    # 50 ms before the first, less 4 ms of the nodes' time on the way.
    assert _Host.last.due == pytest.approx([25.0 + 46.0, 31.0 + 46.0, 45.0 + 46.0])
    sent = _Host.last.sent
    assert [(where, size) for where, size, _ in sent] == [("a", 200), ("a", 100), ("b", 400)]
    told = sent[0][2]
    assert (told["deadline_ms"], told["cycles"], told["residual_ms"]) == (52.0, 2000.0, 2.0)
    # By the time of the second timer, which is set as the first rings.
    assert told["elapsed_ms"] == pytest.approx(31.0 + 46.0 - 50.0 - 20.0)
    assert found.fate.tolist() == [1, 1, 0, 0]
    assert found.where == ["local", "local", "", ""]
    np.testing.assert_array_equal(found.delay_ms, [3.5, 3.5, np.nan, np.nan])
    assert (found.errors, found.late_p99_ms, found.late_most_ms) == ({"UNAVAILABLE": 1}, 0.99, 7.0)


def test_what_the_generator_has_found_is_read_as_it_was_written(tmp_path):
    found = Replayed(
        np.array([1, 0], np.int8), ["sn0", ""], np.array([1.5, np.nan]), {"INTERNAL": 3}, 0.25, 0.5
    )
    write_replayed(found, tmp_path / "out.npz")
    back = read_replayed(tmp_path / "out.npz")
    assert (back.fate.tolist(), back.where, back.errors) == ([1, 0], ["sn0", ""], {"INTERNAL": 3})
    assert (back.late_p99_ms, back.late_most_ms) == (0.25, 0.5)
    np.testing.assert_array_equal(back.delay_ms, found.delay_ms)
