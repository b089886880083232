"""The map of the site: the engine's journal, what recordings make of it, and what a page draws."""

import json

import numpy as np
import pytest
from browsers import open_page, opened_browser
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from cosmo import load, method
from cosmo.control import play
from cosmo.node import REQUESTS
from cosmo.report.journeys import FATES, Journeys, stays_of
from cosmo.report.page import write_episodes
from cosmo.report.recording import read_recording, record
from cosmo.workload import episode
from cosmo.world import Watcher
from slow import wait_until

_SHORT = ("episode.window_ms=900", "episode.warmup_ms=100")
_NAME = '<img src=x onerror="document.title=1"> & %{x}'


class _Counts(Watcher):
    """Tasks in the nodes at each EN decision, as the kernel itself counts them."""

    wants_journal = True

    def __init__(self):
        self.seen = []

    def asked(self, tasks, truth):
        known = truth()
        self.seen.append(
            (float(tasks.time_ms[0]), int(tasks.en[0]), float(tasks.en_state[0, REQUESTS]),
             tasks.sn[0].copy(), known.sn_state[0, :, REQUESTS].copy(), known.sn_up[0].copy())
        )  # fmt: skip


@pytest.mark.parametrize("name", ["campus", "wild", "failing", "tenants"])
def test_the_journal_knows_how_many_tasks_each_node_has_at_every_decision(name):
    scenario = load(name, ("episode.window_ms=1500", "episode.warmup_ms=100"))
    counts, workload = _Counts(), episode(scenario, 3, 0)
    [outcome] = play(scenario, method("aov-gap/estimate"), [workload], 3, watchers=[counts])
    links, own = scenario.links, len(outcome.tasks)
    sn = np.full(own, -1)
    out = (outcome.action > 0) & (outcome.action <= links.most_sns)
    sn[out] = links.sn[links.first[outcome.tasks.en[out]] + outcome.action[out] - 1]
    where = np.concatenate([sn, workload.background.sn])
    en = np.concatenate([outcome.tasks.en, np.full(len(workload.background), -1)])
    stays = stays_of(outcome, where, scenario.en.count)
    assert len(counts.seen) > 20
    for time, own_en, inside, sns, there, up in counts.seen:
        present = (stays.reached <= time) & ~(stays.left <= time)
        # What is decided at this very instant comes after the look.
        present[:own] &= ~((outcome.decided_ms >= time) & (outcome.action == 0))
        assert np.count_nonzero(present & (where == -1) & (en == own_en)) == inside
        for number, count, is_up in zip(sns, there, up, strict=True):
            assert np.count_nonzero(present & (where == number)) == count
            assert is_up or count == 0
    order = np.diff(np.stack([stays.reached, stays.began, stays.left]), axis=0)
    assert (order[~np.isnan(order)] >= 0).all()


def test_nothing_is_written_down_unasked_and_nothing_changes_when_it_is():
    scenario = load("campus", _SHORT)
    watched, plain = (
        play(scenario, method("power-of-d"), [episode(scenario, 0, 0)], 0, watchers=watchers)[0]
        for watchers in ([_Counts()], [])
    )
    assert plain.journal is None
    assert watched.journal is not None
    for name in ("action", "outcome", "finished_ms"):
        np.testing.assert_array_equal(getattr(watched, name), getattr(plain, name))


def test_every_status_that_is_taken_is_one_that_was_sent_and_decisions_saw_it():
    scenario = load("campus", (*_SHORT, "status.loss_probability=0.3"))
    found = record(scenario, method("aoi-threshold"), episode(scenario, 0, 0), 0)
    sent = found["map"]["statuses"]
    lost = [time is None for time in sent["taken"]]
    assert 0.1 < np.mean(lost) < 0.5
    tasks = found["tasks"]
    for k in range(0, len(tasks["time"]), 7):
        now = found["map"]["tasks"]["decided"][k]
        for place, sn in enumerate(found["reach"][tasks["en"][k]]):
            held = [
                sent["sent"][n]
                for n, taken in enumerate(sent["taken"])
                if sent["en"][n] == tasks["en"][k] and sent["sn"][n] == sn
                and taken is not None and taken <= now
            ]  # fmt: skip
            assert now - max(held, default=0.0) == pytest.approx(tasks["age"][k][place], abs=0.1)


@pytest.fixture(scope="module")
def recordings():
    """One workload with tenants and outages, at a load that goes wrong now and then."""
    scenario = load(
        "campus",
        (*_SHORT, "workload.rate=190", "background.rates=[60, 200]", "sn.outage.up_ms=300",
         "sn.outage.down_ms=80"),
    )  # fmt: skip
    workload = episode(scenario, 1, 0)
    return [
        {"title": _NAME, "method": f"{name}{_NAME}"} | record(scenario, method(name), workload, 1)
        for name in ("aoi-threshold/estimate", "power-of-d")
    ]


@pytest.fixture(scope="module")
def page(recordings, tmp_path_factory):
    path = tmp_path_factory.mktemp("map") / "page.html"
    write_episodes(recordings, "CoSMO", path)
    return path


@pytest.fixture(scope="module")
def browser(page):
    with opened_browser("1400,1000") as driver:
        open_page(driver, page)
        yield driver


def _do(browser, script, *values):
    return browser.execute_script(
        f"const player = document.getElementById('map').player; {script}", *values
    )


def _expected(found, k, now):
    """(stage, share) of a task at a time, from the recording alone; None if it is nowhere."""
    shown, tasks = found["map"]["tasks"], found["tasks"]
    column = {name: shown[name][k] for name in shown}
    decided, ended, fate = column["decided"], tasks["finished"][k], FATES[column["fate"]]
    offloaded = 0 < tasks["action"][k] <= found["sns"]
    stages = [("air", column["generated"], decided)]
    if offloaded and fate == "refused":
        stages += [("up", decided, ended), ("down", ended, column["heard"])]
    elif offloaded and column["reached"] is not None:
        stages += [("up", decided, column["reached"]), ("wait", column["reached"], column["began"])]
        stages += [("run", column["began"], column["left"])]
        stages += [] if fate == "lost" else [("down", column["left"], ended)]
    elif column["reached"] is not None:
        stages += [("wait", column["reached"], column["began"])]
        stages += [("run", column["began"], column["left"])]
    for stage, start, end in stages:
        if start is not None and end is not None and start <= now < end:
            return stage, 0.0 if stage == "wait" else (now - start) / (end - start)
    return None


@pytest.mark.parametrize("view", [0, 1])
def test_tasks_and_queues_are_drawn_where_the_recording_has_them(browser, recordings, view):
    found = recordings[view]
    many = len(found["tasks"]["time"])
    sampled = np.random.default_rng(0).choice(many, 50, replace=False).tolist()
    checked = 0
    for now in np.linspace(60.5, 840.5, 10).tolist():
        told = _do(
            browser,
            "player.seek(arguments[0]); const view = player.views[arguments[1]], film = view.film;"
            "const { curve, x, en, sn } = view.map.anchors(), round = (p) => p.map(Math.round);"
            "const counts = (nodes) => nodes.map((n) => [n.running.length, n.waiting.length]);"
            "return { sn: counts(view.moment.sn), en: counts(view.moment.en), x, rows: [en, sn],"
            " places: arguments[2].map((k) => film.place(k, arguments[0])),"
            " drawn: arguments[2].map((k) => view.places.find((each) => each.task === k) || null),"
            " curves: arguments[2].map((k) => { const at = film.place(k, arguments[0]);"
            "  return at && ['up', 'down'].includes(at.stage) ? curve(film.en[k], film.sn[k],"
            "   at.stage === 'up' ? at.share : 1 - at.share) : null; }) };",
            now, view, sampled,
        )  # fmt: skip
        shown, tasks, tenants = found["map"]["tasks"], found["tasks"], found["map"]["tenants"]
        target = [
            found["reach"][tasks["en"][k]][tasks["action"][k] - 1]
            if 0 < tasks["action"][k] <= found["sns"] else -1
            for k in range(many)
        ]  # fmt: skip
        stays = [
            (sn, en, shown["reached"][k], shown["began"][k], shown["left"][k])
            for k, (sn, en) in enumerate(zip(target, tasks["en"], strict=True))
        ]
        stays += zip(tenants["sn"], [-1] * len(tenants["sn"]), tenants["reached"],
                     tenants["began"], tenants["left"], strict=True)  # fmt: skip
        here = [each for each in stays if each[2] is not None and each[2] <= now < (each[4] or 1e9)]
        for kind, place in (("sn", 0), ("en", 1)):
            for node, counts in enumerate(told[kind]):
                mine = [e for e in here if e[place] == node and (kind == "sn" or e[0] == -1)]
                running = sum(each[3] is not None and each[3] <= now for each in mine)
                assert counts == [running, len(mine) - running], (kind, node, now)
        for k, place, drawn, curve in zip(
            sampled, told["places"], told["drawn"], told["curves"], strict=True
        ):
            expected = _expected(found, k, now)
            if expected is None:
                assert place is None or place["stage"] in ("out", "gone")
                continue
            checked += 1
            assert (place["stage"], place["share"]) == (expected[0], pytest.approx(expected[1]))
            assert drawn["stage"] == expected[0]
            row = told["rows"][0][tasks["en"][k]]["y"]
            if curve:
                assert (drawn["x"], drawn["y"]) == pytest.approx(tuple(curve))
                assert told["x"]["enEnd"] <= drawn["x"] <= told["x"]["sn"]
            elif expected[0] == "air":
                assert told["x"]["device"] <= drawn["x"] <= told["x"]["en"]
                assert drawn["y"] == row
    assert checked >= 10


def test_time_plays_pauses_steps_and_the_panel_follows(browser, recordings):
    tasks = recordings[0]["map"]["tasks"]
    Select(browser.find_element(By.ID, "viewer-en")).select_by_value("all")
    _do(browser, "player.seek(0)")
    for k in range(3):
        browser.find_element(By.ID, "map-next").click()
        assert _do(browser, "return player.time()") == tasks["decided"][k]
        number = recordings[0]["tasks"]["task"][k]
        assert browser.find_element(By.ID, "task").text.startswith(f"task {number} at ")
    before = _do(browser, "return player.time()")
    browser.find_element(By.ID, "map-play").click()
    wait_until(lambda: _do(browser, "return player.time()") > before + 5, "time passes")
    browser.find_element(By.ID, "map-play").click()
    stopped = _do(browser, "return player.time()")
    assert not _do(browser, "return player.playing()")
    assert f"{stopped:.1f} ms:" in browser.find_element(By.ID, "map-summary").text
    slider = browser.find_element(By.ID, "map-time")
    slider.send_keys("n")  # keys of the map work from its time line
    assert _do(browser, "return player.time()") > stopped
    slider.send_keys(Keys.HOME)
    assert _do(browser, "return player.time()") == 0
    slider.send_keys(" ")
    wait_until(lambda: _do(browser, "return player.time()") > 0, "space plays")
    slider.send_keys(" ")


def test_the_worst_moments_are_those_with_the_most_regretted_decisions(browser, recordings):
    found = recordings[0]
    regretted = [
        found["map"]["tasks"]["decided"][k]
        for k, fate in enumerate(found["map"]["tasks"]["fate"])
        if FATES[fate] in ("late", "refused", "lost", "rejected")
        and any(found["tasks"]["feasible"][k]) and found["tasks"]["time"][k] >= found["warmup_ms"]
    ]  # fmt: skip
    most = max(sum(start <= time <= start + 100 for time in regretted) for start in regretted)
    _do(browser, "player.toMoment(0)")
    told = browser.find_element(By.ID, "map-moment").text
    count = int(told.split("ms: ")[1].split(" tasks")[0])
    assert abs(count - most) <= 1  # times are rounded
    assert "although a route was feasible" in told


def test_two_methods_are_in_step_and_the_second_can_go(browser):
    _do(browser, "player.seek(400)")
    both = "return player.views.filter((view) => view.film).map((view) => view.moment.time)"
    assert _do(browser, both) == [400, 400]
    Select(browser.find_element(By.ID, "map-beside")).select_by_value("")
    assert _do(browser, both) == [400]
    assert not browser.find_element(By.ID, "map-figure-b").is_displayed()
    Select(browser.find_element(By.ID, "map-beside")).select_by_value("1")
    assert browser.find_element(By.ID, "map-figure-b").is_displayed()


def test_names_are_text_and_nothing_leaves_the_page(browser):
    assert _NAME in browser.find_element(By.ID, "map-title-a").text
    assert browser.title == "CoSMO"
    assert browser.execute_script("return document.querySelectorAll('#map img').length") == 0
    assert browser.execute_script("return performance.getEntriesByType('resource')") == []
    assert browser.get_log("browser") == []


def test_with_reduced_motion_still_pictures_follow_one_another(page):
    with opened_browser() as driver:
        features = {"features": [{"name": "prefers-reduced-motion", "value": "reduce"}]}
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", features)
        open_page(driver, page)
        _do(driver, "player.seek(100); window.begun = player.frames.length; player.play(true)")
        wait_until(lambda: _do(driver, "return player.time()") > 125, "time passes")
        assert _do(driver, "return player.frames.length - begun") <= 6
        assert _do(driver, "return player.views[0].moment.pulses") == []


def test_a_site_of_many_nodes_is_drawn_in_groups_that_open(tmp_path):
    few = ("episode.window_ms=150", "episode.warmup_ms=20", "en.count=70", "sn.count=41")
    scenario = load("district", few)
    found = record(scenario, method("power-of-d"), episode(scenario, 0, 0), 0)
    path = tmp_path / "large.html"
    write_episodes([{"title": "large", "method": "", **found}], "CoSMO", path)
    rows = (
        "const map = player.views[0].map.anchors();"
        "return [map.en, map.sn].map((nodes) => new Set(nodes.map((each) => each.row)).size);"
    )
    with opened_browser() as driver:
        open_page(driver, path)
        assert _do(driver, rows) == [24, 14]
        Select(driver.find_element(By.ID, "map-open")).select_by_visible_text("EN 3–5")
        assert _do(driver, rows) == [26, 14]
        assert driver.get_log("browser") == []


def test_a_recording_without_journeys_has_the_charts_alone(recordings, tmp_path):
    bare = {name: value for name, value in recordings[0].items() if name != "map"}
    path = tmp_path / "bare.html"
    write_episodes([bare], "CoSMO", path)
    with opened_browser() as driver:
        open_page(driver, path)
        assert not driver.find_element(By.ID, "map").is_displayed()
        assert driver.execute_script("return document.getElementById('chart-viewer').data.length")
        assert driver.get_log("browser") == []


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda told: told.update(map=[]), "map is something else"),
        (lambda told: told["map"].pop("sn_slots"), "map.sn_slots is missing"),
        (lambda told: told["map"].update(tasks=3), "columns of map.tasks are missing"),
        (lambda told: told["map"]["tasks"].update(ue=[1]), "columns of map.tasks have different"),
        (lambda told: told["map"]["statuses"].pop("told"), "columns of map.statuses are missing"),
    ],
)
def test_a_map_with_another_shape_is_refused_in_one_line(recordings, tmp_path, change, why):
    told = json.loads(json.dumps(recordings[0]))
    path = tmp_path / "e.json"
    path.write_text(json.dumps(told))
    read_recording(path)
    change(told)
    path.write_text(json.dumps(told))
    with pytest.raises(Exception, match=why):
        read_recording(path)


def test_a_district_for_two_seconds_fits_into_a_page(tmp_path):
    scenario = load("district", ("episode.window_ms=2000",))
    found = record(scenario, method("aov-gap/estimate"), episode(scenario, 0, 0), 0)
    both = [tmp_path / "with.html", tmp_path / "without.html"]
    write_episodes([{"title": "district", "method": "", **found}], "CoSMO", both[0])
    write_episodes([], "CoSMO", both[1])
    large, small = (path.stat().st_size for path in both)
    assert large - small <= 3_000_000
    assert large < 4_000_000


def test_journeys_count_statuses_to_every_en():
    scenario = load("campus", _SHORT)
    kept = Journeys(scenario)
    found = record(scenario, method("aov-gap"), episode(scenario, 0, 0), 0)
    sent = found["map"]["statuses"]
    assert set(sent["en"]) == {0, 1, 2}
    assert set(sent["sn"]) == {0, 1}
    assert kept.nodes()["sn_slots"] == found["map"]["sn_slots"] == [4, 4]
