"""The tutorials whose examples need torch: their commands, line by line, on small budgets.

That their pieces of code are the examples' is a test of `make test`.
"""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FENCE = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BUDGETS = {"sb3_ppo.py": "4000", "rllib_both.py": "4000"}
NO_FURTHER = ["--episodes", "1", "--set", "episode.window_ms=3000"]


def _run(arguments, folder):
    done = subprocess.run(arguments, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, f"{arguments}: {done.stderr[-2000:]}"
    return done.stdout


@pytest.mark.parametrize("page", ["sb3.md", "multi_agent.md"])
def test_its_commands_run(page, tmp_path):
    text = (ROOT / "docs" / "tutorials" / page).read_text()
    played = 0
    for line in "".join(FENCE.findall(text)).splitlines():
        words = shlex.split(line, comments=True)
        if words[0] == "python":
            script = ROOT / words[1]
            said = _run([sys.executable, str(script), BUDGETS[script.name]], tmp_path)
            assert said.count(": success 0.") == len(said.splitlines()) > 1
        elif words[0] == "cosmo":
            if "--episodes" in words:
                place = words.index("--episodes")
                del words[place : place + 2]
            said = _run([sys.executable, "-m", "cosmo", *words[1:], *NO_FURTHER], tmp_path)
            assert "success" in said
            played += 1
        else:
            assert words[0] == "pip", f"untested line: {line}"
    assert played > 0
