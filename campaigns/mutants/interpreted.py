"""A pytest plugin: kernel code as plain Python, for tests of small worlds.

Compiling the kernel takes half a minute, and for every mutant in it (or in `node`, whose constants
are compiled in) anew. A world of some ten tasks is played by the interpreter in milliseconds.
Of tests by Hypothesis, which meet many worlds, only a few examples are tried, and these first.
"""

import functools
from collections.abc import Callable
from typing import Any

import hypothesis
import numba
import numpy as np
import pytest

_EXAMPLES = 8
_SETTINGS = "_hypothesis_internal_use_settings"


def _as_records(value: Any) -> Any:
    """Arrays of structures so that their fields are attributes, as in compiled code."""
    if isinstance(value, np.ndarray):
        return value.view(np.recarray) if value.dtype.names else value
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(_as_records, value))
    return value


def _plain(function: Any) -> Any:
    function.py_func = function  # some tests ask compiled functions for this
    return function


def _called_from_python(function: Callable[..., Any]) -> Any:
    @functools.wraps(function)
    def called(*given: Any, **named: Any) -> Any:
        named = {name: _as_records(value) for name, value in named.items()}
        # Compiled code divides by zero and overflows without a word.
        with np.errstate(all="ignore"):
            return function(*map(_as_records, given), **named)

    return _plain(called)


def _njit(cache: bool = False, **_: Any) -> Callable[..., Any]:
    """What `world.compiled` asks for: only functions that Python calls are kept on disk."""
    return _called_from_python if cache else _plain


vars(numba)["njit"] = _njit


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Function]) -> None:
    """Tests of many examples come first, with few of them."""
    for item in items:
        usual = getattr(item.obj, _SETTINGS, None)
        if usual is not None:
            few = hypothesis.settings(usual, max_examples=min(usual.max_examples, _EXAMPLES))
            setattr(item.obj, _SETTINGS, few)
    items.sort(key=lambda item: not hasattr(item.obj, _SETTINGS))
