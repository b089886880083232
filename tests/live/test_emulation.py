"""What a test bed does to nodes: demands in inputs, speeds, tenants, and SNs that are killed."""

import math
import struct

import grpc
import numpy as np
import pytest

from cosmo import load, simulate
from cosmo.control import play as play_episodes
from cosmo.live.emulation import SERVICE, Surroundings, marked_input, true_cycles_of
from cosmo.workload import Tasks, from_tasks
from cosmo.world.records import FP, TP
from live.nodes import play, started, until

EN = 18_000.0  # cycles per ms
TESTBED = {"handler.kind": "testbed", "method.use": "all-offload"}
# Whatever else the machine does: deadlines are long, and only least times are checked.
CALM = ["engine=live", "live.most_late_ms=1000", "episode.warmup_ms=0", "workload.rate=20"]
CLOCKS_MS = 20.0  # that clocks of processes may differ while both cores are busy
CALM += ["workload.deadline.clip_ms=[2000, 2000]", "sn.storage_bytes=1e8"]


def test_an_input_says_how_long_its_task_takes():
    found = marked_input(bytes(100), 2.5e5)
    assert len(found) == 100
    assert true_cycles_of(found) == 2.5e5
    assert true_cycles_of(marked_input(b"", 3.0)) == 3.0  # there is no room to keep the size


NO_CYCLES = [marked_input(b"", cycles) for cycles in (math.inf, math.nan, -1.0)]


@pytest.mark.parametrize("content", [b"", bytes(100), b"cycles: 1", *NO_CYCLES])
def test_an_input_that_does_not_say_so_takes_what_is_declared(content):
    assert math.isnan(true_cycles_of(content))


def test_a_node_outside_a_test_bed_takes_no_orders():
    async def scene():
        async with started("sn") as there, grpc.aio.insecure_channel(there.address) as channel:
            # In one piece: gRPC says INTERNAL if a stream is still written when the answer comes.
            call = channel.unary_unary(f"/{SERVICE}/Play")(struct.pack("<4d", 2, 0, 0, 0))
            assert await call.code() == grpc.StatusCode.UNIMPLEMENTED
            assert there.node.core.station.speed == 1.0
            assert math.isnan(there.node._true_cycles(marked_input(b"", 5.0)))

    play(scene())


@pytest.mark.parametrize(
    ("role", "numbers"),
    [("sn", (-1.0, 0, 0, 0)), ("sn", (math.nan, 1, 1, 1)), ("sn", (0, 1, -1, 1)),
     ("sn", (5e-324, 0, 0, 0)),
     ("sn", (1.0, 2.0)), ("en", (0, 1, 1, 1))],
)  # fmt: skip
def test_what_no_test_bed_would_say_is_refused(role, numbers):
    async def scene():
        message = struct.pack(f"<{len(numbers)}d", *numbers)
        sns = ["127.0.0.1:9"] if role == "en" else []
        async with (
            started(role, TESTBED, sns) as there,
            grpc.aio.insecure_channel(there.address) as channel,
        ):
            call = channel.stream_unary(f"/{SERVICE}/Play")(iter([message]))
            assert await call.code() == grpc.StatusCode.INVALID_ARGUMENT
            assert there.node.core.station.speed == 1.0
            assert there.node.core.station.requests == 0

    play(scene())


def test_a_node_that_comes_back_hears_its_speed_and_lost_tenants_never_come():
    async def scene():
        async with started("sn", TESTBED) as there:
            port, around = there.port, Surroundings(there.address)
            await around.ready()
            around.change_speed(0.5)
            around.arrive(50_000.0, 1e9, 2e9)
            station = there.node.core.station
            await until(lambda: station.speed == 0.5, "the speed has changed")
            await until(lambda: station.requests == 1, "the tenant's task is there")
            assert station.finish_ms(0) > 2e9 / (27_000.0 * 0.5)
        await until(lambda: around._out is None, "the end has been noticed")
        around.arrive(50_000.0, 1e9, 1e9)
        around.change_speed(0.25)
        async with started("sn", {**TESTBED, "listen": f"127.0.0.1:{port}"}) as there:
            station = there.node.core.station
            await until(lambda: station.speed == 0.25, "the new process knows its speed")
            assert station.requests == 0
            await around.close()

    play(scene())


def _events(folder, *rows):
    path = folder / "events.csv"
    path.write_text("\n".join(["time_ms,event,node,factor,input_bytes,cycles,true_cycles", *rows]))
    return f"workload.events='{path}'"


def test_work_on_daemons_takes_true_cycles_at_the_node_s_speed(tmp_path):
    """Declared are 1 ms at full speed; in truth it is 5 ms, and the EN runs at a twentieth."""
    ten, none = np.ones(10), np.zeros(10, np.int64)
    tasks = Tasks(
        np.arange(20.0, 500.0, 50.0), none, none, 3e4 * ten, EN * ten, 2000.0 * ten, 5.0 * EN * ten
    )
    settings = ["episode.window_ms=600", "en.slots=8", "en.storage_bytes=1e8"]
    scenario = load("paper", [*CALM, *settings, _events(tmp_path, "0,speed,en:0,0.05,,,")])
    [outcome] = play_episodes(scenario, "all-local", [from_tasks(scenario, tasks, 0, 0)])
    assert len(outcome.tasks) == 10
    delay = outcome.finished_ms - outcome.tasks.time_ms
    assert (delay >= 100.0 - CLOCKS_MS).all()  # of service; 20 if cycles were as declared
    assert (outcome.outcome == TP).all()


def test_an_sn_of_daemons_is_killed_and_back_and_tenants_take_its_slots(tmp_path):
    """Tenants hold all slots from 100 to 1100 ms; the SN is down from 1500 to 2200 ms."""
    tenants = ["100,task,sn:0,,50000,2.7e7,2.7e7"] * 4
    outage = ["1500,down,sn:0,,,,", "2200,up,sn:0,,,,"]
    settings = ["episode.window_ms=3500", "workload.arrivals=deterministic"]
    settings.append(_events(tmp_path, *tenants, *outage))
    [outcome] = simulate(load("paper", [*CALM, *settings]), "all-offload", seeds=100).outcomes
    finished, reached = outcome.finished_ms, outcome.decided_ms
    held = (reached > 200.0) & (reached < 900.0)
    assert np.nanmin(finished[held]) >= 1100.0 - CLOCKS_MS
    lost = outcome.outcome[(reached > 1700.0) & (reached < 2100.0)]
    assert len(lost) > 4
    assert (lost == FP).all()
    assert (outcome.outcome[reached > 3000.0] == TP).any()  # the process that has taken over
    # Lost tasks are missed at their deadlines.
    assert (finished[(reached > 1700.0) & (reached < 2100.0)] >= 3700.0 - CLOCKS_MS).all()
