"""The `cosmo` command: reports every failure in one line.

All that takes long to import is imported inside of `main`, where an interrupt is understood.
"""

import re
import sys
from contextlib import suppress
from typing import NoReturn

from cosmo import interrupts
from cosmo.cli import streams
from cosmo.cli.versions import versions
from cosmo.errors import EngineError, InputError

_LONGEST = 1000  # characters of a line that people read: names of others may be of any length
# Arguments of Python functions that are options here: their errors name the option.
_ARGUMENTS = re.compile(r"^(out|resume|address|device|seeds|rates|episodes)(?= = |: )")
_VERSION = (["--version"], ["--version", "--all"])
_OF_PLAY = ("starlette", "uvicorn")
_OF_LIVE = ("google", "grpc", "grpc_health", "prometheus_client")


def main() -> NoReturn:
    """Run a command.

    Exit codes: 0 done, 1 an engine failed, 2 bad input, 130 interrupted, 143 terminated.
    """
    streams.prepare()
    try:
        code = _show_version() if sys.argv[1:] in _VERSION else _run_command()
        sys.stdout.flush()
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "cosmo":
            raise
        missing = (error.name or "").partition(".")[0]
        extra = "live" if missing in _OF_LIVE or sys.argv[1:2] == ["serve"] else "lab"
        extra = "play" if missing in _OF_PLAY else extra
        _fail(f"needs {error.name}; install it from a clone: pip install '.[{extra}]'", 2)
    except InputError as error:
        _fail(_ARGUMENTS.sub(r"--\1", str(error)), 2)
    except EngineError as error:
        _fail(str(error), 1)
    except interrupts.Terminated:
        _fail("terminated, nothing was left half-written", 143)
    except KeyboardInterrupt:
        _fail("interrupted, nothing was left half-written", 130)
    except MemoryError:
        _fail("this takes more memory than there is; make it shorter or smaller", 2)
    except BrokenPipeError:
        streams.abandon(sys.stdout)
        sys.exit(141)
    except OSError as error:
        streams.abandon(sys.stdout)
        if error.filename is None and not streams.has_folder():
            _fail("the folder that this was called in is gone", 2)
        what = "output" if error.filename is None else f"'{error.filename}'"
        _fail(f"{what}: cannot be read or written ({error.strerror or error})", 2)
    sys.exit(code)


def _show_version() -> int:
    """Print the version; this also works without the extra `[lab]`."""
    print("\n".join(versions("--all" in sys.argv)))
    return 0


def _run_command() -> int:
    from cosmo.cli.running import carried_out

    if sys.argv[1:2] == ["serve"]:  # a node: light, and soon there
        from cosmo.cli.running import node_app as app
    else:
        from cosmo.cli.app import app

    with interrupts.marked():
        return carried_out(app)


def _fail(message: str, code: int) -> NoReturn:
    with suppress(OSError):
        line = streams.one_line(message)
        if len(line) > _LONGEST:  # what is wrong is said at either end
            line = f"{line[: _LONGEST // 2]} … {line[-_LONGEST // 2 :]}"
        print(f"cosmo: {line}", file=sys.stderr, flush=True)
    sys.exit(code)
