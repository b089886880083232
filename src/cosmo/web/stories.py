"""Guided stories of the playground, from `stories.toml`."""

import tomllib
from importlib import resources
from typing import Any

from cosmo.scenario import load
from cosmo.web.settings import values_of


def stories() -> list[dict[str, Any]]:
    """All of them: a title, what is chosen for it, and words with the seconds when they appear."""
    text = resources.files("cosmo.web").joinpath("stories.toml").read_text(encoding="utf-8")
    return [
        {
            "title": each["title"],
            "speed": each["speed"],
            "begin_ms": each.get("begin_ms", 100.0),
            "chosen": {
                "scenario": each["scenario"],
                "methods": each["methods"],
                "numbers": values_of(load(each["scenario"])) | each["numbers"],
            },
            "steps": each["steps"],
        }
        for each in tomllib.loads(text)["story"]
    ]
