"""What others can make of a node: its services by reflection, its decisions in the simulator."""

import asyncio
import json
import math

import grpc
import polars
import pytest
from google.protobuf import descriptor_pb2
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from cosmo import load, method
from cosmo.live import wire
from cosmo.live.orca import SERVICE
from cosmo.node import RAW
from cosmo.report.decision_log import read_decisions
from cosmo.report.recording import record
from cosmo.workload import episode
from live.nodes import pair, play, started

SLOW = {"deadline_ms": 60_000.0, "cycles": 100.0}


async def _reflected(address, **question):
    async with grpc.aio.insecure_channel(address) as channel:
        info = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo
        stream = info(iter([reflection_pb2.ServerReflectionRequest(**question)]))
        return await stream.read()


async def _services(address):
    told = await _reflected(address, list_services="")
    return {each.name for each in told.list_services_response.service}


def test_reflection_names_what_is_there_and_describes_it():
    async def scene():
        shown = {"reflection": True}
        async with pair(en=shown, sn={**shown, "orca": True}, method="all-local") as (
            here,
            there,
            _,
        ):
            own = "grpc.reflection.v1alpha.ServerReflection"
            assert await _services(here.address) == {"cosmo.live.v1.En", own}
            assert await _services(there.address) == {"cosmo.live.v1.Sn", SERVICE, own}
            told = await _reflected(here.address, file_containing_symbol="cosmo.live.v1.En")
            [file] = told.file_descriptor_response.file_descriptor_proto
            found = descriptor_pb2.FileDescriptorProto.FromString(file)
            assert found == wire.DESCRIPTION
            told = await _reflected(there.address, file_containing_symbol=SERVICE)
            assert len(told.file_descriptor_response.file_descriptor_proto) >= 1

    play(scene())


def test_reflection_is_off_unless_it_is_asked_for():
    async def scene():
        async with started("sn", {"method.use": "all-local"}) as there:
            with pytest.raises(grpc.aio.AioRpcError) as error:
                await _reflected(there.address, list_services="")
            assert error.value.code() == grpc.StatusCode.UNIMPLEMENTED

    play(scene())


def test_decisions_in_parquet_are_replayed_and_shown(tmp_path, cosmo):
    log = tmp_path / "decisions.parquet"

    async def scene():
        async with pair(en={"log.decisions": str(log)}, method="all-offload") as (_, _, client):
            calls = [client.submit(bytes(20_000 + k), **SLOW) for k in range(12)]
            await asyncio.gather(*calls)

    play(scene())
    rows = polars.read_parquet(log)
    assert len(rows) == 12
    assert rows["fate"].to_list() == ["DONE"] * 12
    assert sorted(rows["input_bytes"].to_list()) == [20_000.0 + k for k in range(12)]
    code, out, _ = cosmo("simulate", "--method", "self-tracking", "--trace", log, "--json")
    assert code == 0
    assert json.loads(out)["trace"] == str(log)
    # An episode of the same tasks, and its page.
    scenario = load("paper", [f"workload.trace={log}", "episode.warmup_ms=0"])
    found = record(scenario, method("self-tracking"), episode(scenario, 0, 0), 0)
    assert len(found["tasks"]["time"]) == 12
    (tmp_path / "episode.json").write_text(json.dumps(found))
    code, _, err = cosmo("view", tmp_path / "episode.json", "--out", tmp_path / "page.html")
    assert (code, err) == (0, f"open {tmp_path / 'page.html'}\n")
    assert "episode.json" in (tmp_path / "page.html").read_text()


def test_the_log_says_what_the_en_had_been_told(tmp_path):
    log = tmp_path / "decisions.csv"
    often = "periodic:interval_ms=5"

    async def scene():
        async with pair(en={"log.decisions": str(log)}, method=often) as (en, _, client):
            while math.isnan(en.node.core.caches[0].source_ms):
                await asyncio.sleep(0.01)
            await client.submit(b"x", **SLOW)

    play(scene())
    found = read_decisions(log)
    assert found["status"]
    [[numbers]], [[age]] = found["tasks"]["semantic"], found["tasks"]["age"]
    assert len(numbers) == RAW
    assert age >= 0.0
