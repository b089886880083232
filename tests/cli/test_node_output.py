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
from cosmo.live.top import parsed
from cosmo.ns3 import library


@pytest.fixture(autouse=True)
def narrow(monkeypatch, tmp_path):
    eighty_columns(monkeypatch)
    monkeypatch.chdir(tmp_path)


def _without_compiling(text):
    """What is said on a slow machine is not part of what a command prints."""
    return text.replace("compiling the engine, once on this machine …\n", "")


_NODE = """cosmo_method_info{{node="{name}",method="{method}"}} 1
cosmo_tasks_total{{node="{name}",fate="DONE"}} {done}
cosmo_tasks_total{{node="{name}",fate="LATE"}} 7
cosmo_tasks_in_node{{node="{name}"}} 12
cosmo_sn_silent{{node="{name}",sn="0"}} 1
cosmo_guard_seconds{{node="{name}"}} 0.00325
cosmo_timer_late_seconds_bucket{{node="{name}",le="0.000125"}} {late}
cosmo_timer_late_seconds_bucket{{node="{name}",le="+Inf"}} {late}
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
        late = 100 * looks[address] if name == "en0" else 0  # the other's timers have not run yet
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
    as_before(name, err.replace("; nodes", ";\nnodes"))  # one line, which terminals break


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("serve-no-file", ["serve", "en", "--config", "nothing.toml"]),
        ("serve-field", ["serve", "sn", "--set", "method.us=never"]),
        ("serve-method", ["serve", "en", "--set", "method.use=self-traking"]),
        ("live-config-method", ["live", "config", "-m", "priced-boks"]),
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


def test_ns3_check(cosmo, monkeypatch):
    played = simulate(load("paper", SHORT), "never")
    monkeypatch.setattr(library, "ns3_folder", lambda: Path("/opt/ns3"))
    monkeypatch.setattr("cosmo.control.simulate", lambda *given: played)
    code, out, err = cosmo("ns3", "check")
    assert code == 0, err
    as_before("ns3-check", re.sub(r"\d+\.\d s\)", "1.0 s)", out))


def test_page_of_episodes_and_report_say_what_to_open(cosmo, monkeypatch):
    written = SimpleNamespace(figures=[Path("a.png")] * 12, tables=[Path("a.md")] * 9,
                              page=Path("mine/report/report.html"), left_out=[])  # fmt: skip
    monkeypatch.setattr("cosmo.study.load_study", lambda folder: None)
    monkeypatch.setattr("cosmo.report.write.write_report", lambda *given: written)
    code, out, err = cosmo("report", "mine")
    assert (code, out) == (0, "")
    as_before("report", _without_compiling(err))
