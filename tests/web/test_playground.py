"""The playground: pieces that add up to an episode, a guarded server, and its page in a browser."""

import json
import re
import signal
import socket
import subprocess
import sys

import pytest
from browsers import opened_browser
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select
from served import TOKEN, asked, served

from cosmo import InputError, load, method
from cosmo.report.recording import read_recording, record
from cosmo.web.ahead import Ahead
from cosmo.web.playground import playground_application
from cosmo.web.settings import (
    SEED,
    SLIDERS,
    Chosen,
    chosen_from,
    first_choice,
    offered,
    scenario_of,
)
from cosmo.workload import episode
from slow import LIMIT_S, usual_signals, wait_until

_SURPRISES = {"tenants": 90.0, "outages": 40.0, "spread": 0.5, "load": 150.0}


def _chosen(*methods, **numbers):
    first = first_choice()
    return Chosen(first.scenario, methods or first.methods, first.numbers | numbers)


def _told(chosen):
    return {
        "scenario": chosen.scenario,
        "methods": list(chosen.methods),
        "numbers": chosen.numbers,
    }


@pytest.mark.parametrize("name", ["aov-gap/estimate", "self-tracking", "cosmo-next", "piggyback"])
def test_pieces_add_up_to_what_a_recording_of_the_whole_has(name):
    scenario = scenario_of(_chosen(name, **_SURPRISES), 700.0)
    workload = episode(scenario, SEED, 0)
    Ahead(scenario, name, workload, SEED).on(300.0)  # what was played before leaves no trace
    ahead, until_ms = Ahead(scenario, name, workload, SEED), 0.0
    tables = {"tasks": {}, "tenants": {}}
    sent = {key: [] for key in ("en", "sn", "sent", "told")}
    taken = {}
    while not ahead.over:
        until_ms += 130.0
        piece = ahead.on(until_ms)
        for table, columns in tables.items():
            for place, k in enumerate(piece[table]["k"]):
                columns[k] = {key: value[place] for key, value in piece[table].items()}
        for key, column in sent.items():
            column += piece["statuses"][key]
        taken.update(dict(map(tuple, piece["statuses"]["taken"])))
    whole = record(scenario, method(name), workload, SEED)
    for table, columns in tables.items():
        assert sorted(columns) == list(range(len(columns)))
        for key, column in whole["map"][table].items():
            if table == "tenants":  # a recording also has those that were never admitted
                came = whole["map"]["tenants"]["reached"]
                column = [each for each, time in zip(column, came, strict=True) if time is not None]
            assert [columns[k][key] for k in range(len(columns))] == column, (table, key)
    assert [columns["action"] for _, columns in sorted(tables["tasks"].items())] == (
        whole["tasks"]["action"]
    )
    statuses = whole["map"]["statuses"]
    assert sent == {key: statuses[key] for key in sent}
    assert [taken.get(k) for k in range(len(sent["en"]))] == statuses["taken"]
    assert piece["numbers"]["net"] == pytest.approx(whole["metrics"]["net_utility_per_task"], 1e-3)
    assert piece["numbers"]["tasks"] == len(workload.tasks)


def test_sliders_that_nobody_moved_change_nothing_but_the_window():
    assert scenario_of(first_choice()) == load("campus")
    moved = scenario_of(_chosen(**_SURPRISES, ens=5.0, sns=4.0, price=0.0))
    assert (moved.en.count, moved.sn.count, moved.utility.update_weight) == (5, 4, 0.0)
    assert moved.background.rates == (45.0, 135.0)
    assert moved.workload.demand.spread == 0.5
    assert moved.sn.outage.up_ms + moved.sn.outage.down_ms == 1500.0
    failing = chosen_from({**_told(first_choice()), "scenario": "failing"})
    still = Chosen("failing", failing.methods, failing.numbers | {"outages": 0.0})
    assert scenario_of(still).sn.outage is None


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"scenario": "<b>"}, "scenario = '<b>': must be one of"),
        ({"methods": []}, "methods: must be one or two"),
        ({"methods": ["file.py:Class"]}, "method = 'file.py:Class': must be one of"),
        ({"numbers": {}}, "numbers: must be load, price"),
        ({"numbers": dict.fromkeys(SLIDERS, 1e9)}, "load = 1000000000.0: must be from 10 to 320"),
        ({"numbers": dict.fromkeys(SLIDERS, True)}, "load = True: must be from"),
        ({"more": 1}, "settings: must have scenario, methods and numbers"),
    ],
)
def test_what_cannot_be_played_is_refused_in_one_line(change, line):
    with pytest.raises(InputError) as error:
        chosen_from(_told(first_choice()) | change)
    assert str(error.value).startswith(line)
    assert "\n" not in str(error.value)


def test_there_are_four_stories_of_about_a_minute_that_can_be_played():
    found = offered()["stories"]
    assert [each["title"] for each in found] == [
        "Why freshness is not enough", "The herd", "Sparse senders", "An SN fails",
    ]  # fmt: skip
    for each in found:
        scenario_of(chosen_from(each["chosen"]))
        times = [step["after_s"] for step in each["steps"]]
        assert times[0] == 0
        assert 40 <= times[-1] <= 60
        assert times == sorted(times)


def test_the_stories_tell_what_happens():
    """What their words claim, of what is on the screen while they are told."""
    found = {}
    for story in offered()["stories"]:
        chosen = chosen_from(story["chosen"])
        scenario = scenario_of(chosen, 1500.0)
        worlds = [Ahead(scenario, n, episode(scenario, SEED, 0), SEED) for n in chosen.methods]
        found[story["title"]] = [world.on(1400.0)["numbers"] for world in worlds]
    left, right = found["Why freshness is not enough"]
    assert right["updates"] < left["updates"] / 6
    assert right["net"] > left["net"]
    assert right["success"] >= left["success"]
    left, right = found["The herd"]
    assert right["success"] > left["success"] + 0.2
    assert right["updates"] == 0 < left["updates"]
    left, right = found["Sparse senders"]
    assert right["updates"] == 0
    assert abs(right["success"] - left["success"]) < 0.03
    assert right["net"] > left["net"]
    left, right = found["An SN fails"]
    assert right["success"] > left["success"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("exported")


@pytest.fixture(scope="module")
def url(folder):
    with served(lambda port, token: playground_application(port, token, folder)) as found:
        yield found


def test_only_who_has_the_token_and_calls_this_machine_by_name_gets_in(url):
    code, headers, text = asked(url)
    assert (code, "<title>CoSMO playground</title>" in text) == (200, True)
    policy = headers["Content-Security-Policy"]
    assert "unsafe-inline" not in policy
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
    assert not re.search(r"<script>|<style| style=| on\w+=", text)
    assert headers["Cache-Control"] == "no-store"
    for path in ("", "page.js", "page.css", "events"):
        assert asked(url.replace(TOKEN, "another") + path)[0] == 404
        assert asked(url + path, Host="evil.example")[0] == 404
    assert asked(url + "choose", {}, **{"Content-Type": "text/plain"})[0] == 415
    assert asked(url + "choose", b"x" * 70_000)[0] == 413
    assert asked(url + "choose", b"{")[0] == 400
    code, _, text = asked(url + "choose", {"scenario": "x"})
    assert (code, json.loads(text)) == (
        422, {"error": "settings: must have scenario, methods and numbers"},
    )  # fmt: skip
    assert socket.gethostbyname(url.split("/")[2].split(":")[0]) == "127.0.0.1"


@pytest.fixture(scope="module")
def browser(url):
    with opened_browser("1400,1100") as driver:
        driver.get(url)
        wait_until(lambda: _number(driver), "something is played")
        yield driver


def _number(driver):
    return int(driver.execute_script("return document.body.dataset.played || 0"))


def _player(driver, script):
    return driver.execute_script(
        f"const map = document.getElementById('map'), player = map.player; return {script}"
    )


def _slide(driver, name, value):
    driver.execute_script(
        "const input = document.getElementById(`slide-${arguments[0]}`);"
        "input.value = arguments[1]; input.dispatchEvent(new Event('input'));",
        name, value,
    )  # fmt: skip


def test_a_slider_changes_what_is_played(browser):
    before = _number(browser)
    _slide(browser, "sns", 5)
    wait_until(lambda: _number(browser) > before, "it is played")
    assert _player(browser, "player.views.map((view) => view.film.sns)") == [5, 5]
    start = _player(browser, "player.time()")
    wait_until(lambda: _player(browser, "player.time()") > start + 2, "time passes")
    shown = browser.find_element(By.ID, "numbers").text
    assert re.search(r"in time (\d|–)", shown)
    for view, name in (("a", "aoi-threshold/estimate"), ("b", "cosmo-next")):
        title = browser.find_element(By.ID, f"map-title-{view}").text
        assert title.startswith(name)
        assert re.search(r"so far (\d+ %|–) in time, \d+ statuses/s, net utility", title)


def test_many_moves_of_a_slider_end_with_the_last_one_and_never_jump_back(browser):
    browser.execute_script(
        "const out = document.getElementById('out-load'); window.shown = [];"
        "new MutationObserver(() => window.shown.push(Number(out.textContent)))"
        ".observe(out, { childList: true });"
    )
    for value in range(60, 201, 10):
        _slide(browser, "load", value)
    wait_until(
        lambda: _player(browser, "map.playground.chosen.numbers.load") == 200,
        "the last one is played",
    )
    shown = browser.execute_script("return window.shown")
    assert shown == sorted(shown)
    assert shown[-1] == 200
    assert browser.execute_script("return document.getElementById('slide-load').value") == "200"


def test_two_methods_one_method_and_another_site(browser):
    before = _number(browser)
    Select(browser.find_element(By.ID, "method-b")).select_by_value("")
    films = "player.views.filter((view) => view.film).length"
    wait_until(
        lambda: _number(browser) > before and _player(browser, films) == 1, "one method is played"
    )
    before = _number(browser)
    Select(browser.find_element(By.ID, "method-b")).select_by_value("power-of-d")
    wait_until(lambda: _number(browser) > before, "two methods are played")
    before = _number(browser)
    Select(browser.find_element(By.ID, "scenario")).select_by_value("shared-sn")
    wait_until(lambda: _number(browser) > before, "another site is played")
    tenants = "return document.getElementById('out-tenants').textContent"
    wait_until(lambda: browser.execute_script(tenants) > "0", "its settings are on the sliders")


def test_a_story_is_told_and_survives_a_reload(browser):
    before = _number(browser)
    [button] = [
        each for each in browser.find_elements(By.CSS_SELECTOR, "#stories button")
        if each.text == "The herd"
    ]  # fmt: skip
    button.click()
    ens = "player.views[0].film.ens"
    wait_until(lambda: _number(browser) > before and _player(browser, ens) == 8, "it is played")
    assert browser.find_element(By.ID, "story").text.startswith("1/5 Eight edge nodes")
    _player(browser, "player.seek(400)")  # a story goes on as the map does
    story = browser.find_element(By.ID, "story")
    wait_until(lambda: story.text.startswith("2/5"), "its second step")
    browser.refresh()
    wait_until(lambda: _number(browser), "it is played again after a reload")
    assert _player(browser, ens) == 8
    assert browser.execute_script("return document.getElementById('slide-ens').value") == "8"


def test_export_writes_what_is_on_the_screen(browser, folder, cosmo):
    wait_until(lambda: _player(browser, "player.time()") > 120, "some time has passed")
    browser.find_element(By.ID, "map-play").click()
    now = _player(browser, "player.time()")
    browser.find_element(By.ID, "export").click()
    told = browser.find_element(By.ID, "told")
    wait_until(lambda: told.text.startswith("Wrote"), "it is written")
    made = folder / "play-0"
    assert {each.name for each in made.iterdir()} == {
        "campus-played.toml", "compare.sh", "recording-0.json", "recording-1.json", "map.html",
    }  # fmt: skip
    command = (made / "compare.sh").read_text()
    assert command.startswith("cosmo compare aoi-threshold/estimate in-flight --scenario campus-")
    scenario = load(made / "campus-played.toml")
    assert (scenario.en.count, scenario.sn.count, scenario.workload.rate) == (8, 4, 140.0)
    assert cosmo("scenario", "check", made / "campus-played.toml")[0] == 0
    shown = _player(
        browser,
        "player.views.map((view) => view.film.at(player.time()))"
        ".map((moment) => moment.sn.map((node) => node.running.length + node.waiting.length))",
    )
    for view, counts in enumerate(shown):
        found = read_recording(made / f"recording-{view}.json")
        assert found["window_ms"] == pytest.approx(now)
        tasks, kept = found["tasks"], found["map"]["tasks"]
        for sn, count in enumerate(counts):
            inside = [
                k for k, action in enumerate(tasks["action"])
                if 0 < action <= found["sns"] and found["reach"][tasks["en"][k]][action - 1] == sn
                and kept["reached"][k] is not None
                and kept["reached"][k] <= now < kept["left"][k]
            ]  # fmt: skip
            assert len(inside) == count, (view, sn)


def test_what_a_server_says_is_text_and_no_request_goes_elsewhere(browser, url):
    hostile = '<img src=x onerror="document.title=1">'
    browser.execute_async_script(
        "const done = arguments[1]; fetch('choose', { method: 'POST', headers: { 'Content-Type':"
        " 'application/json' }, body: JSON.stringify({ scenario: arguments[0], methods: [],"
        " numbers: {} }) }).then((answer) => answer.json()).then((told) => {"
        " document.getElementById('told').textContent = told.error; done(); });",
        hostile,
    )
    assert hostile in browser.find_element(By.ID, "told").text
    assert browser.title == "CoSMO playground"
    names = browser.execute_script(
        "return performance.getEntriesByType('resource').map((each) => each.name)"
    )
    assert names
    assert all(name.startswith(url) for name in names)
    refused = browser.execute_async_script(
        "const done = arguments[0]; addEventListener('securitypolicyviolation', (event) =>"
        " done(event.effectiveDirective)); fetch('https://example.invalid').catch(() => {});"
    )
    assert refused == "connect-src"
    said = [each["message"] for each in browser.get_log("browser")]
    assert all("example.invalid" in each or "422" in each for each in said), said


def test_the_command_serves_until_it_is_interrupted(tmp_path):
    with usual_signals():
        process = subprocess.Popen(
            [sys.executable, "-m", "cosmo", "play", "--no-open", "--out", tmp_path / "out"],
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
    try:
        line = process.stderr.readline()
        address = re.fullmatch(r"open (http://127\.0\.0\.1:\d+/[\w-]{20,}/) .*\n", line)[1]
        code = wait_until(lambda: _code(address), "it answers")
        assert code == 200
        process.send_signal(signal.SIGINT)
        assert process.wait(LIMIT_S) == 130
        assert process.stderr.read().count("\n") == 1
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
    assert not (tmp_path / "out").exists()


def _code(address):
    try:
        return asked(address)[0]
    except OSError:
        return 0
