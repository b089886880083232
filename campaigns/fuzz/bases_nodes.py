"""What cases of live nodes and of stored results are mutations of.

A scenario and a plan for the engine `live`, files of daemons, decision logs, a recorded episode,
the folder of a study, public traces.
"""

import json
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import bases

from cosmo import method
from cosmo.checksums import SEAL, sealed_record
from cosmo.live.config import changed_config, config_text, load_config
from cosmo.live.decisions import COLUMNS
from cosmo.report.recording import record
from cosmo.scenario import load
from cosmo.study import LocalExecutor, conduct, load_plan
from cosmo.workload import episode

STORE = "stored"  # the folder of a study

LIVE_SCENARIO = """extends = "paper"
name = "nodes"
engine = "live"

[episode]
window_ms = 300.0
warmup_ms = 0.0

[workload]
rate = 40.0

[live]
slower = 5.0
transport = "loopback"
fifo = 0
most_late_ms = 50.0

[en]
count = 2

[sn]
count = 3
"""

LIVE_PLAN = """extends = "baselines"
name = "nodes"
description = "simulator against live nodes"
engines = ["embedded", "live"]
scenarios = ["mine.toml"]
settings = ["live.slower=20", "live.fifo=0", "episode.window_ms=300", "episode.warmup_ms=0"]
arrivals = ["poisson"]
rates = [40.0]
seeds = [100]
episodes = 1

[[compare]]
methods = ["priced-books", "aoi-threshold"]
"""

_STORED_PLAN = """name = "stored"
settings = ["episode.window_ms=300", "episode.warmup_ms=0"]
arrivals = ["poisson"]
rates = [40.0, 80.0]
seeds = [0, 1]
episodes = 1

[[compare]]
methods = ["all-local", "random", "aoi-threshold"]
"""

# Of three SNs, the third of which had said nothing.
_DECISIONS = [
    (
        *(7.5 * k, k % 4, 20000.0 + k, 100000.0 + 7 * k, 100.0),
        *("resize", 7.5 * k + 2.0, k % 5, "REJECTED" if k % 5 == 4 else "DONE", 7.5 * k + 60.0, 0),
        *(1.7e12 + 7.5 * k, "12.5;3;", "1 0 5e+06 240000;2 0 0 240000;"),
    )
    for k in range(10)
]

AZURE = "app,func,end_timestamp,duration\n" + "".join(
    f"a{k % 3},f{k % 2},{10.0 + k},{0.25 * (k + 1)}\n" for k in range(12)
)
ALIBABA = "".join(
    f"t{k},1,j{k % 3},1,Terminated,{100 + k},{103 + 2 * k},100.00,0.5\n" for k in range(12)
)


@cache
def daemon(role: str) -> str:
    """A daemon's file in full, as TOML: any free port of this machine, and no peer answers."""
    config = load_config(role)
    peers = [{**peer.model_dump(), "name": f"peer{k}"} for k, peer in enumerate(config.peers * 2)]
    if role == "en":
        peers = [{**peer, "address": "127.0.0.1:9"} for peer in peers]
    fields: dict[str, object] = {"listen": "127.0.0.1:0", "admin": "127.0.0.1:0", "peers": peers}
    if role == "agent":
        fields["agent.url"] = "http://127.0.0.1:9/metrics"
    return config_text(changed_config(config, fields))


def decisions_csv() -> str:
    """The decision log of an EN."""
    rows = (",".join(map(str, row)) for row in _DECISIONS)
    return "\n".join([",".join(COLUMNS), *rows]) + "\n"


def decisions_columns() -> dict[str, Any]:
    """The same by columns."""
    return {name: [row[place] for row in _DECISIONS] for place, name in enumerate(COLUMNS)}


@cache
def recording() -> str:
    """An episode for the viewer, as JSON."""
    scenario = load("paper", bases.SHORT)
    return json.dumps(record(scenario, method("aoi-threshold"), episode(scenario, 0, 0), 0))


@cache
def store() -> dict[str, bytes]:
    """The files of a small study, by their names in its folder."""
    with tempfile.TemporaryDirectory(prefix="cosmo-fuzz-") as name:
        plan, folder = Path(name) / "plan.toml", Path(name) / STORE
        plan.write_text(_STORED_PLAN)
        conduct(load_plan(str(plan)), folder, LocalExecutor(1))
        return {
            str(path.relative_to(name)): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }


def sealed(told: Any) -> bytes:
    """A record as JSON, with a seal that holds whatever it says."""
    rest = {name: value for name, value in told.items() if name != SEAL}
    return json.dumps(sealed_record(rest)).encode()
