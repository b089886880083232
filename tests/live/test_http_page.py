"""The page about HTTP without a proxy does what it says: its commands, on ports that are free."""

import re
import shlex
import subprocess
import sys
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from socket import create_server

from slow import wait_until

PAGE = Path(__file__).parents[2] / "docs" / "tasks" / "without_a_proxy.md"


def _got(url):
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return answer.read().decode()
    except OSError:
        return None


def test_its_commands_forward_requests(tmp_path):
    page = PAGE.read_text()
    for port in ("8001", "8002", "7100", "7300", "8080"):
        with create_server(("127.0.0.1", 0)) as free:
            page = page.replace(port, str(free.getsockname()[1]))
    blocks = re.findall(r"^```(toml|text)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    lines = [line for kind, text in blocks if kind == "text" for line in text.splitlines()]
    [config] = [text for kind, text in blocks if kind == "toml"]
    (tmp_path / "en.toml").write_text(config)
    (tmp_path / "index.html").write_text("hello")
    request, metrics = (line.split()[1] for line in lines if line.startswith("curl "))
    started = [shlex.split(each) for each in lines if each.startswith(("python ", "cosmo "))]
    assert len(started) == 3
    with ExitStack() as stack:
        for program, *rest in started:
            command = [sys.executable, *(["-m", "cosmo"] if program == "cosmo" else []), *rest]
            with (tmp_path / "log").open("ab") as log:
                process = subprocess.Popen(command, cwd=tmp_path, stdout=log, stderr=log)
            stack.callback(process.wait)
            stack.callback(process.terminate)
        wait_until(lambda: _got(request) == "hello", "a request is answered")
        told = _got(metrics)
    decided = re.findall(r'^cosmo_decisions_total\{.*action="(\w+)".*\} (\S+)$', told, re.MULTILINE)
    assert {name for name, _ in decided} <= {"first", "second"}
    assert re.search(r'^cosmo_tasks_total\{.*fate="DONE".*\} [1-9]', told, re.MULTILINE)
