"""What commands about nodes, ns-3 and files of others print at 80 columns, kept as text."""

import importlib.util
import re
import textwrap
from pathlib import Path
from types import SimpleNamespace

import pytest
from golden_text import as_before, eighty_columns
from small import SHORT

from cosmo import load, simulate
from cosmo.cli import calibrate as commands
from cosmo.live.top import parsed
from cosmo.ns3 import calibrate, library
from live.beds import row


@pytest.fixture(autouse=True)
def narrow(monkeypatch, tmp_path):
    eighty_columns(monkeypatch)
    monkeypatch.chdir(tmp_path)


def _without_compiling(text):
    """What is said on a slow machine is not part of what a command prints."""
    return text.replace("compiling the engine, once on this machine …\n", "")


def test_live_run(cosmo, monkeypatch):
    """Episodes that nobody has measured, of methods with long names, one without a verdict."""
    own = "a-policy-of-mine.py:WithAVeryLongName"
    Path("a-policy-of-mine.py").write_text(
        "from cosmo.policy.fixed import AllLocal\nclass WithAVeryLongName(AllLocal): 'Local.'\n"
    )
    rows = [
        *(row(own, 0.9 - place / 100, episode=place, scale=5.0) for place in range(3)),
        row("self-tracking", 0.5, valid=False, timer_p99_ms=123.45, scale=5.0),
    ]
    monkeypatch.setattr("cosmo.live.bed.conduct.conducted", lambda *given: rows)
    code, out, err = cosmo("live", "run", "-m", own, "-m", "self-tracking", "--rate", 220)
    assert code == 0, err
    as_before("live-run", out + _without_compiling(err))
    paces = [row("self-tracking", 0.9, scale=scale, rate=rate)
             for rate in (120.0, 320.0) for scale in (1.0, 2.0)]  # fmt: skip
    monkeypatch.setattr("cosmo.live.bed.conduct.conducted", lambda *given: paces)
    several = ("--set", "scales=[1.0, 2.0]", "--set", "rates=[120.0, 320.0]")
    code, out, _ = cosmo("live", "run", "-m", "self-tracking", *several)
    assert code == 0
    as_before("live-run-paces", out)


_NODE = """cosmo_method_info{{node="{name}",method="{method}"}} 1
cosmo_tasks_total{{node="{name}",fate="DONE"}} {done}
cosmo_tasks_total{{node="{name}",fate="LATE"}} 7
cosmo_tasks_in_node{{node="{name}"}} 12
cosmo_sn_silent{{node="{name}",sn="0"}} 1
cosmo_guard_ms{{node="{name}"}} 3.25
cosmo_timer_late_ms{{node="{name}",quantile="0.99"}} {late}
"""


def test_live_top(cosmo, monkeypatch):
    named = {
        "127.0.0.1:7300": ("en0", "cosmo-next:checkpoint=/srv/edge/controllers/trained-in-may"),
        "an-edge-node.of-a-site.example:17300": ("edge-node-of-hall-4-north", "priced-books"),
    }
    looks = dict.fromkeys(named, 0)

    def scraped(address):
        if address not in named:
            return []
        looks[address] += 1
        name, method = named[address]
        late = 0.125 if name == "en0" else "NaN"  # no timer has run yet
        told = _NODE.format(name=name, method=method, late=late, done=12_345 * looks[address])
        return parsed(told)

    monkeypatch.setattr("cosmo.live.top.scraped", scraped)
    code, out, err = cosmo(
        "live", "top", *named, "an-edge-node.of-a-site.example:17400", "--looks", 1, "--every", 0.1
    )
    assert code == 0, err
    as_before("live-top", out)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("live-config", ["live", "config", "-s", "campus", "-m", "self-tracking"]),
        ("import", ["import", "azure-functions-2021", "azure.csv", "--out", "tasks.parquet"]),
    ],
)
def test_files_that_are_written(cosmo, name, arguments):
    rows = (f"a{k % 3},f{k % 2},{100 + k / 7:.3f},0.05\n" for k in range(40))
    Path("azure.csv").write_text("app,func,end_timestamp,duration\n" + "".join(rows))
    code, out, err = cosmo(*arguments)
    assert (code, out) == (0, "")
    as_before(name, err.replace("; sizes", ";\nsizes"))  # one line, which terminals break


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("serve-no-file", ["serve", "en", "--config", "nothing.toml"]),
        ("serve-field", ["serve", "sn", "--set", "method.us=never"]),
        ("serve-method", ["serve", "en", "--set", "method.use=self-traking"]),
        ("live-config-method", ["live", "config", "-m", "priced-boks"]),
        ("live-run-nothing", ["live", "run"]),
        ("ns3-nothing", ["ns3", "check"]),
    ],
)
def test_what_is_wrong_is_one_line(cosmo, monkeypatch, tmp_path, name, arguments):
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *more: None if name == "ns3" else found(name, *more),
    )
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # where a copy of ns-3 would be
    code, out, err = cosmo(*arguments)
    assert code == 2, err
    assert (out, err.count("\n")) == ("", 1)
    as_before(name, textwrap.fill(err, 80))  # as terminals break it


def test_calibration(cosmo, monkeypatch):
    fits = [
        calibrate.Fit(rate, 12_345, 123, 1234.5 / rate, 5432.1 / rate, 1200 / rate, 5600.0 / rate)
        for rate in (20.0, 120.0, 320.0)
    ]
    found = calibrate.Calibration(0.731, 0.0418, 51.7, fits)
    monkeypatch.setattr(calibrate, "calibrate", lambda *given: found)
    monkeypatch.setattr(commands, "prepare_engine", lambda scenario: None)
    code, out, err = cosmo("calibrate", "access", "--out", "fitted.toml")
    assert code == 0, err
    as_before("calibrate", out + err)


def test_ns3_check(cosmo, monkeypatch):
    played = simulate(load("paper", SHORT), "never")
    monkeypatch.setattr(library, "ns3_folder", lambda: Path("/opt/ns3"))
    monkeypatch.setattr("cosmo.control.simulate", lambda *given: played)
    code, out, err = cosmo("ns3", "check")
    assert code == 0, err
    as_before("ns3-check", re.sub(r"\d+\.\d s\)", "1.0 s)", out))


def test_page_of_episodes_and_report_say_what_to_open(cosmo, monkeypatch):
    written = SimpleNamespace(figures=[Path("a.png")] * 12, tables=[Path("a.md")] * 9,
                              page=Path("mine/report/report.html"))  # fmt: skip
    monkeypatch.setattr("cosmo.study.load", lambda folder: None)
    monkeypatch.setattr("cosmo.study.report.write_report", lambda *given: written)
    code, out, err = cosmo("report", "mine")
    assert (code, out) == (0, "")
    as_before("report", _without_compiling(err))
