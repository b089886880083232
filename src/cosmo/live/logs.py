"""Structured logs: one JSON object a line, on standard error."""

import json
import sys
import time
from typing import Any, TextIO

_LEVELS = {"debug": 0, "info": 1, "warning": 2}


class Log:
    """Of one node; what is below its level is not written."""

    def __init__(self, node: str, level: str = "info", stream: TextIO | None = None) -> None:
        self._node, self._least = node, _LEVELS[level]
        self._stream = sys.stderr if stream is None else stream

    def level(self, name: str) -> None:
        """Set the lowest level that is logged from now on."""
        self._least = _LEVELS[name]

    def debug(self, event: str, **fields: Any) -> None:
        """For who looks for a mistake."""
        self._write("debug", event, fields)

    def info(self, event: str, **fields: Any) -> None:
        """What happens now and then."""
        self._write("info", event, fields)

    def warning(self, event: str, **fields: Any) -> None:
        """What somebody should look at."""
        self._write("warning", event, fields)

    def _write(self, level: str, event: str, fields: dict[str, Any]) -> None:
        if _LEVELS[level] < self._least:
            return
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())
        line = {"time": f"{moment}Z", "level": level, "node": self._node, "event": event, **fields}
        try:
            print(json.dumps(line, default=str), file=self._stream, flush=True)
        except (OSError, ValueError):  # nobody reads any more: a node goes on
            self._least = len(_LEVELS)
