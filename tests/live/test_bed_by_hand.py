"""The test bed and its ground, without daemons: bounds, addresses, times, tables by hand."""

import asyncio
import json
import signal
from contextlib import contextmanager
from types import SimpleNamespace

import grpc
import numpy as np
import pytest

from cosmo import InputError, load
from cosmo.errors import EngineError
from cosmo.live import load as generator
from cosmo.live import processes, realtime, wire
from cosmo.live.admin import Admin
from cosmo.live.bed import compare, conduct, namespaces
from cosmo.live.bed.generator import read_replayed, write_replayed
from cosmo.live.bed.plan import Unit, check_playable, load_bed_plan
from cosmo.live.bed.results import difference_told, sentence, standings
from cosmo.live.config import changed_config, load_config
from cosmo.live.items import Fate
from cosmo.live.load import Load, Replayed, replayed
from cosmo.live.serving import Serving
from cosmo.live.sites import configs_of, site_of_node
from cosmo.world.records import FP, TP
from live.beds import row
from live.by_hand import made
from live.nodes import play


def test_the_codes_of_fates_are_those_of_the_wire():
    told = wire.POOL.FindEnumTypeByName(f"{wire.PACKAGE}.Fate").values_by_name
    assert {fate.name: int(fate) for fate in Fate} == {
        name: value.number for name, value in told.items() if value.number
    }


# Files of daemons and plans.


@pytest.mark.parametrize(
    ("field", "least", "below"),
    [
        ("node.slots", 1, 0),
        ("node.cycles_per_ms", 1e-9, 0.0),
        ("method.seed", 0, -1),
        ("neighbours", 0, -1),
        ("links.hop_delay_ms", 0.0, -1e-9),
        ("behaviour.update_burst", 1.0, 0.99),
    ],
)
def test_the_least_that_a_daemon_s_file_may_say(field, least, below):
    config = load_config("en")
    changed_config(config, {field: least})
    with pytest.raises(InputError, match=field.replace(".", r"\.")):
        changed_config(config, {field: below})


def test_what_a_daemon_s_file_must_not_say():
    config = load_config("en")
    changed_config(config, {"behaviour.update_burst": 1e6})
    changed_config(config, {"handler.kind": "python", "handler.target": "a.b:c"})
    peer = config.peers[0].model_dump()
    for fields, why in (
        ({"behaviour.update_burst": 1e6 + 1}, "update_burst"),
        ({"handler.kind": "python", "handler.target": "a.b"}, "must look like module:function"),
        ({"handler.kind": "python", "handler.target": "a:b:c"}, "must look like module:function"),
        ({"handler.kind": "python"}, "must be given unless kind is emulate"),
        ({"handler.target": "a:b"}, "must be given unless kind is emulate"),
        ({"handler.kind": "command", "handler.target": "'"}, "must be a command line"),
        ({"tls.certificate": "c"}, "must come with key and authority"),
        ({"peers": []}, "must name at least one node"),
        ({"peers": [peer, peer]}, "every one must have a name of its own"),
        ({"peers": [{**peer, "address": ""}]}, "peers.0.address: an SN must have one"),
    ):
        with pytest.raises(InputError) as raised:
            changed_config(config, fields)
        assert why in str(raised.value)
    changed_config(load_config("sn"), {"orca": True, "tls.certificate": ""})


@pytest.mark.parametrize(
    ("field", "right", "wrong"),
    [
        ("rates", ["[1e6]", "[0.1]"], ["[1000001]", "[0]"]),
        ("seeds", ["[0]", "[9223372036854775807]"], ["[-1]", "[9223372036854775808]", "[]"]),
        ("scales", ["[0.1]", "[1000]"], ["[0.09]", "[1001]", "[]"]),
        ("episodes", ["1", "1000"], ["0", "1001"]),
        ("fifo", ["0", "50"], ["-1", "51"]),
        ("most_late_ms", ["1000", "0.1"], ["0", "1001"]),
        ("within", ["1", "0.1"], ["0", "1.1"]),
        ("methods", ['["all-local"]'], ["[]"]),
    ],
)
def test_the_bounds_of_a_plan(field, right, wrong):
    for value in right:
        load_bed_plan("one", [f"{field}={value}"])
    for value in wrong:
        with pytest.raises(InputError, match=field):
            load_bed_plan("one", [f"{field}={value}"])


def test_what_daemons_cannot_stand_for():
    check_playable(load("campus", ["en.count=16", "sn.count=16"]))
    for setting, why in (
        ("en.count=31", "has 33 nodes, must have at most 32"),
        ("fading.factors=[0.9, 1.0]", "has links that fade"),
        ("background.rates=[0, 1]", "background load"),
        ("status.loss_probability=0.1", "statuses that are lost or late"),
        ("status.jitter_ms=0.1", "statuses that are lost or late"),
    ):
        with pytest.raises(InputError, match=why):
            check_playable(load("campus", [setting]))


def test_what_a_node_is_told_of_itself_and_its_peers():
    peers = [
        {**load_config("en").peers[0].model_dump(), "name": f"sn{k}", "up_mbps": 10.0 + k}
        for k in range(2)
    ]
    for neighbours in (0, 2):
        config = changed_config(load_config("en"), {"neighbours": neighbours, "peers": peers})
        site = site_of_node(config)
        assert (len(site.en), len(site.sn)) == (1 + neighbours, 2)
        assert site.links.reach.tolist() == [[0, 1]] * (1 + neighbours)
        assert site.links.up_mbps.tolist() == [[10.0, 11.0]] * (1 + neighbours)
    site = site_of_node(changed_config(load_config("sn"), {"neighbours": 2}))
    assert (len(site.en), len(site.sn)) == (1, 1)
    assert site.links.reach.tolist() == [[0]]
    assert (site.links.up_mbps[0, 0], site.links.down_mbps[0, 0]) == (96.0, 192.0)


def test_daemons_of_a_scenario_have_ports_one_after_another():
    campus = load("campus", ["sn.count=3", "backhaul.reach=[[0, 2], [1], [0, 1, 2]]"])
    en = changed_config(load_config("en"), {"admin": "h:9000"})
    ens, sns = configs_of(campus, en, load_config("sn"))
    assert [each.listen for each in ens] == [f"127.0.0.1:{7100 + k}" for k in range(3)]
    assert [each.admin for each in ens] == ["h:9000", "h:9001", "h:9002"]
    assert [each.admin for each in sns] == [""] * 3
    assert {each.neighbours for each in (*ens, *sns)} == {2}
    reached = [[(peer.name, peer.address) for peer in each.peers] for each in ens]
    addresses = [("sn0", "127.0.0.1:7200"), ("sn1", "127.0.0.1:7201"), ("sn2", "127.0.0.1:7202")]
    assert reached == [[addresses[0], addresses[2]], [addresses[1]], addresses]
    told = [[peer.name for peer in each.peers] for each in sns]
    assert told == [["en0", "en2"], ["en1", "en2"], ["en0", "en2"]]
    free = changed_config(load_config("sn"), {"listen": "127.0.0.1:0"})
    assert {each.listen for each in configs_of(campus, en, free)[1]} == {"127.0.0.1:0"}
    for field in ("hops = 4", "hop_delay_ms = 3"):
        uneven = load("campus", [f"backhaul.links=[{{sn = 1, {field}}}]"])
        with pytest.raises(InputError, match=f"{field.split()[0]}: must be the same of all links"):
            configs_of(uneven, en, free)


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


# The machine.


def test_a_slowed_clock_and_its_timers(monkeypatch):
    seconds, asked = [100.0], []
    loop = SimpleNamespace(
        call_later=lambda delay, call: asked.append((delay, call)) or SimpleNamespace(cancel=int),
        call_soon=lambda call: asked.append((0.0, call)),
    )
    monkeypatch.setattr(realtime, "sys", SimpleNamespace(platform="elsewhere"))
    monkeypatch.setattr(realtime, "time", SimpleNamespace(monotonic=lambda: seconds[0]))
    host, rung = realtime.RealHost(loop, 2.0), []
    assert not host.fine
    host.at(10.0, 0, lambda: rung.append("later"))
    host.at(12.0, 0, lambda: rung.append("last"))
    host.at(4.0, 0, lambda: rung.append("first"))
    # 10 and 4 of the node's ms are 20 and 8 real ones; nobody asks for a later one.
    assert [delay for delay, _ in asked] == pytest.approx([0.020, 0.008])
    seconds[0] = 100.009
    assert host.now() == pytest.approx(4.5)
    asked[-1][1]()
    assert rung == ["first"]
    assert host.lateness_ms.most == pytest.approx(1.0)  # real ms
    assert asked[-1][0] == pytest.approx(0.011)
    seconds[0] = 100.030
    host.at(13.0, 0, lambda: rung.append("overdue"))
    asked[-1][1]()
    assert rung == ["first", "later", "last", "overdue"]
    host.forget_lateness()
    assert host.lateness_ms.count == 0
    descriptor = realtime._Descriptor.__new__(realtime._Descriptor)
    descriptor._spec, descriptor._given = realtime._Spec(0, 0, 0, 0), ()
    descriptor._settime = lambda *_: None
    for due_s, told in ((1.5, (1, 500_000_000)), (0.0, (0, 1)), (-3.0, (0, 1))):
        descriptor.set(due_s)
        assert (descriptor._spec.s, descriptor._spec.ns) == told


def test_a_daemon_is_heard_of_until_it_ends(tmp_path):
    daemon = processes.Running.__new__(processes.Running)
    daemon.config, daemon._log = SimpleNamespace(name="en0", listen="h:0"), tmp_path / "log"
    lines = [{"event": "serving", "port": 5}, {"event": "met"}, {"event": "met", "sn": "sn1"}]
    daemon._log.write_text("".join(f"{json.dumps(line)}\n" for line in lines) + "no JSON\nlast\n")
    daemon.process = SimpleNamespace(poll=lambda: 1)
    assert (daemon.port, daemon.address) == (5, "h:5")
    assert daemon.wait_for("met", 2)["sn"] == "sn1"
    assert daemon.wait_for("met") == {"event": "met"}
    with pytest.raises(EngineError, match=r"^en0: never said 'met' \(last\)$"):
        daemon.wait_for("met", 3)


def test_what_an_admin_page_shows():
    async def scene():
        node, host = made("en", use="periodic", scale=2.0)
        host.time_ms, core = 500.0, node.core
        core.status(0, 0, 420.0, [4.0, 0.5, 6.0, 7.0])
        core.station.admit(
            node._item(wire.Task(cycles=18_000.0, deadline_us=10**6), 500.0, None), 500.0
        )
        host.lateness_ms.add(3.0)
        for delay_ms in (10.0, 30.0):
            node.delay_ms.add(delay_ms)
        node.watching[0].round_trip_ms = 1.25
        page = Admin(node, host, node.config)
        shown = {(name, *labels.values()): value for name, labels, value in page._gauges()}
        assert shown["up_seconds",] == 1.0
        assert (shown["tasks_in_node",], shown["work_cycles",]) == (1.0, 18_000.0)
        assert (shown["free_bytes",], shown["timer_late_most_ms",]) == (190_000.0, 3.0)
        assert (shown["delay_ms", "0.5"], shown["delay_ms", "0.99"]) == (20.0, pytest.approx(29.8))
        assert (shown["status_age_ms", "sn0"], shown["round_trip_ms", "sn0"]) == (80.0, 1.25)
        assert (shown["belief", "sn0", "1"], shown["sn_silent", "sn0"]) == (0.5, 1.0)
        assert (shown["method_info", "periodic"], shown["on_fallback",]) == (1.0, 0.0)
        assert page._page("/healthz")[::2] == ("200 OK", "serving\n")
        node.drain()
        assert page._page("/healthz")[::2] == ("503 Service Unavailable", "draining\n")
        await node.close()

    play(scene())


def test_a_plan_is_conducted_scale_by_scale_and_gone_on_with(tmp_path, monkeypatch):
    plan = load_bed_plan(
        "one", ['methods=["all-local", "never"]', "scales=[5, 1]", "episodes=1", "rates=[220]"]
    )
    played, said, grounds = [], [], []

    def compared(unit, ground, most_late_ms):
        played.append((unit.scale, unit.method, most_late_ms))
        fields = {"seed": unit.seed, "scale": unit.scale, "episode": unit.episode}
        return row(unit.method, valid=unit.method == "never", **fields)

    @contextmanager
    def ground_of(plan, scale):
        grounds.append(scale)
        yield None

    monkeypatch.setattr(conduct, "compared", compared)
    monkeypatch.setattr(conduct, "_ground_of", ground_of)
    rows = conduct.conducted(plan, tmp_path / "out", said.append)
    late_ms = plan.most_late_ms
    assert played == [(scale, name, late_ms) for scale in (5, 1) for name in ("all-local", "never")]
    assert [(each.scale, each.method) for each in rows] == [told[:2] for told in played]
    assert grounds == [5, 1]
    assert said[0] == "1 of 4: all-local, 220 tasks/s, 5 times slower, run 100, episode 0"
    assert said[3] == "4 of 4: never, 220 tasks/s, real time, run 100, episode 0"
    played.clear()
    conduct.conducted(plan, tmp_path / "out")
    assert [name for _, name, _ in played] == ["all-local"] * 2  # what had no verdict
    assert [each.valid for each in conduct.read_rows(tmp_path / "out")].count(True) == 2


def test_a_bed_that_is_told_to_end_says_by_which_signal():
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as ended, conduct._told_to_end():
        signal.raise_signal(signal.SIGTERM)
    assert ended.value.code == 128 + signal.SIGTERM
    assert signal.getsignal(signal.SIGTERM) == before


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("GET /healthz HTTP/1.1", "200 OK"),
        ("GET /healthz", "200 OK"),
        ("POST /healthz HTTP/1.1", "404 Not Found"),
        ("GET", "404 Not Found"),
        ("", "404 Not Found"),
    ],
)
def test_requests_at_an_admin_port(line, code):
    lines, written, closed = [f"{line}\r\n".encode(), b"Host: here\r\n", b"\r\n"], [], []

    async def readline():
        return lines.pop(0)

    async def drain():
        pass

    reader = SimpleNamespace(readline=readline)
    writer = SimpleNamespace(write=written.append, drain=drain, close=lambda: closed.append(1))
    page = Admin(SimpleNamespace(draining=False), None, None)
    assert page.port == 0
    asyncio.run(page._answer(reader, writer))
    body = "serving\n" if code == "200 OK" else "not here\n"
    assert b"".join(written).decode() == (
        f"HTTP/1.1 {code}\r\nContent-Type: text/plain; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}"
    )
    assert closed == [1]


def test_cancelled_timers_are_cleared_away_when_they_are_many_and_most(monkeypatch):
    monkeypatch.setattr(realtime, "sys", SimpleNamespace(platform="elsewhere"))
    loop = SimpleNamespace(call_later=lambda *_: SimpleNamespace(cancel=int))
    for count, kept, cleared in ((600, 300, 301), (300, 256, 257)):
        host = realtime.RealHost(loop)
        timers = [host.at(1e6 + number, 0, int) for number in range(count)]
        for timer in timers[-kept:]:
            timer.cancel()
        assert (len(host._heap), host._cancelled) == (count, kept)
        timers[1].cancel()
        assert (len(host._heap), host._cancelled) == (count - cleared, 0)
        host.close()


def test_facts_of_a_node_that_stops():
    late = SimpleNamespace(quantile=lambda share: 100.0 * share + 0.00049, most=7.0)
    half = SimpleNamespace(host=SimpleNamespace(lateness_ms=late))
    core = SimpleNamespace(updates=3, suppressed=4)
    half.node = SimpleNamespace(core=core)
    timers = {"timer_p99_ms": 99.0, "timer_most_ms": 7.0}
    assert Serving.facts(half) == {**timers, "updates": 3, "updates_suppressed": 4}

    async def scene():
        half.node, _ = made("en", {"behaviour.guard": True})
        facts = Serving.facts(half)  # no decision has been timed
        assert facts == {**timers, "faults": 0, "guard_ms": 0.0}
        for took_ms in (1.0, 2.0):
            half.node.core.chooser.decision_ms.add(took_ms)
        half.node.overhead.add(5.0)
        assert Serving.facts(half)["decision_p99_ms"] == 1.99
        assert Serving.facts(half)["guard_ms"] == 5.0
        await half.node.close()

    play(scene())
