"""The EN of a crowd: a chance for each route, a price on capacity, and a little chance."""

import numpy as np
from numpy.typing import NDArray

from cosmo.node import Dispatcher, DispatchObservation, Feedback, Site
from cosmo.policy.chance import DrawPerTask
from cosmo.policy.next.crowd.books import Books
from cosmo.policy.next.crowd.formulas import chance, faded, later, smoothed, still_full
from cosmo.policy.next.crowd.ground import ground_of
from cosmo.policy.next.crowd.numbers import Numbers

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class CrowdDispatcher(Dispatcher):
    """Takes the route that is worth most, if it is worth anything."""

    def __init__(self, site: Site, p: Numbers) -> None:
        self._site = site
        self.numbers = p
        self.ground = ground_of(site, p)
        self.books = Books(site, self.ground, p)
        self.draws = DrawPerTask(site, self.ground.kept.shape[1])
        cells = site.worlds, len(site.en)
        self.load, self.load_at = np.zeros(cells), np.zeros(cells)

    def observe(self, feedback: Feedback) -> None:
        """Results and refusals are news."""
        self.books.observe(feedback)

    def decide(self, tasks: DispatchObservation) -> Ints:
        """The choice, written into the books."""
        p, site, place = self.numbers, self._site, (tasks.world, tasks.en)
        self.books.take_status(tasks)
        upload = site.upload_ms(tasks)
        gain = self.books.gain(*place, tasks.time_ms)
        in_time, delay = self.expected(tasks, upload, gain)
        price, price_home = self._prices(tasks)
        worth = in_time - p.failure * (1.0 - in_time) - price[:, None]
        longest = self.ground.longest_ms
        score = worth - p.haste * delay / longest + p.noise * self.draws.all_of(tasks)
        score = np.where(self.ground.kept[tasks.en], score, -np.inf)
        served = tasks.local_wait_ms + tasks.cycles / site.en.cycles_per_ms[tasks.en]
        home = tasks.local_room & (served <= tasks.slack_ms)
        worth_home = 1.0 - price_home
        score_home = np.where(home, worth_home + p.home - p.haste * served / longest, -np.inf)
        best = score.argmax(axis=1)
        rows = np.arange(len(tasks))
        remote = score[rows, best] > score_home
        good = np.where(remote, worth[rows, best], np.where(home, worth_home, -1.0)) > 0.0
        actions = np.where(good, np.where(remote, best + 1, 0), tasks.reject)
        sent = np.flatnonzero(good & remote)
        if len(sent):
            column = best[sent]
            arrival = tasks.time_ms[sent] + upload[sent, column]
            self.books.send(tasks, sent, column, arrival, gain[sent, column])
        return actions

    def expected(
        self, tasks: DispatchObservation, upload: Floats, gain: Floats
    ) -> tuple[Floats, Floats]:
        """[row, k] the chance that a task is in time at each SN, and its delay from now on."""
        p, books, place = self.numbers, self.books, (tasks.world, tasks.en)
        now = tasks.time_ms[:, None]
        upload = np.where(tasks.reached, upload, 0.0)
        elapsed = np.maximum(now + upload - books.work_at[place], 0.0)
        work = later(books.work[place], elapsed, gain, p)
        wait = np.maximum(work - p.ease * self.ground.ease_ms[tasks.sn], 0.0)
        service = tasks.cycles[:, None] / self._site.sn.cycles_per_ms[tasks.sn]
        delay = upload + wait + service + self._site.links.result_ms[tasks.en]
        full = still_full(now - books.full_at[place], p)
        blame = faded(books.blame[place], now - books.blame_at[place], p.blame_ms)
        slack = tasks.slack_ms[:, None] - delay
        return chance(slack, now - books.source[place], gain, full, blame, p), delay

    def _prices(self, tasks: DispatchObservation) -> tuple[Floats, Floats]:
        """[row] of the capacity that a task takes, at an SN and at the EN itself, by its load."""
        p, place = self.numbers, (tasks.world, tasks.en)
        share = tasks.cycles / self.ground.capacity[tasks.en]
        gap = np.maximum(tasks.generated_ms - self.load_at[place], 0.0)
        load = smoothed(self.load[place], share, gap, p.load_ms)
        self.load[place], self.load_at[place] = load, tasks.generated_ms
        beyond = np.maximum(load - p.price_from, 0.0) * tasks.cycles / self._site.tasks.mean_cycles
        return p.price * beyond, p.price_home * beyond
