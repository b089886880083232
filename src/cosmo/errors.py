"""What can go wrong that is not a mistake in the code."""

import difflib
from collections.abc import Iterable


class InputError(ValueError):
    """Bad input: the message is one line that names the field, the value and what is allowed."""


class EngineError(RuntimeError):
    """An engine of others failed or did not answer: one line that names the world by its seed."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`, did you mean NAME?` if one of the known names is close to the word, else nothing."""
    close = difflib.get_close_matches(word, list(known), n=1)
    return f", did you mean {close[0]}?" if close else ""
