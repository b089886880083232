"""Recorded episodes: what is in them, and the page that `cosmo view` makes of a file."""

import json
import re

import pytest
from browsers import open_page, opened_browser

from cosmo import load, method
from cosmo.study.recording import record
from cosmo.workload import episode


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
        for sn in (1, 2):
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
        assert "SN 1: true backlog" not in browser.execute_script(names)
        browser.execute_script(choose, "viewer-en", "2")
        browser.execute_script("document.querySelector('[data-task=\"1\"]').click()")
        card = browser.find_element("id", "task").text
        assert ", EN 3: " in card
        assert "SN 2: backlog believed" in card
        # Rejections that were not needed are explained, where there are any.
        note, mark = (
            browser.find_element("id", "viewer-note"),
            "rejected, a route was feasible (FN)",
        )
        assert mark not in browser.execute_script(names)
        assert "quota" not in note.text
        browser.execute_script(choose, "recording", "1")
        assert mark in browser.execute_script(names)
        assert re.search(
            r"\d+ tasks after the warm-up were rejected .* beyond the quota", note.text
        )
        assert browser.get_log("browser") == []


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("{", "is not a recorded episode (not JSON in UTF-8)"),
        ("[]", "is not a recorded episode (it has no tasks and updates)"),
        ('{"tasks": {}, "updates": {}}', "has format 1, this version reads 2; record it again"),
        ('{"format": 2, "tasks": {"time": [1]}, "updates": {}}', "columns of tasks are missing"),
    ],
)
def test_other_files_are_refused_in_one_line(cosmo, tmp_path, text, line):
    path = tmp_path / "x.json"
    path.write_text(text)
    code, _, err = cosmo("view", path)
    assert (code, err.count("\n")) == (2, 1)
    assert line in err
    assert [each.name for each in tmp_path.iterdir()] == ["x.json"]
