"""The router of Ray Serve: by itself, with replicas that come and go, and in a real deployment."""

import asyncio
import subprocess
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from cosmo import InputError

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # Ray's own, while it is imported
    from cosmo.integrations.ray_serve import CosmoRouter, router_config

ROOT = Path(__file__).parents[1]
EXPECTED = {"slots": 2, "service_ms": 10.0, "deadline_ms": 1000.0, "rate": 100.0}


class Alone(CosmoRouter):
    """The router without Ray around it."""

    def __init__(self, method, **changed):
        self.initialize_state(method=method, **(EXPECTED | changed))
        self.requests = 0

    def route(self, replicas):
        """(id of a request, the replicas in order of preference)."""
        self.requests += 1
        request = SimpleNamespace(
            metadata=SimpleNamespace(internal_request_id=f"r{self.requests}"),
            future=asyncio.get_event_loop().create_future(),
        )
        self.last = request
        ranks = asyncio.get_event_loop().run_until_complete(
            self.choose_replicas([SimpleNamespace(replica_id=each) for each in replicas], request)
        )
        assert all(len(rank) == 1 for rank in ranks)
        return f"r{self.requests}", [rank[0].replica_id for rank in ranks]


@pytest.fixture(autouse=True)
def loop():
    made = asyncio.new_event_loop()
    asyncio.set_event_loop(made)
    yield made
    made.close()
    asyncio.set_event_loop(None)


def test_requests_of_a_replica_that_has_gone_do_not_pile_up():
    router = Alone("in-flight")
    for k in range(50):
        for _ in range(4):
            router.route([f"a{k}", "b"])
        assert len(router._sent) <= 4 + 2 * (k + 1)  # "b" answers none of its own either
        assert {sent.replica for sent in router._sent.values()} <= {f"a{k}", "b"}


def test_in_flight_sends_to_whoever_has_answered_most():
    router = Alone("in-flight")
    sent = dict(router.route("abc") for _ in range(6))
    assert sorted(rank[0] for rank in sent.values()) == ["a", "a", "b", "b", "c", "c"]
    assert all(sorted(rank) == ["a", "b", "c"] for rank in sent.values())
    for name, rank in sent.items():
        if rank[0] == "b":
            router.on_request_completed("b", name)
    assert [router.route("abc")[1][0] for _ in range(2)] == ["b", "b"]


def test_replicas_come_and_go_and_what_is_known_of_the_others_stays():
    router = Alone("in-flight")
    sent = [router.route("ab") for _ in range(4)]  # two each
    assert [router.route("abc")[1][0] for _ in range(2)] == ["c", "c"]  # the newcomer is idle
    assert "b" not in {router.route("ac")[1][0] for _ in range(4)}
    for name, rank in sent:
        router.on_request_completed(rank[0], name)
    # Where b was there is d now, with nothing in flight.
    assert [router.route("acd")[1][0] for _ in range(2)] == ["d", "d"]
    assert router.route([])[1] == []


def test_a_full_replica_sends_a_request_away_and_another_takes_it():
    router = Alone("in-flight")
    name, [first, second] = router.route("ab")
    router.on_request_routed(router.last, second, None)
    assert router._open == {first: 0, second: 1}
    router.on_request_completed(first, name)  # Ray ends the attempt that was sent away, too
    router._hear()
    assert router._open == {first: 0, second: 1}
    router.on_request_completed(second, name)
    router._hear()
    assert router._open == {first: 0, second: 0}
    assert router._sent == {}
    # The method has heard that its own choice came to nothing: both are idle to it.
    assert {router.route("ab")[1][0] for _ in range(2)} == {"a", "b"}


def test_a_request_that_is_cancelled_before_it_was_sent_is_no_longer_under_way(loop):
    router = Alone("in-flight")
    _, [first, _] = router.route("ab")
    router.last.future.cancel()
    loop.run_until_complete(asyncio.sleep(0))
    router.route("ab")
    router.route("ab")
    assert sorted(router._open.values()) == [1, 1]
    assert len(router._sent) == 2
    assert first in "ab"


def test_rejections_and_local_runs_go_to_the_least_busy_replica():
    for method in ("all-local", "in-flight"):
        # A deadline that cannot be met makes in-flight reject.
        router = Alone(method, deadline_ms=5.0)
        chosen = [router.route("abc")[1][0] for _ in range(6)]
        assert sorted(chosen) == ["a", "a", "b", "b", "c", "c"]
        assert router.redirected == 6


@pytest.mark.parametrize(
    "method", ["self-tracking", "leaky-bucket", "power-of-d", "cosmo-next", "prequal"]
)
def test_other_methods_decide_too_and_spread_requests(method, caplog):
    router = Alone(method)
    chosen = [router.route("abcd")[1][0] for _ in range(40)]
    assert not caplog.records  # no fault
    counts = np.unique(chosen, return_counts=True)[1]
    assert len(counts) >= 3  # power-of-d keeps to three of them
    assert counts.max() <= 20


def test_a_method_that_fails_does_not_stop_requests(monkeypatch, caplog):
    router = Alone("in-flight")
    router.route("ab")

    def fails(seen):
        raise InputError("in-flight: broken")

    monkeypatch.setattr(router._runner, "choose", fails)
    assert router.route("ab")[1]
    assert router.route("ab")[1]


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"slots": 0}, "slots = 0: must be a number greater than 0"),
        ({"slots": 1.5}, r"slots = 1.5: must be a whole number"),
        ({"service_ms": float("nan")}, "service_ms = nan: must be a number greater than 0"),
        ({"deadline_ms": "soon"}, "deadline_ms = 'soon': must be a number greater than 0"),
        ({"method": "in-flight:caution=-1"}, "caution"),
        ({"method": "least-loaded"}, "least-loaded"),
    ],
)
def test_bad_settings_are_one_line_before_anything_is_deployed(given, line):
    with pytest.raises(InputError, match=line):
        router_config(**given)


def test_real_replicas_with_unknown_service_times_beside_rays_own_router():
    """The benchmark in its small form: every request is answered, by both routers."""
    done = subprocess.run(
        [sys.executable, "benchmarks/ray_serve.py", "--small", "--methods", "in-flight"],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    rows = [line.split("|")[1:-1] for line in done.stdout.splitlines() if line.startswith("| ")][1:]
    assert [row[0].strip() for row in rows] == ["Ray's power of two choices", "in-flight"]
    assert all(0.0 <= float(row[1]) <= 1.0 for row in rows)
