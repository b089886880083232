"""Standard output and error: characters that they cannot show, and streams that are closed."""

import codecs
import os
import sys
from contextlib import suppress
from typing import TextIO

_ESCAPES = "cosmo-escapes"


_STREAMS = ("stdin", "r"), ("stdout", "w"), ("stderr", "w")
_COLUMNS = 40, 500  # of a terminal, as far as tables are drawn for it


def prepare() -> None:
    """Make both streams write an escape for characters that they cannot encode.

    A stream that is closed is refused when it is written to, and no file takes its number. A
    terminal whose variable `COLUMNS` cannot be meant has the next width that can.
    """
    for name, mode in _STREAMS:
        if getattr(sys, name) is None:
            # The lowest number that is free. Standard output refuses to be written to.
            access = os.O_RDONLY if name == "stdout" else os.O_RDWR
            setattr(sys, name, os.fdopen(os.open(os.devnull, access), mode))
    columns = os.environ.get("COLUMNS", "")
    if columns.isascii() and columns.isdecimal():
        least, most = _COLUMNS
        os.environ["COLUMNS"] = str(min(max(int(columns[:9]), least), most))
    codecs.register_error(_ESCAPES, _escaped)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=_ESCAPES)


def has_folder() -> bool:
    """Whether the folder that this process works in is still there."""
    try:
        return bool(os.getcwd())
    except OSError:
        return False


def _escaped(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    signs = error.object[error.start : error.end]
    return "".join(map(escape, signs)), error.end


def escape(sign: str) -> str:
    """The ASCII escape of a character."""
    code = ord(sign)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def one_line(text: str) -> str:
    """The text with escapes for line breaks and other unprintable characters."""
    return "".join(sign if sign.isprintable() else escape(sign) for sign in text)


def abandon(stream: TextIO) -> None:
    """The reader has closed the stream: do not write to it again when Python ends."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
