"""The page of `cosmo live run`: the report's page, with simulator against real nodes in it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cosmo
from cosmo.live.bed.compare import Compared
from cosmo.live.bed.plan import BedPlan, bed_plan_text
from cosmo.live.bed.results import Standing, difference_told, pace_told, sentence
from cosmo.study.page import write_findings

_HEADER = [
    "method", "arrivals", "tasks/s", "slower", "episodes", "simulator", "live", "live − simulator",
    "same fate", "updates/s, simulator", "updates/s, live", "timers p99 ms", "decisions p99 ms",
    "failed calls", "fallbacks",
]  # fmt: skip
_EPISODES = ["method", "tasks/s", "slower", "run", "episode", "simulator", "live", "timers p99 ms"]


def write_live_page(
    plan: BedPlan, found: Sequence[Standing], rows: Sequence[Compared], path: Path
) -> None:
    """Write one HTML file: the verdict, a chart, a row for every comparison, all episodes."""
    data = {
        "subtitle": f"{plan.description or plan.name} · seeds {', '.join(map(str, plan.seeds))},"
        f" {plan.episodes} episodes of each · {plan.scenario}, {plan.transport}",
        "live": [_row(each) for each in found],
        "liveHeader": _HEADER,
        "tables": [{"title": "Episode by episode", "header": _EPISODES, "rows": _episodes(rows)}],
        "about": _about(plan),
    }
    write_findings(f"CoSMO on real nodes: {plan.name}", sentence(plan, found), data, path)


def _row(each: Standing) -> dict[str, Any]:
    return {
        "method": each.method,
        "load": f"{each.rate:g} tasks/s, {pace_told(each.scale)}",
        "simulated": each.simulated,
        "live": each.live,
        "valid": each.valid,
        "cells": [
            *(each.method, each.arrivals, f"{each.rate:g}", f"{each.scale:g}×", each.episodes),
            *(f"{each.simulated:.3f}", f"{each.live:.3f}"),
            difference_told(each) if each.valid else "no verdict",
            *(f"{each.same:.3f}", f"{each.simulated_updates:.1f}", f"{each.live_updates:.1f}"),
            *(f"{each.timer_p99_ms:.2f}", f"{each.decision_p99_ms:.2f}"),
            *(each.errors, each.faults),
        ],
    }


def _episodes(rows: Sequence[Compared]) -> list[list[Any]]:
    return [
        [
            *(row.method, f"{row.rate:g}", f"{row.scale:g}×", row.seed, row.episode),
            *(f"{row.simulated:.3f}", f"{row.live:.3f}"),
            f"{row.timer_p99_ms:.2f}" + ("" if row.valid else " (no verdict)"),
        ]
        for row in rows
    ]


def _about(plan: BedPlan) -> list[tuple[str, str]]:
    return [
        (
            "p",
            f"Made by cosmo {cosmo.__version__}. Daemons of this machine did what the simulator"
            " had computed, on the same tasks. Methods that go by statuses take another path after"
            " one differing decision: compare means, not tasks. Lateness of timers is the worst of"
            " the load generator's and the daemons', in ms of the nodes; where its 99th percentile"
            f" is above {plan.most_late_ms:g} ms, or calls failed, there is no verdict.",
        ),
        ("p", "The plan; measure it again with cosmo live run FILE:"),
        ("pre", bed_plan_text(plan)),
    ]
