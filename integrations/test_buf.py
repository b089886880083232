"""`buf curl` calls an EN that it knows by reflection alone."""

import asyncio
import base64
import json
import subprocess

from live.nodes import pair, play
from outsiders import from_npm

PATIENCE_S = 60.0


def test_buf_calls_an_en_by_reflection():
    buf = from_npm("@bufbuild/buf@1.74.0", "node_modules/.bin/buf")

    def call(address, service, content):
        return subprocess.run(
            [
                *(buf, "curl", "--http2-prior-knowledge", "--protocol", "grpc"),
                *("--data", json.dumps(content), f"http://{address}/{service}"),
            ],
            capture_output=True, text=True, timeout=PATIENCE_S, check=False,
        )  # fmt: skip

    async def scene():
        async with pair(en={"reflection": True}, method="all-local") as (here, _, _):
            task = {
                "id": "7",
                "cycles": 100.0,
                "deadlineUs": str(10**8),
                "input": base64.b64encode(b"a picture").decode(),
            }
            submit = "cosmo.live.v1.En/Submit"
            done = await asyncio.to_thread(call, here.address, submit, task)
            assert done.returncode == 0, done.stderr
            told = json.loads(done.stdout)
            assert (told["id"], told["fate"], told["where"]) == ("7", "DONE", "local")
            wrong = await asyncio.to_thread(call, here.address, submit, {**task, "deadlineUs": "0"})
            assert wrong.returncode != 0
            assert "deadline_us = 0: must be from 1" in wrong.stderr
            assert here.node.counters.get("tasks_total", fate="DONE") == 1

    play(scene())
