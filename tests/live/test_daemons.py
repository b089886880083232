"""Daemons as processes: killed, held up, reloaded, drained."""

import json
import signal
import subprocess
import sys
import threading
from pathlib import Path

import grpc
import pytest

from cosmo.live import Client
from cosmo.live.config import changed_config
from cosmo.live.processes import Running, nodes
from cosmo.live.tasks import Fate
from live.nodes import config
from slow import wait_until

TASK = {"deadline_ms": 20_000.0, "cycles": 27_000.0}
LAB = {"numba", "polars", "scipy", "jax", "matplotlib", "plotly", "optax", "ray", "gymnasium"}


class Load:
    """Calls of an EN, one after another in several threads, until told to stop."""

    def __init__(self, address, threads=3):
        self.answers, self.errors, self._over = [], [], threading.Event()
        self._threads = [
            threading.Thread(target=self._call, args=(address,)) for _ in range(threads)
        ]
        for each in self._threads:
            each.start()

    def _call(self, address):
        with Client(address) as client:
            while not self._over.is_set():
                try:
                    self.answers.append(client.submit(b"x" * 20_000, **TASK))
                except grpc.RpcError as error:
                    self.errors.append(error.code())
                self._over.wait(0.01)

    def reaches(self, where):
        """Wait for an answer from there that is still to come."""
        seen = len(self.answers)
        wait_until(lambda: any(each.where == where for each in self.answers[seen:]), where)

    def stop(self):
        self._over.set()
        for each in self._threads:
            each.join()


@pytest.fixture(scope="module")
def daemons(tmp_path_factory):
    folder = tmp_path_factory.mktemp("logs")
    told = {
        "method.use": "all-offload",
        "log.decisions": str(folder / "decisions.csv"),
        "admin": "127.0.0.1:0",
        "behaviour.silent_ms": 500.0,
    }
    en = config("en", told, ["127.0.0.1:1"])
    sn = config("sn", {"method.use": "all-offload"})
    with nodes([en], [sn]) as ([here], [there]):
        yield here, there, folder


def test_an_sn_killed_under_load_costs_no_answer_and_is_used_again_once_it_is_back(daemons):
    here, there, _ = daemons
    load, address = Load(here.address), there.address
    again = None
    try:
        load.reaches("sn0")
        there.file.write_text(there.file.read_text().replace('"all-offload"', '"all-local"'))
        there.process.send_signal(signal.SIGHUP)  # another method on the SN, in passing
        assert there.wait_for("reloaded")["method"] == "all-local"
        there.process.kill()
        there.process.wait()
        load.reaches("local")
        again = Running(changed_config(there.config, {"listen": address}), there.file.parent)
        load.reaches("sn0")
        # Held up, it is as good as gone, though its connections stay open.
        again.process.send_signal(signal.SIGSTOP)
        load.reaches("local")
        again.process.send_signal(signal.SIGCONT)
        load.reaches("sn0")
    finally:
        load.stop()
        if again is not None:
            again.process.kill()
            again.process.wait()
    assert load.errors == []
    assert {answer.fate for answer in load.answers} == {Fate.DONE}
    assert any(answer.rerun for answer in load.answers)
    assert len(here.said("sn lost")) >= 2


def test_a_node_is_light(daemons):
    here, _, _ = daemons
    status = Path(f"/proc/{here.process.pid}/status").read_text()
    [resident] = [line.split()[1] for line in status.splitlines() if line.startswith("VmRSS")]
    assert int(resident) < 100_000  # kB
    code = "import sys, cosmo.live.daemon; print(*{n.partition('.')[0] for n in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "grpc" in done.stdout.split()
    assert not LAB & set(done.stdout.split())


def test_a_reload_is_validated_then_taken_over(daemons):
    here, _, _ = daemons
    before = here.file.read_text()
    for text, said, count in (
        (before.replace('use = "all-offload"', 'use = "all-of"'), "not reloaded", 1),
        (before.replace("slots = 2", "slots = 3"), "not reloaded", 2),
        (before.replace('use = "all-offload"', 'use = "all-local"'), "reloaded", 1),
    ):
        here.file.write_text(text)
        here.process.send_signal(signal.SIGHUP)
        here.wait_for(said, count)
    assert "all-of" in here.said("not reloaded")[0]["why"]
    assert here.said("not reloaded")[1]["why"] == "node: cannot change while the node runs"
    with Client(here.address) as client:
        assert client.submit(b"x", **TASK).where == "local"


def test_top_shows_the_node(daemons, cosmo):
    here, _, _ = daemons
    port = here.said("serving")[0]["admin"]
    code, out, _ = cosmo(
        "live", "top", f"127.0.0.1:{port}", "127.0.0.1:1", "--looks", 1, "--every", 0.1
    )
    assert code == 0
    assert "en0" in out
    assert "absent" in out


def test_on_sigterm_a_node_drains_and_its_decisions_can_be_replayed(daemons, cosmo):
    here, _, folder = daemons
    answers = []
    with Client(here.address) as client:
        for _ in range(12):
            client.submit(b"x", deadline_ms=20_000.0, cycles=1000.0)
        slow = {"deadline_ms": 20_000.0, "cycles": 18_000.0 * 300.0}
        call = threading.Thread(target=lambda: answers.append(client.submit(b"x", **slow)))
        call.start()
        port = here.said("serving")[0]["admin"]
        wait_until(lambda: _calls(port) == 1, "the task is there")
        assert here.end() == 0
        call.join()
    assert [answer.fate for answer in answers] == [Fate.DONE]
    log = folder / "decisions.csv"
    rows = log.read_text().splitlines()
    assert rows[0].startswith("time_ms,ue,input_bytes,cycles,deadline_ms,kind,decided_ms,action")
    assert len(rows) > 10
    code, out, _ = cosmo("simulate", "--method", "self-tracking", "--trace", log, "--json")
    assert code == 0
    assert json.loads(out)["trace"] == str(log)


def _calls(port):
    from cosmo.live.top import scraped

    return sum(each.value for each in scraped(f"127.0.0.1:{port}") if each.name == "cosmo_calls")


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        (["node.slots=0"], "node.slots = 0: must be greater than or equal to 1"),
        (["role=sn"], "role = 'sn': must be 'en' for cosmo serve en"),
        (["method.use=best"], "method = 'best': unknown; must be one of"),
        (["handler.kind=python"], "handler.target = '': must be given unless kind is emulate"),
        (
            ["handler.kind=command", "handler.target='\"'"],
            "handler.target = '\"': must be a command line, with closed quotes",
        ),
        (["tls.key=a.key"], "tls.certificate: must come with key and authority"),
        (["lisen=a:1"], "lisen: unknown field, did you mean listen?"),
        (["peers=[]"], "peers: must name at least one node"),
    ],
)
def test_bad_configurations_are_one_line(settings, line, cosmo):
    flags = [part for each in settings for part in ("--set", each)]
    code, out, err = cosmo("serve", "en", *flags)
    assert (code, out) == (2, "")
    assert err.startswith(f"cosmo: {line}")
    assert err.count("\n") == 1


def test_files_for_daemons_come_from_a_scenario(cosmo, tmp_path):
    code, _, _ = cosmo("live", "config", "--scenario", "campus", "--out", tmp_path / "nodes")
    assert code == 0
    names = sorted(path.name for path in (tmp_path / "nodes").iterdir())
    assert names == ["en0.toml", "en1.toml", "en2.toml", "sn0.toml", "sn1.toml"]
    from cosmo.live.config import load_config

    made = load_config(tmp_path / "nodes" / "en2.toml")
    assert (made.listen, made.neighbours) == ("127.0.0.1:7102", 2)
    assert [peer.address for peer in made.peers] == ["127.0.0.1:7200", "127.0.0.1:7201"]
