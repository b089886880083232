"""Nothing hangs, nothing is left behind, and what is missing is said."""

import os
import shutil
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from cosmo import InputError, load
from cosmo.errors import EngineError
from cosmo.ns3 import Ns3Worlds, library, process, wire
from cosmo.workload import episode
from slow import wait_until

SCENARIO = load("paper", ["engine=ns3", "episode.window_ms=300", "episode.warmup_ms=0"])


def _worlds(seed=0):
    return Ns3Worlds(SCENARIO, [episode(SCENARIO, seed, 0)])


def _play(worlds):
    turn = worlds.advance()
    while not turn.over:
        worlds.answer(action=[0] * len(turn.dispatch))
        turn = worlds.advance()


def _has_ended(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def _gone(pid):
    return wait_until(lambda: _has_ended(pid), f"process {pid} has ended")


def test_a_crash_is_an_error_that_names_the_world():
    worlds = _worlds(seed=7)
    worlds.advance()
    pid = worlds._workers[0]._process.pid
    os.kill(pid, signal.SIGSEGV)
    worlds.answer(action=[0])
    with pytest.raises(EngineError, match=rf"SIGSEGV.*{worlds.episodes[0].network_seed}"):
        worlds.advance()
    assert _gone(pid)
    _play(_worlds())  # others go on


def test_a_hang_has_a_limit(monkeypatch):
    worlds = _worlds()
    worlds.advance()
    pid = worlds._workers[0]._process.pid
    os.kill(pid, signal.SIGSTOP)
    monkeypatch.setattr(process, "_STEP_LIMIT_S", 0.5)
    monkeypatch.setattr(process, "_END_LIMIT_S", 0.5)
    worlds.answer(action=[0])
    with pytest.raises(EngineError, match=r"no answer in 0.5 s \(network_seed"):
        worlds.advance()
    assert _gone(pid)


def test_a_process_that_does_not_listen_has_a_limit_too(monkeypatch):
    worker = process.Worker()
    os.kill(worker._process.pid, signal.SIGSTOP)
    monkeypatch.setattr(process, "_STEP_LIMIT_S", 0.5)
    monkeypatch.setattr(process, "_END_LIMIT_S", 0.5)
    with pytest.raises(EngineError, match=r"no answer in 0.5 s"):
        worker.ask(wire.BEGIN, bytes(10_000_000))
    assert _gone(worker._process.pid)


def test_a_process_that_hangs_up_but_lives_on_is_ended(monkeypatch, tmp_path):
    mute = tmp_path / "mute"
    mute.write_text(
        f"#!{sys.executable}\nimport os, sys, time\nos.close(int(sys.argv[3]))\ntime.sleep(100)\n"
    )
    mute.chmod(0o755)
    with monkeypatch.context() as patched:
        patched.setattr(sys, "executable", str(mute))
        worker = process.Worker()
    monkeypatch.setattr(process, "_END_LIMIT_S", 0.5)
    with pytest.raises(EngineError, match=r"broke off the connection and was ended .*no word"):
        worker.hear(wire.READY)
    assert _gone(worker._process.pid)


def test_what_ns3_objects_to_is_told():
    """A channel that the standard does not have, and that no scenario can ask for."""
    odd = SCENARIO.wifi.model_copy(update={"channel_mhz": 35})
    scenario = SCENARIO.model_copy(update={"wifi": odd})
    with pytest.raises(EngineError, match=r"ns-3 failed: .*channel.*network_seed = \d+\)"):
        Ns3Worlds(scenario, [episode(SCENARIO, 0, 0)])
    _play(_worlds())


def test_an_abort_in_ns3_is_told():
    """A mode that 802.11n does not have, and that no scenario can ask for, ends the process."""
    odd = SCENARIO.wifi.model_copy(update={"mcs": 99})
    scenario = SCENARIO.model_copy(update={"wifi": odd})
    with pytest.raises(EngineError, match=r"ended with SIG.*network_seed = \d+\): \S+"):
        Ns3Worlds(scenario, [episode(SCENARIO, 0, 0)])


def test_workers_are_reused_and_reaped():
    process.close_idle()
    worlds = _worlds()
    _play(worlds)
    pid = worlds._workers[0]._process.pid
    del worlds
    again = _worlds()
    assert again._workers[0]._process.pid == pid
    again.advance()
    del again  # in the middle of an episode, but waiting for us
    assert [worker._process.pid for worker in process._idle] == [pid]
    process.close_idle()
    assert _gone(pid)


def test_memory_does_not_grow():
    process.close_idle()
    sizes = []
    for seed in range(50):
        worlds = _worlds(seed)
        turn = worlds.advance()
        for _ in range(20):
            worlds.answer(action=[1] * len(turn.dispatch))
            turn = worlds.advance()
        pages = Path(f"/proc/{worlds._workers[0]._process.pid}/statm").read_text().split()[1]
        sizes.append(int(pages) * os.sysconf("SC_PAGE_SIZE") / 1e6)
    assert sizes[-1] - sizes[20] < 5.0  # MB; a world of its own takes some 10


def test_workers_end_with_their_owner():
    code = (
        "import os\nfrom cosmo import load\nfrom cosmo.ns3 import Ns3Worlds\n"
        "from cosmo.workload import episode\n"
        "scenario = load('paper', ['engine=ns3', 'episode.window_ms=300',"
        " 'episode.warmup_ms=0'])\n"
        "worlds = Ns3Worlds(scenario, [episode(scenario, 0, 0)])\n"
        "worlds.advance()\n"
        "print(worlds._workers[0]._process.pid, flush=True)\nos._exit(1)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False
    )
    assert _gone(int(done.stdout)), done.stderr


def _uninstall(monkeypatch, cache):
    """As if nothing had been installed; gives back where it would be."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.setattr(library.importlib.util, "find_spec", lambda name: None)
    return cache / "cosmo" / f"ns3-{library.VERSION}"


def test_what_is_missing_is_named(monkeypatch, cosmo, tmp_path):
    with monkeypatch.context() as patched:
        patched.setenv("CXX", "no-such-compiler")
        with pytest.raises(InputError, match="compiler 'no-such-compiler' is not there"):
            library.compiled_network()
    _uninstall(monkeypatch, tmp_path)
    code, _, err = cosmo("simulate", "-m", "random", "--engine", "ns3")
    assert (code, err.count("\n")) == (2, 1)
    assert "cosmo ns3 install" in err
    assert "[ns3]" in err


@pytest.mark.parametrize("end", [KeyboardInterrupt, subprocess.TimeoutExpired("pip", 1), -9, 0])
def test_an_install_is_whole_or_absent(monkeypatch, tmp_path, end):
    target = _uninstall(monkeypatch, tmp_path)

    def pip(command, limit_s):
        headers = Path(command[command.index("--target") + 1]) / "ns3" / "include" / "ns3"
        headers.mkdir(parents=True)
        (headers / "core-module.h").touch()
        with pytest.raises(InputError, match="not installed"):
            library.ns3_folder()  # a kill that nothing can catch would leave it like this
        if isinstance(end, int):
            return subprocess.CompletedProcess(command, end, "", "")
        raise end

    monkeypatch.setattr(library, "run_tool", pip)
    if end == 0:
        target.mkdir(parents=True)  # some part of one
        assert library.install() == target / "ns3" == library.ns3_folder()
    else:
        with pytest.raises((InputError, KeyboardInterrupt)):
            library.install()
        with pytest.raises(InputError, match="not installed"):
            library.ns3_folder()
    assert list(target.parent.iterdir()) == ([target] if end == 0 else [])


def test_a_cache_that_cannot_be_written_is_named(monkeypatch, cosmo, tmp_path):
    installed = library.ns3_folder()
    _uninstall(monkeypatch, tmp_path)
    (tmp_path / "cosmo").write_text("a file is in its place")
    code, _, err = cosmo("ns3", "install")
    assert (code, err.count("\n")) == (2, 1)
    assert f"{tmp_path}/cosmo/ns3-{library.VERSION}': cannot be written (" in err
    monkeypatch.setattr(library, "ns3_folder", lambda: installed)
    code, _, err = cosmo("simulate", "-m", "random", "--engine", "ns3")
    assert (code, err.count("\n")) == (2, 1)
    assert f"{tmp_path}/cosmo/network-" in err
    assert "cannot be written (" in err


def test_compiled_once_for_the_sources_and_a_compiler(monkeypatch, tmp_path):
    first = library.compiled_network()
    stamp = first.stat().st_mtime_ns
    assert library.compiled_network() == first
    assert first.stat().st_mtime_ns == stamp
    (tmp_path / "network.cc").write_text("this is not C++")
    monkeypatch.setattr(library, "_SOURCES", tmp_path)
    with pytest.raises(InputError, match=r"g\+\+ failed .*error"):
        library.compiled_network()
    assert not list(first.parent.glob(".network-*"))  # nothing half-written


def test_a_change_in_any_source_is_compiled(monkeypatch, tmp_path):
    compiler = tmp_path / "compiler"
    compiler.write_text('#!/bin/sh\nwhile [ "$1" != -o ]; do shift || exit; done\necho > "$2"\n')
    compiler.chmod(0o755)
    folder, sources = library.ns3_folder(), tmp_path / "cpp"
    shutil.copytree(library._SOURCES, sources)
    monkeypatch.setenv("CXX", str(compiler))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(library, "ns3_folder", lambda: folder)
    monkeypatch.setattr(library, "_SOURCES", sources)
    made = {library.compiled_network()}
    names = sorted(path.name for path in sources.iterdir())
    assert {"network.cc", "interface.h", "cell.h", "chain.h"} < set(names)
    for number, name in enumerate(names, start=2):
        with (sources / name).open("a") as source:
            source.write("// changed\n")
        made.add(library.compiled_network())
        assert len(made) == number, name
    assert all(path.exists() for path in made)


def test_the_wheel_holds_all_sources(tmp_path):
    root = Path(__file__).parents[2]
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path],
        cwd=root,
        capture_output=True,
        timeout=300,
        check=True,
    )
    [wheel] = tmp_path.glob("*.whl")
    inside = set(zipfile.ZipFile(wheel).namelist())
    assert {f"cosmo/ns3/cpp/{path.name}" for path in library._SOURCES.iterdir()} <= inside
