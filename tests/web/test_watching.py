"""Live nodes on the map: what is read from admin ports, nodes that come and go, and the page."""

import asyncio
import json

from admin_ports import admin_ports, en_text, sn_text
from browsers import opened_browser
from selenium.webdriver.common.by import By
from served import served

from cosmo.live.top import parsed
from cosmo.web.watching import Site, Watching, watching_application
from slow import LIMIT_S, wait_until

_HOSTILE = '<img src=x onerror="document.title=1">'


def test_beliefs_are_what_ens_hold_and_truth_is_what_sns_say():
    found = Site().read({"a": parsed(en_text("e0")), "b": parsed(sn_text("s0"))})
    assert [each["name"] for each in found["ens"]] == ["e0"]
    assert (found["sns"][0]["work"], found["sns"][0]["tasks"]) == (90.0, 3.0)
    [link] = found["links"]
    assert (link["en"], link["sn"], link["told"], link["age_ms"]) == (0, 0, 30.0, 250.0)
    assert (link["tasks"], link["statuses"], link["silent"]) == (5.0, 7.0, False)


def test_what_nobody_says_is_unknown():
    found = Site().read({"a": parsed(en_text("e0", "cosmo-next", told=(3.0,)))})
    assert found["links"][0]["told"] is None  # a status whose numbers mean something else
    assert found["sns"] == [
        {
            "name": "s0",
            "kind": "SN",
            "method": "",
            "tasks": None,
            "work": None,
            "here": False,
            "known": False,
        }
    ]
    assert Site().read({"a": parsed(en_text("e0", "unheard-of"))})["links"][0]["told"] is None
    assert Site().read({"a": []})["silent"] == ["a"]


def test_nodes_that_go_stay_as_absent_and_may_come_back():
    site = Site()
    both = {"a": parsed(en_text("e0")), "b": parsed(sn_text("s0"))}
    site.read(both)
    gone = site.read(both | {"b": []})
    assert (gone["sns"][0]["here"], gone["sns"][0]["known"]) == (False, True)
    assert site.read(both | {"c": parsed(sn_text("s1"))})["sns"][0]["here"]
    assert [(each["name"], each["here"]) for each in site.read(both | {"c": []})["sns"]] == [
        ("s0", True), ("s1", False),
    ]  # fmt: skip
    lost = site.read(both | {"a": []})
    assert (lost["ens"][0]["here"], lost["links"][0]["told"]) == (False, None)


def test_sns_that_nobody_speaks_of_any_more_are_gone():
    """Endpoints of a picker come and go without end."""
    site = Site()
    for number in range(50):
        found = site.read({"a": parsed(en_text("e0", sn=f"s{number}"))})
    assert [each["name"] for each in found["sns"]] == ["s49"]


def test_numbers_that_are_none_are_unknown():
    found = Site().read(
        {"a": parsed(en_text("e0", age_s="NaN")), "b": parsed(sn_text("s0", "+Inf"))}
    )
    assert found["sns"][0]["work"] is None
    assert found["links"][0]["age_ms"] is None
    json.dumps(found, allow_nan=False)


def test_the_page_follows_nodes_that_come_and_go():
    texts = (en_text(_HOSTILE.replace('"', "'")), sn_text("s0"))
    with admin_ports(*texts) as nodes:
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
            nodes[1].text = sn_text("s0", 2e6)
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
    with admin_ports(sn_text("s0")) as [node]:
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


def test_a_reading_is_told_once_although_timers_are_early(monkeypatch):
    sleep = asyncio.sleep
    monkeypatch.setattr(asyncio, "sleep", lambda seconds: sleep(seconds / 3.0))
    with admin_ports(sn_text("s0")) as [node]:
        asyncio.run(asyncio.wait_for(_told_once(node), LIMIT_S))


async def _told_once(node):
    stream = Watching([f"127.0.0.1:{node.port}"], 0.1).events()
    for _ in range(4):
        await anext(stream)
    assert node.asked == 4
    await stream.aclose()


def test_reading_faster_than_ten_times_a_second_is_refused(cosmo):
    code, _, err = cosmo("live", "watch", "127.0.0.1:1", "--every", "0.05", "--no-open")
    assert (code, err.count("\n")) == (2, 1)
    assert "--every = 0.05: must be from 0.1 to 3600, in seconds" in err
