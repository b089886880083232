"""Prometheus scrapes an EN and its SN, and finds nothing wrong with what it reads."""

import asyncio
import json
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

from live.nodes import pair, play
from outsiders import from_debian, running

TASKS = 5
DASHBOARD = Path(__file__).parents[1] / "examples" / "live" / "grafana.json"


def _free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def _told(port, query):
    """What Prometheus says to a query; None while it is not up, and if it cannot evaluate it."""
    text = urllib.parse.urlencode({"query": query})
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/query?{text}") as page:
            return json.load(page)["data"]["result"]
    except (urllib.error.URLError, ConnectionError):
        return None


def _asked(port, query):
    """{node: value} of a query."""
    found = _told(port, query) or []
    return {each["metric"]["node"]: float(each["value"][1]) for each in found}


def _dashboard():
    """Queries of the dashboard, with the words of Grafana filled in."""
    panels = json.loads(DASHBOARD.read_text())["panels"]
    queries = [target["expr"] for panel in panels for target in panel["targets"]]
    assert len(queries) > 20
    return [each.replace("$__rate_interval", "5s").replace("$node", ".*") for each in queries]


def test_prometheus_scrapes_both_nodes(tmp_path):
    prometheus = from_debian("prometheus", "usr/bin/prometheus")
    port, watched = _free_port(), {"admin": "127.0.0.1:0"}

    async def scene():
        async with pair(en=watched, sn=watched, method="all-offload") as (here, there, client):
            for _ in range(TASKS):
                await client.submit(b"x", deadline_ms=60_000.0, cycles=100.0)
            admins = [f"127.0.0.1:{each.admin.port}" for each in (here, there)]
            told = {
                "global": {"scrape_interval": "200ms", "scrape_timeout": "200ms"},
                "scrape_configs": [{"job_name": "cosmo", "static_configs": [{"targets": admins}]}],
            }
            (tmp_path / "prometheus.yml").write_text(json.dumps(told))  # JSON is YAML, too
            command = [prometheus, "--config.file=prometheus.yml", "--storage.tsdb.path=data"]
            command += [f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn"]
            done = 'cosmo_tasks_total{fate="DONE"}'
            with running(command, tmp_path) as wait:
                await asyncio.to_thread(
                    wait, lambda: _asked(port, done) == {"en0": 5.0, "sn0": 5.0}, "all is counted"
                )
                silent = await asyncio.to_thread(_asked, port, "cosmo_sn_silent")
                assert silent == {"en0": 0.0}
                for query in _dashboard():
                    assert await asyncio.to_thread(_told, port, query) is not None, query
            for serving in (here, there):
                checked = await asyncio.to_thread(
                    subprocess.run,
                    [prometheus.with_name("promtool"), "check", "metrics"],
                    input=serving.admin.text(), capture_output=True, text=True, timeout=60.0,
                )  # fmt: skip
                assert checked.stderr == ""

    play(scene())
