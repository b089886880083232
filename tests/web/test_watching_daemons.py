"""The map of live nodes against daemons and a picker that run as processes of their own."""

import asyncio
import signal
import tempfile
import threading
from contextlib import contextmanager, suppress
from pathlib import Path

import grpc
from browsers import opened_browser
from selenium.webdriver.common.by import By
from served import served

from cosmo.live.client import Client
from cosmo.live.config import changed_config
from cosmo.live.processes import Running, nodes
from cosmo.live.top import scraped
from cosmo.web.watching import MAP_METRICS, Watching, watching_application
from live.nodes import config
from live.picker_scenes import Proxy, headers, picker_config
from slow import LIMIT_S, wait_until


@contextmanager
def _watched(addresses):
    """The page in a browser, and the table below its map."""
    make = lambda port, token: watching_application(port, token, addresses, 0.1)  # noqa: E731
    with served(make) as url, opened_browser("1300,900") as browser:
        browser.get(url)
        yield browser, browser.find_element(By.ID, "nodes")
        assert browser.get_log("browser") == []


def _admin(running):
    return f"127.0.0.1:{running.wait_for('serving')['admin']}"


def _reading(browser):
    return browser.execute_script("return document.getElementById('map-a').reading()")


@contextmanager
def _load(address):
    """More tasks at a time than the EN has slots, until this ends."""
    over = threading.Event()

    def send():
        with Client(address) as client:
            while not over.wait(0.02):
                with suppress(grpc.RpcError):
                    client.submit(b"x" * 2000, deadline_ms=20_000.0, cycles=3.6e6)

    threads = [threading.Thread(target=send) for _ in range(6)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()


def test_daemons_that_work_are_killed_and_come_back():
    told = {"method.use": "aov-gap", "admin": "127.0.0.1:0", "behaviour.silent_ms": 500.0}
    ens = [config("en", {**told, "name": "en0"}, ["127.0.0.1:1"])]
    with nodes(ens, [config("sn", {**told, "name": "sn0"})]) as ([here], [there]):
        addresses, sn_address = [_admin(here), _admin(there)], there.address
        with _watched(addresses) as (browser, table), _load(here.address):
            wait_until(lambda: "ms old" in table.text, "the EN holds a status")
            link = wait_until(
                lambda: next((e for e in _reading(browser)["links"] if e["tasks"]), None),
                "tasks go to the SN",
            )
            assert link["told"] is not None  # a raw state: its work can be read
            assert link["statuses"] > 0
            assert [each["kind"] for each in _reading(browser)["ens"]] == ["EN"]
            assert _reading(browser)["sns"][0]["work"] is not None
            there.process.kill()
            there.process.wait()
            wait_until(lambda: "absent" in table.text, "the SN is absent")
            assert _reading(browser)["ens"][0]["here"]
            back = {"listen": sn_address, "admin": addresses[1]}
            again = Running(changed_config(there.config, back), there.file.parent)
            try:
                wait_until(
                    lambda: (
                        "absent" not in table.text and not _reading(browser)["links"][0]["silent"]
                    ),
                    "it is back, and its EN hears it",
                )
                # A node that is held up answers nobody, and nobody else waits for it.
                again.process.send_signal(signal.SIGSTOP)
                wait_until(lambda: "absent" in table.text, "the SN does not answer")
                seen = int(browser.execute_script("return document.body.dataset.read"))
                wait_until(
                    lambda: (
                        int(browser.execute_script("return document.body.dataset.read")) > seen + 3
                    ),
                    "the EN is still read",
                )
                again.process.send_signal(signal.SIGCONT)
                wait_until(lambda: "absent" not in table.text, "it answers again")
            finally:
                again.process.kill()
                again.process.wait()


def test_a_picker_is_shown_with_endpoints_that_come_and_go(tmp_path):
    listed = tmp_path / "endpoints"
    listed.write_text("10.0.0.1:80\n10.0.0.2:80\n")
    fields = {"admin": "127.0.0.1:0", "picker__every_s": 0.1}
    running = Running(picker_config(f"file:{listed}", **fields), tmp_path)
    try:
        with _watched([_admin(running)]) as (browser, table):
            wait_until(lambda: "10.0.0.2:80" in table.text, "its endpoints are there")
            told = _reading(browser)
            assert [(each["kind"], each["work"]) for each in told["ens"]] == [("picker", None)]
            assert all(each["work"] is None and not each["known"] for each in told["sns"])
            asyncio.run(_one_request(running.address, table))
            listed.write_text("10.0.0.2:80\n10.0.0.3:80\n")
            wait_until(
                lambda: "10.0.0.3:80" in table.text and "10.0.0.1:80" not in table.text,
                "one has come, one has gone",
            )
            assert len(_reading(browser)["sns"]) == 2  # what is gone is not kept
    finally:
        running.end()


async def _one_request(address, table):
    async with Proxy(address) as proxy:
        stream, _ = await proxy.ask(headers())
        shown = "1 of its requests in flight"
        await asyncio.to_thread(wait_until, lambda: shown in table.text, "a request is in flight")
        await stream.done_writing()


def test_a_node_writes_down_only_what_is_asked_for():
    told = {"method.use": "aov-gap", "admin": "127.0.0.1:0"}
    with nodes([], [config("sn", told)]) as (_, [there]):
        few, all_of_it = scraped(_admin(there), MAP_METRICS), scraped(_admin(there))
    assert {each.name for each in few} == {"cosmo_tasks_in_node", "cosmo_work_cycles"}
    assert len(all_of_it) > 10 * len(few)


def test_an_en_of_many_sns_is_read_less_often():
    """What it has to write down grows with them."""
    many = [f"127.0.0.1:{port}" for port in range(1, 31)]
    told = {"method.use": "aov-gap", "admin": "127.0.0.1:0", "name": "en0"}
    with _lonely(config("en", told, many)) as running:
        reading = asyncio.run(asyncio.wait_for(_second(_admin(running)), LIMIT_S))
    assert len(reading["sns"]) == 30
    assert reading["every_ms"] == 600.0


async def _second(address):
    stream = Watching([address], 0.1).events()
    await anext(stream)
    found = await anext(stream)
    await stream.aclose()
    return found


@contextmanager
def _lonely(told):
    """A daemon whose SNs are not there."""
    with tempfile.TemporaryDirectory() as folder:
        running = Running(told, Path(folder))
        try:
            yield running
        finally:
            running.end()
