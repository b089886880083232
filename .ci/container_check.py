"""Goes through examples/live/Containerfile without a container engine: `make container-check`.

COPY fills a folder with what .dockerignore leaves, each RUN works in an empty environment, and the
entry point is started and stopped as a runtime would. The base image is not fetched, and USER is
not taken: the Python and the user of this machine stand in for both.
"""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "examples" / "live" / "Containerfile"
PATIENCE_S = 600.0


def fail(message: str) -> NoReturn:
    """End with one line."""
    sys.exit(f"container-check: {message}")


def steps() -> list[tuple[str, str]]:
    """(instruction, rest of its line), in order."""
    lines = FILE.read_text("utf-8").replace("\\\n", " ").splitlines()
    found = [line.partition(" ") for line in lines if line.strip() and not line.startswith("#")]
    return [(name, rest.strip()) for name, _, rest in found]


def copy(to: Path) -> None:
    """The repository as a builder sees it: of what is excluded, what is named again."""
    rules = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    kept = [rule.removeprefix("!") for rule in rules if rule.startswith("!")]
    if "**" not in rules or not kept:
        fail(".dockerignore: must leave out everything but what it names")
    to.mkdir()
    for name in kept:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, to / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, to / name)


def run(command: str, env: dict[str, str]) -> None:
    """A step that must succeed, in an environment."""
    done = subprocess.run(
        ["sh", "-ec", command], env=env, capture_output=True, text=True, timeout=PATIENCE_S,
        check=False,
    )  # fmt: skip
    if done.returncode:
        fail(f"RUN {command}: exit code {done.returncode}\n{done.stderr[-2000:]}")


def start(entry: list[str], env: dict[str, str], folder: Path, stop: str) -> None:
    """The entry point as a picker: it must serve, and end well at the stop signal."""
    config = folder / "picker.toml"
    config.write_text('extends = "picker"\nlisten = "127.0.0.1:0"\n')
    program = shutil.which(entry[0], path=env["PATH"].split(os.pathsep)[0])
    if program is None:
        fail(f"ENTRYPOINT {entry[0]}: is not in the image")
    command = [program, *entry[1:], "picker", "--config", str(config)]
    with subprocess.Popen(command, env=env, cwd=folder, stderr=subprocess.PIPE, text=True) as node:
        assert node.stderr is not None
        said = []
        for line in node.stderr:
            said.append(line)
            if json.loads(line).get("event") == "serving":
                node.send_signal(getattr(signal, stop))
        if node.wait(PATIENCE_S) or not any('"serving"' in line for line in said):
            fail(f"{shlex.join(command)}: exit code {node.returncode}\n{''.join(said)[-2000:]}")


def main() -> None:
    """All steps."""
    stop, entry = "SIGTERM", [""]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run([sys.executable, "-m", "venv", folder / "image"], check=True)
        env = {**os.environ, "PATH": f"{folder / 'image' / 'bin'}{os.pathsep}{os.environ['PATH']}"}
        env.pop("PYTHONPATH", None)
        for instruction, rest in steps():
            if instruction == "COPY":
                if rest != ". /src":
                    fail(f"COPY {rest}: must be '. /src'")
                copy(folder / "src")
            elif instruction == "RUN":
                run(re.sub(r"/src\b", str(folder / "src"), rest), env)
            elif instruction == "STOPSIGNAL":
                stop = rest
            elif instruction in ("ENTRYPOINT", "CMD"):
                entry = json.loads(rest) if instruction == "ENTRYPOINT" else entry
                json.loads(rest)  # a list: no shell between the runtime's signals and the node
            elif instruction not in ("FROM", "USER"):
                fail(f"{instruction}: is not understood here")
            print(
                f"{instruction} {rest}: {'left out' if instruction in ('FROM', 'USER') else 'ok'}"
            )
        if (folder / "src").exists():
            fail("/src: must be removed by the step that installs from it")
        start(entry, env, folder, stop)
    print("the entry point has served as a picker, and ended well")


if __name__ == "__main__":
    main()
