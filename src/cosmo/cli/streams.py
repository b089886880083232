"""Standard output and error: characters that they cannot show, and streams that are closed."""

import codecs
import os
import sys
from contextlib import suppress
from typing import TextIO

_ESCAPES = "cosmo-escapes"


def prepare() -> None:
    """Make both streams write an escape for characters that they cannot encode."""
    codecs.register_error(_ESCAPES, _escaped)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=_ESCAPES)


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
