"""Recorded episodes: what is in them, and the page that `cosmo view` makes of a file."""

import json
import math
import re
from types import SimpleNamespace

import numpy as np
import pytest
from browsers import open_page, opened_browser

from cosmo import InputError, load, method
from cosmo.live.decisions import DecisionLog
from cosmo.live.tasks import Fate, Item
from cosmo.report.decision_log import read_decisions
from cosmo.report.recording import read_recording, record
from cosmo.workload import episode
from slow import wait_until


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """An episode of a world with several ENs and SNs, and beside it one decided at random."""
    scenario = load("campus", ["episode.window_ms=600", "episode.warmup_ms=100"])
    folder = tmp_path_factory.mktemp("view")
    for number, name in enumerate(("aoi-threshold", "random")):
        found = record(scenario, method(name), episode(scenario, 0, 0), 0)
        (folder / f"episode-{number}.json").write_text(json.dumps(found))
    return folder / "episode-0.json"


def test_a_recording_has_belief_and_truth_of_every_sn(file):
    found = json.loads(file.read_text())
    tasks = found["tasks"]
    assert (found["ens"], found["sns"], found["reach"]) == (3, 2, [[0, 1]] * 3)
    assert len({len(column) for column in tasks.values()}) == 1
    for name in ("true", "believed", "age", "idle_true", "sn_requests"):
        assert {len(each) for each in tasks[name]} == {2}, name
    heard = [believed != [0.0, 0.0] for believed in tasks["believed"]]
    assert any(heard)
    assert set(found["metrics"]) >= {"success_rate", "fn_rate"}


def test_a_file_becomes_a_page_with_every_sn(cosmo, file):
    code, out, err = cosmo("view", file, file.with_name("episode-1.json"))
    assert (code, out) == (0, "")
    page = file.with_suffix(".html")
    assert f"open {page}" in err
    with opened_browser("390,800") as browser:
        open_page(browser, page)
        names = (
            "return document.getElementById('chart-viewer').data.map(t =>"
            " (t.meta ? `${t.meta}: ` : '') + t.name)"
        )
        shown = browser.execute_script(names)
        for sn in (0, 1):
            assert {f"SN {sn}: true backlog", f"SN {sn}: what the EN believes"} <= set(shown)
        links = "return [...document.querySelectorAll('nav a')].map(a => a.textContent)"
        assert browser.execute_script(links) == ["One episode", "About"]
        assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")
        # One SN, another EN, the next task.
        choose = (
            "const s = document.getElementById(arguments[0]); s.value = arguments[1];"
            "s.dispatchEvent(new Event('change'));"
        )
        browser.execute_script(choose, "viewer-sn", "1")
        assert "SN 0: true backlog" not in browser.execute_script(names)
        browser.execute_script(choose, "viewer-en", "2")
        browser.execute_script("document.querySelector('[data-task=\"1\"]').click()")
        card = browser.find_element("id", "task").text
        assert ", EN 2: " in card
        assert "SN 1: backlog believed" in card
        # Rejections that were not needed are explained, where there are any.
        note, mark = (
            browser.find_element("id", "viewer-note"),
            "rejected, a route was feasible",
        )
        assert mark not in browser.execute_script(names)
        assert "quota" not in note.text
        browser.execute_script(choose, "recording", "1")
        assert mark in browser.execute_script(names)
        assert re.search(
            r"\d+ tasks were rejected after the warm-up .* beyond the quota", note.text
        )
        assert browser.get_log("browser") == []


def _item(number, action, decided_ms, **more):
    return Item(number, generated_ms=1000.0 + 10.0 * number, deadline_ms=50.0, input_bytes=4e4,
                cycles=1e7, ue=number % 2, kind="<b>", action=action,
                decided_ms=1000.0 + decided_ms, **more)  # fmt: skip


def _logged(path):
    """Five tasks of an EN with two SNs, as a daemon writes them down."""
    wrong = []
    kept = DecisionLog(str(path), 100, wrong.append)
    kept.add(_item(0, 0, 1.0), Fate.DONE, 1040.0)
    offloaded = _item(1, 2, 11.0, rerun=True)
    heard = SimpleNamespace(
        time_ms=np.array([1011.0]), status_ms=np.array([[np.nan, 1003.5]]),
        status=np.array([[[0.0, 0.0], [3.0, 5.2e7]]]),
    )  # fmt: skip
    kept.note(heard, offloaded)
    heard.status[:] = 9.0  # what is told later is another matter
    kept.add(offloaded, Fate.LATE, 1070.0)
    kept.add(_item(2, 3, 21.0), Fate.REJECTED, 1021.0)
    kept.add(_item(3, 1, 31.0), Fate.REFUSED, 1033.0)
    kept.add(_item(4, -1, math.nan), Fate.EXPIRED, 1090.0)
    kept.close()
    assert not wrong
    return path


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_decision_log_is_a_recording_without_truth(tmp_path, suffix):
    found = read_decisions(_logged(tmp_path / f"decisions{suffix}"))
    tasks = found["tasks"]
    assert (found["live"], found["ens"], found["sns"], found["window_ms"]) == (True, 1, 2, 90.0)
    assert tasks["time"] == [0.0, 10.0, 20.0, 30.0, 40.0]
    assert tasks["outcome"] == ["DONE", "LATE", "REJECTED", "REFUSED", "EXPIRED"]
    # Counted by hand: the first leaves the EN when the last comes, the second stays at its SN.
    assert tasks["en_requests"] == [0, 1, 1, 1, 0]
    assert tasks["sn_requests"] == [[0, 0], [0, 0], [0, 1], [0, 1], [0, 1]]
    assert found["metrics"] == {"success_rate": 0.2}
    assert found["status"]
    assert tasks["age"] == [None, [None, 7.5], None, None, None]
    assert tasks["semantic"] == [None, [None, [3.0, 5.2e7]], None, None, None]


def test_a_decision_log_becomes_a_page(cosmo, tmp_path):
    log = _logged(tmp_path / "decisions.csv")
    code, out, err = cosmo("view", log)
    assert (code, out) == (0, "")
    page = log.with_suffix(".html")
    assert f"open {page}" in err
    with opened_browser() as browser:
        open_page(browser, page)
        shown = browser.execute_script(
            "return document.getElementById('chart-viewer').data.map(t => t.name)"
        )
        assert {"tasks in the EN", "tasks at SN 1", "done in time"} <= set(shown)
        assert not [name for name in shown if "believes" in name or "true" in name]
        assert "what is true" not in browser.find_element("id", "viewer").text
        card = browser.find_element("id", "task").text  # a task that went wrong, to begin with
        assert card.startswith("task 1 (<b>) of UE 1, at 10.0 ms: to SN 1 → done, but late")
        assert "decided after 1.0 ms, answered after 60.0 ms; its SN vanished" in card
        assert "SN 0: no status yet\nSN 1: status (3, 52000000), 7.5 ms old" in card
        assert {"age of SN 0's status", "age of SN 1's status"} <= set(shown)
        browser.execute_script("document.querySelector('[data-table=\"viewer\"]').open = true")
        rows = "return document.querySelectorAll('[data-table=\"viewer\"] tr').length"
        wait_until(lambda: browser.execute_script(rows) == 6, "the table has its rows")
        assert "20.0 % of them done in time" in browser.find_element("id", "viewer-note").text
        assert browser.get_log("browser") == []


_HEADER = "time_ms,ue,input_bytes,cycles,deadline_ms,kind,decided_ms,action,fate,ended_ms,rerun"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "is not a decision log (column time_ms is missing; a daemon writes one"),
        ("time_ms,ue\n1,2\n", "column input_bytes is missing"),
        (_HEADER, "has no task in it"),
        (f"{_HEADER}\n0,0,1,1,1,,0,x,DONE,1,0", "line 2: action = 'x': must be a whole number"),
        (f"{_HEADER}\n0,0,1,1,1,,0,0,WELL,1,0", "line 2: fate = 'WELL': must be one of DONE, LATE"),
        (f"{_HEADER}\n0,0,1,1", "line 2: 4 values, must be 11"),
        (f"{_HEADER},status_age_ms,status\n0,0,1,1,1,,0,0,DONE,1,0,1;2,3;x", "status = 'x': must"),
    ],
)
def test_other_tables_are_refused_in_one_line(cosmo, tmp_path, text, line):
    path = tmp_path / "x.csv"
    path.write_text(text)
    code, _, err = cosmo("view", path)
    assert (code, err.count("\n")) == (2, 1)
    assert line in err
    assert [each.name for each in tmp_path.iterdir()] == ["x.csv"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("{", "is not a recorded episode (not JSON in UTF-8)"),
        ("[]", "is not a recorded episode (it has no tasks and updates)"),
        ('{"tasks": {}, "updates": {}}', "has format 1, this version reads 2; record it again"),
        ('{"format": 2, "tasks": {"time": [1]}, "updates": {}}', "window_ms is missing"),
    ],
)
def test_other_files_are_refused_in_one_line(cosmo, tmp_path, text, line):
    path = tmp_path / "x.json"
    path.write_text(text)
    code, _, err = cosmo("view", path)
    assert (code, err.count("\n")) == (2, 1)
    assert line in err
    assert [each.name for each in tmp_path.iterdir()] == ["x.json"]


@pytest.mark.parametrize(
    "name", ["time_ms", "input_bytes", "cycles", "deadline_ms", "status_age_ms"]
)
@pytest.mark.parametrize("odd", ["nan", "inf", "-inf"])
def test_a_number_of_a_log_that_no_page_can_show_is_refused(cosmo, tmp_path, name, odd):
    log = _logged(tmp_path / "decisions.csv")
    header, first, *rest = log.read_text().splitlines()
    cells = first.split(",")
    cells[header.split(",").index(name)] = odd
    log.write_text("\n".join([header, ",".join(cells), *rest]))
    code, out, err = cosmo("view", log)
    assert (code, out) == (2, "")
    assert f"line 2: {name} = {odd!r}: must be a finite number" in err
    assert not log.with_suffix(".html").exists()


@pytest.mark.parametrize(
    ("name", "odd", "allowed"),
    [
        ("ue", "0.5", "must be a whole number"),
        ("action", "1e300", "must be a whole number from -1 to 10000"),
        ("action", "10000", None),
        ("status_age_ms", " ; ", None),  # of two SNs, of which nothing was heard
    ],
)
def test_odd_cells_of_a_log_are_taken_or_refused_in_one_line(cosmo, tmp_path, name, odd, allowed):
    log = _logged(tmp_path / "decisions.csv")
    header, first, *rest = log.read_text().splitlines()
    cells = first.split(",")
    cells[header.split(",").index(name)] = odd
    log.write_text("\n".join([header, ",".join(cells), *rest]))
    code, out, err = cosmo("view", log)
    assert (code, out) == (2 if allowed else 0, "")
    assert allowed is None or (
        f"line 2: {name} = {odd!r}: {allowed}" in err and "\n" not in err[:-1]
    )


def test_a_log_of_more_nodes_than_a_page_can_show_is_refused_before_it_fills_the_memory(tmp_path):
    log = _logged(tmp_path / "decisions.csv")
    header, first, *_ = log.read_text().splitlines()
    cells = first.split(",")
    cells[header.split(",").index("action")] = "10000"
    log.write_text("\n".join([header, *[",".join(cells)] * 1001]))
    with pytest.raises(InputError, match="1001 tasks and 10000 SNs"):
        read_decisions(log)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda told: told.update(tasks=[]), "tasks is missing"),
        (lambda told: told.update(tasks=None), "tasks is missing"),
        (lambda told: told.update(updates=3), "updates is missing"),
        (lambda told: told.update(window_ms="long"), "window_ms is missing"),
        (lambda told: told.update(sns=True), "sns is missing"),
        (lambda told: told.pop("reach"), "reach is missing"),
        (lambda told: told["tasks"].pop("age"), "columns of tasks are missing"),
        (lambda told: told["tasks"].update(age=5), "columns of tasks are missing"),
        (lambda told: told["tasks"].update(age=[1]), "columns of tasks have different lengths"),
        (lambda told: told["updates"].update(sn=[1]), "columns of updates have different lengths"),
        (lambda told: told.update(window_ms=math.inf), "not JSON"),
        (lambda told: told["tasks"].update(time=[math.nan]), "not JSON"),
    ],
)
def test_a_recording_with_another_shape_is_refused_in_one_line(cosmo, tmp_path, change, why):
    scenario = load("paper", ("episode.window_ms=300", "episode.warmup_ms=0", "workload.rate=40"))
    told = record(scenario, method("aoi-threshold"), episode(scenario, 0, 0), 0)
    path = tmp_path / "e.json"
    path.write_text(json.dumps(told))
    assert cosmo("view", path)[0] == 0
    path.with_suffix(".html").unlink()
    change(told)
    path.write_text(json.dumps(told))
    code, out, err = cosmo("view", path)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert f"is not a recorded episode ({why}" in err
    assert not path.with_suffix(".html").exists()


def test_a_number_too_large_for_a_float_is_no_recording(tmp_path):
    path = tmp_path / "e.json"
    path.write_text('{"format": 2, "tasks": {}, "updates": {}, "window_ms": 1e999}')
    with pytest.raises(InputError, match="not JSON"):
        read_recording(path)


def test_numbers_of_a_recording_have_five_digits(file):
    found = json.loads(file.read_text())["tasks"]
    columns = ("time", "bytes", "cycles", "deadline", "delays", "true", "age", "finished")
    numbers = _flat([found[name] for name in columns])
    known = [number for number in numbers if number is not None]  # NaN would be no JSON
    assert known == [float(f"{number:.5g}") for number in known]
    assert len(set(known)) > 500


def _flat(values):
    for each in values:
        yield from _flat(each) if isinstance(each, list) else [each]
