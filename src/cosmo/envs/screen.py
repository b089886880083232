"""A picture of an episode in progress: work at the nodes, and what has become of tasks.

`rgb_array` needs no display; `human` shows the same picture in a window. On a machine without a
display nothing is shown, so that code and checks that ask for a window run there, too.
"""

import os
import sys
from collections import Counter, deque
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosmo.errors import InputError
from cosmo.measure import OUTCOME_NAMES
from cosmo.node import WORK, Site
from cosmo.scenario import Scenario
from cosmo.world import Batch, Decisions

MODES = ["rgb_array", "human"]
FPS = 10
_SHOWN_MS = 2000.0
_SIZE_INCHES, _DPI = (6.4, 3.6), 100
_OUTCOMES = ("TP", "TN", "FP", "FN")


def check_mode(mode: str | None) -> None:
    """Refuse modes that do not exist."""
    if mode is not None and mode not in MODES:
        raise InputError(f"render_mode = {mode!r}: must be {' or '.join(map(repr, MODES))}")


def _has_display() -> bool:
    displays = ("DISPLAY", "WAYLAND_DISPLAY")
    return sys.platform != "linux" or any(map(os.environ.get, displays))


class Screen:
    """Follows one world and draws its last two seconds."""

    def __init__(self, scenario: Scenario, site: Site) -> None:
        self._name, self._site = scenario.name, site
        self._window: Any = None
        self.clear()

    def clear(self) -> None:
        """Forget the previous episode, at the start of the next one."""
        self._lines: dict[str, deque[tuple[float, float]]] = {}
        self._counts: Counter[str] = Counter()
        self._now = 0.0

    def note(self, turn: Decisions, worlds: Batch, outcomes: Iterable[int]) -> None:
        """Keep what the first world's pending decisions show, and what has become final there."""
        site = self._site
        self._counts.update(OUTCOME_NAMES[int(outcome)] for outcome in outcomes)
        tasks, nodes = turn.dispatch, turn.update
        for row in np.flatnonzero(tasks.world == 0).tolist():
            en, now = int(tasks.en[row]), float(tasks.time_ms[row])
            self._add(f"EN {en}", now, tasks.en_state[row, WORK] / site.en.full_rate[en])
            true = worlds.truth().sn_state[row]
            for place, sn in enumerate(tasks.sn[row].tolist()):
                if sn >= 0:  # an EN may reach fewer than others
                    self._add(f"SN {sn}", now, true[place, WORK] / site.sn.full_rate[sn])
        for row in np.flatnonzero(nodes.world == 0).tolist():
            sn, now = int(nodes.sn[row]), float(nodes.time_ms[row])
            self._add(f"SN {sn}", now, nodes.sn_state[row, WORK] / site.sn.full_rate[sn])

    def _add(self, name: str, now: float, work_ms: float) -> None:
        self._now = now
        line = self._lines.setdefault(name, deque())
        line.append((now, float(work_ms)))
        while line[0][0] < now - _SHOWN_MS:
            line.popleft()

    def image(self) -> NDArray[np.uint8]:
        """[row, column, (red, green, blue)]."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        figure = Figure(figsize=_SIZE_INCHES, dpi=_DPI, layout="constrained")
        canvas = FigureCanvasAgg(figure)
        works, outcomes = figure.subplots(1, 2, width_ratios=(3, 1))
        now = self._now
        for name, line in sorted(self._lines.items()):
            works.plot(*zip(*line, strict=True), label=name, drawstyle="steps-post")
        works.set(xlim=(now - _SHOWN_MS, max(now, 1.0)), xlabel="time (ms)", ylim=(0.0, None))
        works.set_ylabel("outstanding work (ms)")
        works.set_title(f"{self._name}, {now:.0f} ms", loc="left")
        if self._lines:
            works.legend(loc="upper left", frameon=False)
        outcomes.bar(_OUTCOMES, [self._counts[name] for name in _OUTCOMES])
        outcomes.set_title("tasks so far", loc="left")
        canvas.draw()  # type: ignore[no-untyped-call]
        pixels = canvas.buffer_rgba()  # type: ignore[no-untyped-call]
        return np.asarray(pixels, np.uint8)[..., :3].copy()

    def show(self) -> None:
        """The picture in a window, if there is a display."""
        if not _has_display():
            return
        from matplotlib import pyplot

        if self._window is None:
            self._window = pyplot.figure(figsize=_SIZE_INCHES, dpi=_DPI)
        self._window.clear()
        self._window.figimage(self.image())
        pyplot.pause(1.0 / FPS)

    def close(self) -> None:
        """Close the window, if there is one."""
        if self._window is not None:
            from matplotlib import pyplot

            pyplot.close(self._window)
            self._window = None
