"""What a picker makes of answers: endpoints that are left alone, the least busy one, estimates."""

import io
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest

from cosmo.live.logs import Log
from cosmo.live.picker.sources import endpoints_of
from cosmo.live.serving import Serving
from live.nodes import play, until
from live.picker_scenes import Proxy, answered, headers, picker, picker_config, with_subset


@asynccontextmanager
async def node_of(*lines, **fields):
    """The node of a picker with these endpoints; nobody is connected."""
    serving = Serving(picker_config(**fields), Log("picker", "warning", io.StringIO()))
    serving.node.take_endpoints(endpoints_of(lines, serving.config.picker))
    try:
        yield serving.node
    finally:
        await serving.stop(0)


def test_an_endpoint_that_fails_again_is_left_alone_for_twice_as_long(monkeypatch):
    async def scene():
        async with node_of("10.0.0.1:80", "10.0.0.2:80") as node:
            core, now_ms = node.core, [1000.0]
            monkeypatch.setattr(node.clock, "now", lambda: now_ms[0])

            def is_reachable_after(pause_ms):
                now_ms[0] += pause_ms
                core.cancel(node.decide(SimpleNamespace(answer=b"", alone=False), headers()))
                return core.is_reachable(0)

            for pause_ms in (200.0, 400.0, 800.0, 1600.0, 3200.0, 5000.0, 5000.0):
                core.broke(0, unreachable=True)
                assert not is_reachable_after(pause_ms - 1.0)
                assert is_reachable_after(1.0)
            core.worked(0)
            core.broke(0, unreachable=True)
            assert not is_reachable_after(199.0)
            assert is_reachable_after(1.0)

    play(scene())


def test_five_errors_in_a_row_count_and_an_answer_between_them_forgives():
    async def scene():
        async with node_of("10.0.0.1:80") as node:
            for _ in range(3):
                for _ in range(4):
                    node.core.broke(0, unreachable=False)
                assert node.core.is_reachable(0)
                node.core.worked(0)

    play(scene())


def test_an_error_of_an_endpoint_that_took_over_does_not_count_as_its_work():
    async def scene():
        async with (
            picker("static:10.0.0.1:80,10.0.0.2:80") as serving,
            Proxy(serving.address) as proxy,
        ):
            core = serving.node.core
            addresses = [each.endpoint.address for each in core.places]
            first, second = (addresses.index(f"10.0.0.{k}:80") for k in (1, 2))

            async def served(by, status):
                stream, _ = await proxy.ask(with_subset(headers(), "10.0.0.1:80"))
                await stream.write(answered(by, status))
                await stream.read()
                stream.cancel()

            def fails(times):
                for _ in range(times):
                    core.broke(second, unreachable=False)

            fails(4)
            await served("10.0.0.2:80", 503)  # would be the fifth
            assert core.is_reachable(second)
            await served("10.0.0.2:80", 200)  # forgives all of them
            fails(4)
            assert core.is_reachable(second)
            fails(1)
            assert not core.is_reachable(second)
            assert not core.is_reachable(first)  # the proxy could not reach it

    play(scene())


@pytest.mark.parametrize("part", ["offload", "core.on_choice"])
def test_a_request_that_fails_while_it_is_decided_on_takes_no_place(part):
    """Before the endpoint was counted, and after that."""

    async def scene():
        async with node_of("10.0.0.1:80") as node:

            def fails(*_):
                raise RuntimeError("no answer can be made")

            owner, _, name = f"node.{part}".rpartition(".")
            setattr(node if owner == "node" else node.core, name, fails)
            for _ in range(3):
                with pytest.raises(RuntimeError, match="no answer"):
                    node.decide(SimpleNamespace(answer=b"", alone=False), headers())
            assert (node.core.open, node.core._away, node.in_flight) == ([0], {}, 0)

    play(scene())


def test_the_least_busy_endpoint_is_by_what_a_slot_would_have_then():
    async def scene():
        async with node_of("10.0.0.1:80", "10.0.0.2:80 slots=4") as node:
            core = node.core
            for busy, chosen in (([0, 0], 1), ([0, 2], 1), ([0, 4], 0), ([1, 6], 1), ([1, 8], 0)):
                core.open[:] = busy
                assert [core.least_busy(1) for _ in range(8)] == [[chosen]] * 8
            assert core.least_busy(2) == [0, 1]
            assert core.least_busy(2, but=0) == [1]
            core.open[:] = [0, 0]

    play(scene())


@pytest.mark.parametrize(("slots", "learned"), [(1, 1), (2, 2)])
def test_times_are_learned_of_requests_that_waited_for_no_other(slots, learned):
    async def scene():
        async with (
            picker(f"static:10.0.0.1:80 slots={slots}") as serving,
            Proxy(serving.address) as proxy,
        ):
            node, seen = serving.node, []
            node.estimates.learn = lambda kind, cycles: seen.append((kind, cycles))
            streams = [(await proxy.ask(headers(x_cosmo_kind="a")))[0] for _ in range(3)]
            for stream in streams:
                await stream.write(answered("10.0.0.1:80"))
                await stream.read()
            await until(lambda: node.in_flight == 0, "all have ended")
            assert [kind for kind, _ in seen] == ["a"] * learned
            assert all(cycles > 0.0 for _, cycles in seen)
            for stream in streams:
                stream.cancel()

    play(scene())
