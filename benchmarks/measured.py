"""What benchmarks share: their size, a clock, and what is not installed here.

`--small` runs the same code on sizes of seconds: to see that it runs, not how fast.
"""

import sys
import time
from collections.abc import Callable
from typing import TypeVar

from cosmo.errors import InputError
from cosmo.ns3 import library

SMALL = "--small" in sys.argv[1:]

Size = TypeVar("Size")


def sized(usual: Size, small: Size) -> Size:
    """The usual size, or the one of `--small`."""
    return small if SMALL else usual


def seconds(work: Callable[[], object]) -> float:
    """Wall time of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def ns3_ready() -> bool:
    """Whether ns-3 can be used; a small run installs nothing, and says so."""
    if not SMALL:
        library.install()
        return True
    try:
        library.ns3_folder()
    except InputError as missing:
        print(f"ns-3 is left out: {missing}")
        return False
    return True
