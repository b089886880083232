"""Clocks, timers, processes and admin ports around a node, by hand."""

import asyncio
import json
import signal
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from cosmo.errors import EngineError
from cosmo.live import processes, realtime, wire
from cosmo.live.admin import Admin
from cosmo.live.bed import conduct
from cosmo.live.bed.plan import load_bed_plan
from cosmo.live.serving import Serving
from live.beds import row
from live.by_hand import made
from live.nodes import play


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
