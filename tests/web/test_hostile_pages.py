"""Served pages and those who mean harm: nodes that lie to `live watch`, requests that are none."""

import asyncio
import socket
import threading
from contextlib import contextmanager

import pytest
from served import asked, served

from cosmo import InputError
from cosmo.live.top import line_of, parsed, scraped
from cosmo.scenario import load, preset_names
from cosmo.web.playground import Playground, playground_application
from cosmo.web.settings import chosen_from, first_choice
from cosmo.web.watching import Site

OK = b"HTTP/1.1 200 OK\r\n\r\n"
GOOD = b'cosmo_tasks_in_node{node="n0"} 3\n'


@contextmanager
def _admin_port(*said, drip_s=0.0):
    """Says these bytes to whoever connects, with pauses, and hangs up."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve():
            listening.settimeout(0.05)
            while not over.is_set():
                try:
                    there, _ = listening.accept()
                except TimeoutError:
                    continue
                with there:
                    try:
                        there.recv(4096)
                        for part in said:
                            there.sendall(part)
                            if over.wait(drip_s):
                                break
                    except OSError:
                        pass

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"127.0.0.1:{listening.getsockname()[1]}"
        finally:
            over.set()
            thread.join()


def test_a_node_that_answers_is_read():
    with _admin_port(OK, GOOD) as address:
        [sample] = scraped(address)
        assert (sample.labels["node"], sample.value) == ("n0", 3.0)


@pytest.mark.parametrize(
    "said",
    [
        (b"",),
        (b"nonsense",),
        (b"HTTP/1.1 200",),
        (b"HTTP/1.1 500 Oh\r\n\r\n", GOOD),
        (b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9/\r\n\r\n", GOOD),
        (OK, b"\xff\xfe"),
        (OK, b"what is this {"),
        (OK, b'cosmo_tasks_in_node{node="' + b"x" * 300 + b'"} 3\n'),
        (OK, b'cosmo_tasks_in_node{node="\x1b[31m"} 3\n'),
        (OK, *[GOOD * 10_000] * 20),  # more than any node has to say
    ],
)
def test_a_node_that_says_nonsense_is_absent(said):
    with _admin_port(*said) as address:
        assert scraped(address) == []


def test_a_node_that_never_comes_to_an_end_is_absent_after_a_while(monkeypatch):
    monkeypatch.setattr("cosmo.live.top._PATIENCE_S", 0.3)
    with _admin_port(OK, *[b"#\n"] * 1000, drip_s=0.1) as address:
        assert scraped(address) == []
    for address in ("127.0.0.1:9", "nowhere", "127.0.0.1:x", "[::1]:9", ":"):
        assert scraped(address) == []


ODD = """
cosmo_method_info{node="e0"} 1
cosmo_method_info{node="e0",method="aov-gap"} 1
cosmo_tasks_in_node{node="e0"} NaN
cosmo_work_cycles{node="e0"} +Inf
cosmo_status_age_seconds{node="e0",sn="s0"} 1e308
cosmo_status_age_seconds{node="e0"} NaN
cosmo_status_value{node="e0",sn="s0"} 5
cosmo_status_value{node="e0",sn="s0",number="1"} -Inf
cosmo_statuses_total{node="e0",sn="s0"} 1e300
cosmo_decisions_total{node="e0",action="s0"} NaN
cosmo_timer_late_seconds_bucket{node="e0"} 5
cosmo_timer_late_seconds_bucket{node="e0",le="much"} 6
"""


def test_odd_numbers_of_a_node_are_unknown_and_leave_the_others_as_they_are():
    good = parsed('cosmo_tasks_in_node{node="s0"} 3\ncosmo_work_cycles{node="s0"} 2e6\n')
    found = Site().read({"a": parsed(ODD), "b": good})
    [en], [sn, *_] = found["ens"], found["sns"]
    assert (en["tasks"], en["work"]) == (None, None)
    assert (sn["name"], sn["tasks"], sn["work"]) == ("s0", 3.0, 2.0)
    [link, _] = found["links"]
    assert (link["age_ms"], link["told"], link["tasks"], link["statuses"]) == (None, None, 0, 0)
    assert line_of("a", parsed(ODD), [], 1.0)[0] == "e0"


def test_names_that_come_and_go_do_not_pile_up():
    site = Site()
    for k in range(50):
        text = f'cosmo_method_info{{node="e{k}",method="random"}} 1\n' + "".join(
            f'cosmo_status_age_seconds{{node="e{k}",sn="s{k}-{j}"}} 1\n' for j in range(3)
        )
        found = site.read({"a": parsed(text)})
        assert [each["name"] for each in found["ens"]] == [f"e{k}"]
        assert [each["name"] for each in found["sns"]] == [f"s{k}-{j}" for j in range(3)]
    assert len(site.read({"a": []})["sns"]) == 3  # those that it spoke of last stay


def test_a_method_that_a_node_names_is_not_run(tmp_path):
    (tmp_path / "own.py").write_text(
        f"open({str(tmp_path / 'ran')!r}, 'w')\n"
        "from cosmo import Method\nclass Mine(Method):\n    '''Mine.'''\n"
    )
    text = f'cosmo_method_info{{node="e0",method="{tmp_path / "own.py"}:Mine"}} 1\n'
    text += 'cosmo_status_age_seconds{node="e0",sn="s0"} 1\n'
    assert Site().read({"a": parsed(text)})["links"][0]["told"] is None
    assert not (tmp_path / "ran").exists()


# The playground.


def _told(**numbers):
    first = first_choice()
    return {"scenario": first.scenario, "methods": ["random"], "numbers": first.numbers | numbers}


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), -1, 10**300, 2.5, "3", None, True, []]
)
def test_sliders_take_numbers_that_can_be_played_and_no_others(value):
    with pytest.raises(InputError, match=r"ens = .*must be"):
        chosen_from(_told(ens=value))


def test_presets_that_are_not_offered_cannot_be_chosen():
    large = [name for name in preset_names() if load(name).en.count > 60]
    assert large
    with pytest.raises(InputError, match="must be one of"):
        chosen_from(_told() | {"scenario": large[0]})


def test_two_choices_at_once_give_the_pieces_of_one(tmp_path):
    async def scene():
        playground = Playground(tmp_path)
        await playground.begin(playground.chosen)
        loads = [20.0, 30.0, 40.0, 50.0]
        await asyncio.gather(*(playground.choose(_told(load=each)) for each in loads))
        playing = [each for each in asyncio.all_tasks() if "_play" in repr(each)]
        assert len(playing) == 1
        assert playground.number == 5
        await playground.end()

    asyncio.run(scene())


def test_a_world_that_fails_is_said_and_the_next_choice_is_played(tmp_path, monkeypatch):
    from cosmo.web.ahead import Ahead

    async def scene():
        playground = Playground(tmp_path)
        on = Ahead.on

        def fails(self, until_ms):
            raise ZeroDivisionError("by design")

        monkeypatch.setattr(Ahead, "on", fails)
        await playground.choose(_told())
        events = playground.events()
        while (event := await anext(events))["kind"] != "error":
            pass
        assert "by design" in event["error"]
        monkeypatch.setattr(Ahead, "on", on)
        await playground.choose(_told())
        while (event := await anext(events))["kind"] != "piece":
            pass
        await playground.end()

    asyncio.run(scene())


def test_exports_at_once_have_folders_of_their_own(tmp_path):
    async def scene():
        playground = Playground(tmp_path / "new")
        playground.chosen = chosen_from(_told(ens=1, sns=1))
        found = await asyncio.gather(*(playground.export({"until_ms": 50}) for _ in range(4)))
        assert len({each["folder"] for each in found}) == 4

    asyncio.run(scene())


def test_requests_that_are_none_and_sockets_that_say_nothing_leave_the_page_to_its_reader(tmp_path):
    def make(port, token):
        return playground_application(port, token, tmp_path)

    with served(make) as url:
        place = url.split("/")[2].split(":")
        place = place[0], int(place[1])
        silent = [socket.create_connection(place) for _ in range(200)]
        try:
            for line in (b"GET /\xff\xfe HTTP/1.1\r\n\r\n", b"\0" * 100, b"GET / HTTP/9.9\r\n\r\n",
                         b"GET " + b"/x" * 100_000, b"POST /a/choose HTTP/1.1\r\nHost: x\r\n"
                         b"Transfer-Encoding: chunked\r\n\r\nffffffffff\r\n"):  # fmt: skip
                with socket.create_connection(place) as there:
                    there.sendall(line)
            for body in (b"[" * 60_000, b"1" * 60_000, b'{"scenario": NaN}', b"\xff", b""):
                assert asked(url + "choose", body)[0] in (400, 422)
            for until_ms in (0, -1, 1e9, True, "1", None, [1]):
                assert asked(url + "export", {"until_ms": until_ms})[0] == 422
            assert asked(url)[0] == 200
        finally:
            for each in silent:
                each.close()
