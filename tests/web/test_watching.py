"""Live nodes on the map: what is read from admin ports, nodes that come and go, and the page."""

import asyncio
import threading
from contextlib import contextmanager

from browsers import opened_browser
from selenium.webdriver.common.by import By
from served import served

from cosmo.live.top import parsed
from cosmo.web.watching import Site, Watching, watching_application
from slow import LIMIT_S, wait_until

_HOSTILE = '<img src=x onerror="document.title=1">'


def _en(name, method="aov-gap", told=(2, 0.0, 3e7, 1e5), age_s=0.25, sn="s0"):
    values = "".join(
        f'cosmo_status_value{{node="{name}",sn="{sn}",number="{k}"}} {value}\n'
        for k, value in enumerate(told)
    )
    return (
        f'cosmo_tasks_in_node{{node="{name}"}} 1\ncosmo_work_cycles{{node="{name}"}} 4e6\n'
        f'cosmo_method_info{{node="{name}",method="{method}"}} 1\n{values}'
        f'cosmo_status_age_seconds{{node="{name}",sn="{sn}"}} {age_s}\n'
        f'cosmo_sn_silent{{node="{name}",sn="{sn}"}} 0\n'
        f'cosmo_statuses_total{{node="{name}",sn="{sn}"}} 7\n'
        f'cosmo_decisions_total{{node="{name}",action="{sn}"}} 5\n'
    )


def _sn(name, work=9e7):
    return f'cosmo_tasks_in_node{{node="{name}"}} 3\ncosmo_work_cycles{{node="{name}"}} {work}\n'


def test_beliefs_are_what_ens_hold_and_truth_is_what_sns_say():
    found = Site().read({"a": parsed(_en("e0")), "b": parsed(_sn("s0"))})
    assert [each["name"] for each in found["ens"]] == ["e0"]
    assert (found["sns"][0]["work"], found["sns"][0]["tasks"]) == (90.0, 3.0)
    [link] = found["links"]
    assert (link["en"], link["sn"], link["told"], link["age_ms"]) == (0, 0, 30.0, 250.0)
    assert (link["tasks"], link["statuses"], link["silent"]) == (5.0, 7.0, False)


def test_what_nobody_says_is_unknown():
    found = Site().read({"a": parsed(_en("e0", "cosmo-next", told=(3.0,)))})
    assert found["links"][0]["told"] is None  # a status whose numbers mean something else
    assert found["sns"] == [
        {"name": "s0", "method": "", "tasks": None, "work": None, "here": False, "known": False}
    ]
    assert Site().read({"a": parsed(_en("e0", "unheard-of"))})["links"][0]["told"] is None
    assert Site().read({"a": []})["silent"] == ["a"]


def test_nodes_that_go_stay_as_absent_and_may_come_back():
    site = Site()
    both = {"a": parsed(_en("e0")), "b": parsed(_sn("s0"))}
    site.read(both)
    gone = site.read(both | {"b": []})
    assert (gone["sns"][0]["here"], gone["sns"][0]["known"]) == (False, True)
    assert site.read(both | {"c": parsed(_sn("s1"))})["sns"][0]["here"]
    assert [each["name"] for each in site.read(both)["sns"]] == ["s0", "s1"]


class _Node:
    """An admin port that says what it is told to say."""

    def __init__(self):
        self.text, self.asked, self.port = "", 0, 0

    async def answer(self, reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        self.asked += 1
        data = self.text.encode()
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(data)}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode() + data)
        await writer.drain()
        writer.close()


@contextmanager
def _nodes(*texts):
    """Admin ports on loopback, in a thread."""
    nodes = [_Node() for _ in texts]
    loop, ready = asyncio.new_event_loop(), threading.Event()
    over = asyncio.Event()

    async def run():
        servers = [await asyncio.start_server(node.answer, "127.0.0.1", 0) for node in nodes]
        for node, text, server in zip(nodes, texts, servers, strict=True):
            node.text, node.port = text, server.sockets[0].getsockname()[1]
        ready.set()
        await over.wait()
        for server in servers:
            server.close()
            await server.wait_closed()

    thread = threading.Thread(target=loop.run_until_complete, args=(run(),))
    thread.start()
    assert ready.wait(LIMIT_S)
    try:
        yield nodes
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()
        loop.close()


def test_the_page_follows_nodes_that_come_and_go():
    texts = (_en(_HOSTILE.replace('"', "'")), _sn("s0"))
    with _nodes(*texts) as nodes:
        addresses = [f"127.0.0.1:{node.port}" for node in nodes]
        make = lambda port, token: watching_application(port, token, addresses, 0.1)  # noqa: E731
        with served(make) as url, opened_browser("1200,900") as browser:
            browser.get(url)
            table = browser.find_element(By.ID, "nodes")
            wait_until(lambda: "90.0" in table.text, "the truth is there")
            assert "30.0, 250 ms old" in table.text
            assert _HOSTILE.replace('"', "'") in table.text
            nodes[1].text = "nothing of ours {"
            wait_until(lambda: "absent" in table.text, "the SN is absent")
            nodes[1].text = _sn("s0", 2e6)
            wait_until(lambda: "2.0" in table.text and "absent" not in table.text, "it is back")
            told = browser.execute_script("return document.getElementById('map-a').reading()")
            assert told["sns"][0]["work"] == 2.0
            assert browser.title == "CoSMO: live nodes"
            names = browser.execute_script(
                "return performance.getEntriesByType('resource').map((each) => each.name)"
            )
            assert all(name.startswith(url) for name in names)
            assert browser.get_log("browser") == []


def test_nodes_are_read_no_more_often_however_many_look():
    with _nodes(_sn("s0")) as [node]:
        asyncio.run(asyncio.wait_for(_first_of_three(node), LIMIT_S))
        assert node.asked == 1


async def _first_of_three(node):
    """Three listeners get their first reading; the next one is due in an hour."""
    watching = Watching([f"127.0.0.1:{node.port}"], 3600.0)
    streams = [watching.events() for _ in range(3)]
    readings = await asyncio.gather(*(anext(stream) for stream in streams))
    assert [each["sns"][0]["name"] for each in readings] == ["s0"] * 3
    for stream in streams:
        await stream.aclose()


def test_reading_faster_than_ten_times_a_second_is_refused(cosmo):
    code, _, err = cosmo("live", "watch", "127.0.0.1:1", "--every", "0.05", "--no-open")
    assert (code, err.count("\n")) == (2, 1)
    assert "--every = 0.05: must be from 0.1 to 3600, in seconds" in err
