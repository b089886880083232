"""The two streams that a command writes to: what they cannot show, and when they are full."""

import codecs
import os
import sys
from contextlib import suppress
from typing import TextIO

_ESCAPES = "cosmo-escapes"


def prepare() -> None:
    """Have both streams write an escape where they have no sign for a character, as in ASCII."""
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
    """A character as an escape in ASCII."""
    code = ord(sign)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def one_line(text: str) -> str:
    """The text with escapes for line breaks and all else that does not print."""
    return "".join(sign if sign.isprintable() else escape(sign) for sign in text)


def abandon(stream: TextIO) -> None:
    """Nobody takes what is written there: do not try again when Python ends."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
