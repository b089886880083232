"""Parts of a node that must not fail alone: timers, handlers, the decision log, the watch."""

import asyncio
import math
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import grpc
import pytest
from benchmarks.raw_http2 import DATA, PREFACE, Raw, frame, headers, literal, message, settings

from cosmo.errors import InputError
from cosmo.live import serve_sn, wire
from cosmo.live.clock import DELIVERY
from cosmo.live.config import changed_config
from cosmo.live.daemon import reload
from cosmo.live.decisions import DecisionLog
from cosmo.live.handlers import Commands, Processes
from cosmo.live.realtime import RealClock
from cosmo.live.recent_outcomes import RecentOutcomes
from cosmo.live.tasks import Fate, Item
from live.nodes import config, pair, play, started, until
from slow import wait_until

SLOW = {"deadline_ms": 60_000.0, "cycles": 100.0}
EN0 = (("cosmo-en", "en0"),)


def test_a_timer_that_fails_does_not_take_the_others_along():
    async def scene():
        told, done, loop = [], [], asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, what: told.append(what["exception"]))
        clock = RealClock(loop)
        clock.at(1.0, DELIVERY, lambda: 1 // 0)
        clock.at(2.0, DELIVERY, lambda: done.append("later"))
        await until(lambda: done, "the other is called")
        clock.at(clock.now() + 1.0, DELIVERY, lambda: done.append("again"))
        await until(lambda: done == ["later", "again"], "and those after it")
        assert [type(each) for each in told] == [ZeroDivisionError]
        clock.close()

    play(scene())


def test_cancelled_timers_are_cleared_away_long_before_they_are_due():
    async def scene():
        clock, done = RealClock(asyncio.get_running_loop()), []
        for number in range(5000):
            timer = clock.at(1e9 + number, DELIVERY, lambda: None)
            timer.cancel()
            timer.cancel()  # once is enough, twice does no harm
        assert len(clock._heap) < 1000
        late = clock.at(5.0, DELIVERY, lambda: done.append(1))
        await until(lambda: done, "those that were not are called")
        late.cancel()
        assert clock._cancelled <= len(clock._heap)
        clock.close()

    play(scene())


def test_what_nobody_asks_for_is_not_kept_for_ever():
    recent = RecentOutcomes(500.0)
    for number in range(200_000):
        recent.note(float(number), 1.0, True)
    assert len(recent._notes) < 70_000
    assert recent.numbers(200_000.0) == (1.0, 1.0, 0.0)


KILLED_AT_WORK = """
import asyncio, os
from cosmo.live.handlers import _Process

async def main():
    process = _Process("live.work:sleep", asyncio.get_running_loop(), 10)
    process.give(("", b"", 1.0, 1.0), print)
    while not process.ready:
        await asyncio.sleep(0.01)
    print(process.process.pid, flush=True)
    await asyncio.sleep(0.2)
    os.kill(os.getpid(), 9)

if __name__ == "__main__":
    asyncio.run(main())
"""


def _command_of(number):
    """Nothing of a process that has ended, at whichever moment."""
    try:
        return Path(f"/proc/{number}/cmdline").read_bytes()
    except OSError:
        return b""


def test_a_function_at_work_ends_when_its_node_is_killed(tmp_path):
    (tmp_path / "node.py").write_text(KILLED_AT_WORK)
    paths = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    printed = tmp_path / "printed"
    with printed.open("w") as out:
        command, environment = [sys.executable, "node.py"], os.environ | {"PYTHONPATH": paths}
        done = subprocess.run(command, cwd=tmp_path, stdout=out, env=environment, check=False)
    assert done.returncode == -9
    at_work = int(printed.read_text())
    wait_until(lambda: not _command_of(at_work), "it has left")


def test_a_worker_that_dies_unnoticed_costs_its_next_task_and_no_more():
    async def scene():
        clock, ends = RealClock(asyncio.get_running_loop()), []
        worker = Processes("live.work:upper", 1, clock, 10)
        [process] = worker._all
        await until(lambda: process.ready, "it is ready")
        os.kill(process.process.pid, signal.SIGKILL)
        process.process.join()
        for content in (b"a", b"b"):  # before the event loop has heard of it, and after
            item = Item(0, 0.0, 60_000.0, 1.0, 1.0, input=content)
            worker.run(item, 0.0, ends.append, ends.append)
            count = len(ends) + 1
            await until(lambda count=count: len(ends) == count, "there is an end")
        assert ends == ["the worker process has died", b"B"]
        worker.run(Item(0, 0.0, 60_000.0, 1.0, 1.0, input=b"c" * 11), 0.0, ends.append, ends.append)
        await until(lambda: len(ends) == 3, "there is an end")
        assert ends[2] == "the output has more than 10 bytes"
        worker.close()
        clock.close()

    play(scene())


def test_what_a_command_has_started_ends_with_it(tmp_path):
    async def scene():
        clock, pid = RealClock(asyncio.get_running_loop()), tmp_path / "pid"
        worker = Commands(f"sh -c 'sleep 600 & echo $! > {pid}; wait'", clock, 10)
        item = Item(0, 0.0, 60_000.0, 1.0, 1.0)
        timer = worker.run(item, 0.0, lambda output: None, lambda reason: None)
        await until(lambda: pid.exists() and pid.read_text().strip(), "its child is there")
        child = int(pid.read_text())
        timer.cancel()
        await until(lambda: not _alive(child), "the child has ended")
        await until(lambda: not worker._running, "and so has the command")
        clock.close()

    play(scene())


def _alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_the_decision_log_is_written_beside_the_node_and_over_nothing(tmp_path, monkeypatch):
    said, path = [], tmp_path / "decisions.csv"
    path.write_text("of an earlier start")
    may_write = threading.Event()
    real = DecisionLog._write
    monkeypatch.setattr(DecisionLog, "_write", lambda *told: (may_write.wait(60.0), real(*told)))
    log = DecisionLog(str(path), 2, said.append)
    for number in range(8):  # nobody waits for the disk; what is too much for it is said
        log.add(Item(number, float(8 - number), 50.0, 10.0, 20.0), Fate.DONE, 9.0)
    assert said == ["2 rows are lost: 2 files are still to be written"] * 2
    may_write.set()
    log.close()
    assert path.read_text() == "of an earlier start"
    names = sorted(each.name for each in tmp_path.iterdir())
    assert names == ["decisions-1.csv", "decisions-2.csv", "decisions.csv"]
    rows = (tmp_path / "decisions-1.csv").read_text().splitlines()
    assert [row.split(",")[0] for row in rows] == ["time_ms", "0.0", "1.0"]
    broken = DecisionLog(str(tmp_path / "nowhere" / "decisions.csv"), 1, said.append)
    broken.add(Item(0, 0.0, 50.0, 10.0, 20.0), Fate.DONE, 9.0)
    broken.close()
    assert "cannot be written" in said[-1]


def test_nonsense_of_an_sn_costs_a_task_and_not_the_watch(monkeypatch):
    async def scene():
        async with pair(method="all-offload") as (here, there, client):
            connection = here.node.connections[0]
            tries = []

            def restarted(*_):
                tries.append("answered")
                raise ZeroDivisionError

            def dial(real=connection._dial):
                tries.append("dialled")
                if tries.count("dialled") == 2:
                    raise InputError("tls.key = 'gone': cannot be read")
                real()

            monkeypatch.setattr(here.node.core, "restarted", restarted)
            monkeypatch.setattr(connection, "_dial", dial)
            serve_sn._end(there.node._states[0].out)
            await until(lambda: tries.count("answered") >= 2, "some attempts have failed")
            assert tries.count("dialled") >= 3  # one of them in vain
            monkeypatch.undo()
            await until(lambda: not here.node.core.caches[0].silent, "they have met again")
            for answer, fate in ((b"\xff\xff", Fate.FAILED), (b"\x10\x4d", Fate.FAILED)):

                async def nonsense(task, timeout_s, answer=answer):
                    return wire.Result.FromString(answer)

                monkeypatch.setattr(connection, "execute", nonsense)
                assert (await client.submit(b"x", **SLOW)).fate == fate
            assert here.node.core.in_flight == 0

    play(scene())


def test_a_call_whose_channel_is_closed_is_lost_and_done_again():
    async def scene():
        slow = {"node.cycles_per_ms": 0.001}
        async with pair(method="all-offload", sn=slow) as (here, there, client):
            call = asyncio.create_task(client.submit(b"x", **SLOW))
            await until(lambda: there.node.core.station.requests == 1, "the SN has it")
            connection = here.node.connections[0]
            await connection._channel.close()
            answer = await call
            await until(lambda: connection.connected, "the EN has dialled again")
            assert (answer.fate, answer.where, answer.rerun) == (Fate.DONE, "local", True)
            assert here.node.core.in_flight == 0

    play(scene())


def test_an_sn_that_drains_answers_what_it_has_and_takes_nothing_more():
    async def scene():
        async with pair(method="all-offload", sn={"node.cycles_per_ms": 1.0}) as (
            here,
            there,
            client,
        ):
            call = asyncio.create_task(client.submit(b"x", deadline_ms=60_000.0, cycles=300.0))
            await until(lambda: there.node.core.station.requests == 1, "the SN has it")
            draining = asyncio.create_task(there.drain())
            await until(lambda: here.node.core.caches[0].silent, "the EN knows")
            assert (await client.submit(b"x", **SLOW)).where == "local"
            answer = await call
            assert (answer.fate, answer.where, answer.rerun) == (Fate.DONE, "sn0", False)
            await draining

    play(scene())


def test_a_watch_without_hello_is_ended_and_a_second_one_takes_over(monkeypatch):
    monkeypatch.setattr(serve_sn, "_HELLO_S", 0.05)

    async def scene():
        async with (
            started("sn", {"method.use": "all-offload"}) as there,
            grpc.aio.insecure_channel(there.address) as channel,
        ):
            watch = channel.stream_stream(
                wire.WATCH, wire.FromEn.SerializeToString, wire.FromSn.FromString
            )
            silent = watch(metadata=EN0)
            assert await silent.code() == grpc.StatusCode.DEADLINE_EXCEEDED
            hello = wire.FromEn(hello=wire.Hello(boot=1, name="en0", version=1))
            streams = []
            for _ in range(2):
                streams.append(watch(metadata=EN0))
                await streams[-1].write(hello)
                assert (await streams[-1].read()).HasField("welcome")
            assert await streams[0].read() is grpc.aio.EOF
            assert there.node.core.peers[0].here
            # One that does not read: its queue is full, and the stream ends all the same.
            out = there.node._states[0].out
            while not out.full():
                out.put_nowait(wire.FromSn())
            await streams[1].done_writing()
            while await streams[1].read() is not grpc.aio.EOF:
                pass
            await until(lambda: not there.node.core.peers[0].here, "it is gone")

    play(scene())


def test_inputs_that_come_too_slowly_or_too_many_at_once_are_refused():
    task = message(wire.Task(cycles=1.0, deadline_us=10**8).SerializeToString())

    async def scene():
        few = {"limits.receive_s": 0.2, "limits.calls": 3, "method.use": "all-offload"}
        async with started("sn", few) as there, Raw(there.address) as raw:
            streams = [headers(1 + 2 * k, wire.EXECUTE) for k in range(4)]
            torn = [frame(DATA, 0, 1 + 2 * k, task[:4]) for k in range(4)]
            await raw.send(PREFACE, settings(), *streams, *torn)
            codes = {}
            async for kind, _, stream, content in raw.frames():
                if kind == 1:
                    codes[stream] = literal(content, "grpc-status")
                if len(codes) == 4:
                    break
            # The first answer has its words in full, later ones only what differs.
            assert codes[7] == b"8"
            assert there.node.counters.get("turned_away_total", status="grpc") == 1
            assert there.node._incoming.total == 0

    play(scene())


def test_a_reload_takes_over_all_that_it_says_it_does(tmp_path):
    async def scene():
        told = {"log.decisions": str(tmp_path / "old.csv")}
        async with pair(method="periodic", en=told) as (here, there, client):
            await client.submit(b"x", **SLOW)

            def changed(serving, fields):
                reload(serving, lambda: changed_config(serving.config, fields))

            behaviour = {
                "behaviour.late": "finish",
                "behaviour.guard": True,
                "behaviour.most_guard_ms": 3.0,
                "behaviour.most_updates_per_s": 10.0,
                "behaviour.refresh_ms": 7.0,
                "limits.calls_per_s": 1e-3,
                "limits.burst": 1,
                "log.decisions": str(tmp_path / "new.csv"),
            }
            changed(here, behaviour)
            core = here.node.core
            assert not core.rules.drop_late
            here.node.overhead.add(50.0)
            assert core.guard_ms() == 3.0
            await until((tmp_path / "old.csv").exists, "the old log is whole")
            assert (await client.submit(b"x", **SLOW)).fate == Fate.DONE
            with pytest.raises(grpc.aio.AioRpcError):  # one call in the bucket, and no more
                await client.submit(b"x", **SLOW)
            changed(there, {**behaviour, "method.use": "aoi-threshold"})
            rules = there.node.core.rules
            assert (rules.drop_late, rules.least_gap_ms, rules.refresh_ms) == (False, 100.0, 7.0)
            before = there.node.core.decisions
            assert type(there.node.core.runner.method).__name__ != "Periodic"
            await until(lambda: there.node.core.decisions > before, "the new updater decides")
            for serving, fields, why in (
                (
                    there,
                    {"method.use": "all-local"},
                    "method.use = 'all-local': its statuses have 0 numbers",
                ),
                (there, {"limits.connections": 3}, "limits.connections: cannot change"),
                (here, {"method.use": "cosmo-next"}, "method"),
                (here, {"log.decisions": "a.txt"}, "log.decisions = 'a.txt'"),
            ):
                old = serving.config
                changed(serving, fields)
                assert f'"not reloaded", "why": "{why}' in serving.log._stream.getvalue()
                assert serving.config == serving.node.config == old
            # A method that goes by no status can take over at an EN, and give way again.
            changed(here, {"method.use": "all-local"})
            assert here.config.method.use == "all-local"
            changed(here, {"method.use": "periodic"})
            assert here.config.method.use == "periodic"

    play(scene())


def test_an_admin_port_that_is_taken_is_said_in_one_line():
    async def scene():
        async with started("sn", {"admin": "127.0.0.1:0"}) as there:
            taken = f"127.0.0.1:{there.admin.port}"
            with pytest.raises(InputError, match=f"admin = '{taken}': cannot be listened on"):
                async with started("sn", {"admin": taken}):
                    pass
        assert config("sn").limits.receive_s == 10.0

    play(scene())


def test_a_timer_may_be_beyond_what_the_system_can_wait_for():
    async def scene():
        clock, rung = RealClock(asyncio.get_running_loop()), []
        for time_ms in (1e300, math.inf, clock.now() + 1.0):
            clock.at(time_ms, DELIVERY, lambda time_ms=time_ms: rung.append(time_ms))
        await until(lambda: rung, "the one that is due")
        assert len(rung) == 1
        clock.close()

    asyncio.run(scene())
