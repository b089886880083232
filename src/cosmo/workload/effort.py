"""How much an episode is to compute, estimated before it is drawn: what would not end is refused.

Counted are tasks, background tasks, changes of a modulated process, link rates that are drawn, and
a look of every SN each 100 ms, all as expected. An episode of the paper has some 3 000 of them.
"""

import os

from cosmo.errors import InputError
from cosmo.scenario import Scenario

LIMIT = "COSMO_MOST_EVENTS"  # the variable that lifts the limit
_MOST_EVENTS = 2_000_000  # of an episode: minutes of computing, a gigabyte
_EPISODES = 50  # so many of the largest may be played in one go
_LOOK_MS = 100.0


def expected_events(scenario: Scenario, window_ms: float, tasks: float | None = None) -> float:
    """Of an episode; with `tasks` given, these are not drawn."""
    load, other, fading = scenario.workload, scenario.background, scenario.fading
    found = scenario.en.count * load.rate * window_ms / 1000.0 if tasks is None else tasks
    if tasks is None and load.wave is not None:
        found *= 1.0 + load.wave.amplitude  # candidates, of which some are kept
    if tasks is None and load.arrivals == "bursty":
        found += scenario.en.count * 2.0 * window_ms / sum(load.burst.dwell_ms)
    for rates, dwell in zip(
        *(other.each(name, scenario.sn.count) for name in ("rates", "dwell_ms")), strict=True
    ):
        if any(rates):
            found += max(rates) * window_ms / 1000.0 + 2.0 * window_ms / sum(dwell)
    for nodes in (scenario.en, scenario.sn):
        if nodes.speed is not None:
            found += nodes.count * 2.0 * window_ms / sum(nodes.speed.dwell_ms)
    if scenario.sn.outage is not None:
        each = scenario.sn.outage.up_ms + scenario.sn.outage.down_ms
        found += scenario.sn.count * 2.0 * window_ms / each
    if fading.factors != (1.0, 1.0):
        found += 2.0 * len(scenario.links) * window_ms / fading.period_ms
    return found + scenario.sn.count * window_ms / _LOOK_MS


def check_effort(scenario: Scenario, window_ms: float, tasks: float | None = None) -> None:
    """Refuse an episode that is too long to compute."""
    _check("an episode", expected_events(scenario, window_ms, tasks), most_events())


def check_episodes(scenario: Scenario, episodes: int, tasks: float | None = None) -> None:
    """Refuse more episodes than can be played in one go: what becomes of them is kept."""
    each = expected_events(scenario, scenario.episode.window_ms, tasks)
    _check(f"{episodes} episodes", episodes * each, _EPISODES * most_events())


def most_events() -> float:
    """What an episode may have."""
    text = os.environ.get(LIMIT, str(_MOST_EVENTS))
    try:
        limit = float(text)
    except ValueError:
        limit = 0.0
    if not limit >= 1.0:
        raise InputError(f"{LIMIT} = {text!r}: must be a number from 1 on")
    return limit


def _check(what: str, events: float, most: float) -> None:
    if not events <= most:
        raise InputError(
            f"workload: {what} of about {events:.2g} events (tasks, background, link rates, looks"
            f" of SNs), more than {most:.2g}; shorten it, or set {LIMIT} to allow more"
        )
