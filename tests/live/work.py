"""Handlers, as users write them."""

import os
import time


def upper(kind, content, cycles, budget_ms):
    assert kind in ("text", "")
    return content.upper()


def sleep(kind, content, cycles, budget_ms):
    time.sleep(600.0)
    return b""


def picky(kind, content, cycles, budget_ms):
    if content == b"bad":
        raise ValueError("not that")
    if content == b"die":
        os._exit(3)
    return content
