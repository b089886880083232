"""One episode of every run of a stack: acting, and turning outcomes into transitions.

A task's utility is credited to the nodes that took part in it: to the EN that decided, and to every
SN that this EN reaches, as the decision was made on all their statuses.

Worlds advance in lockstep, one decision of each run a turn. What a run does depends on its own
turns alone: a run that is over early just waits for the others.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cosmo.engine import worlds as start
from cosmo.learn import en_agent, sn_agent
from cosmo.learn.config import EN_EXTRA, TrainingConfig
from cosmo.learn.coordinator import Intervals
from cosmo.learn.replay import Replay, SequenceReplay
from cosmo.learn.turn import act
from cosmo.learn.turn_memory import Chance, Networks, Notes, Pairs, Scales, Sizes
from cosmo.measure import utility, weights_of
from cosmo.node import Site
from cosmo.policy.features import Features
from cosmo.scenario import Scenario
from cosmo.workload import Episode
from cosmo.workload.table import RETURNS
from cosmo.world import site_of
from cosmo.world.records import FP
from cosmo.world.turns import SETTLED_ROWS

Ints = NDArray[np.int64]


class Rollout:
    """Worlds of one episode, the decisions in them, and what is owed to the replays.

    `random` are the runs' streams of exploration; without them the agents act greedily. `steps`
    counts the decisions of EN and SN agents for ε (R24).
    """

    def __init__(
        self,
        scenario: Scenario,
        config: TrainingConfig,
        episodes: Sequence[Episode],
        random: Sequence[np.random.Generator] | None = None,
        steps: tuple[Ints, Ints] | None = None,
    ) -> None:
        self._scenario, self._config = scenario, config
        self._weights = weights_of(scenario)
        self.worlds = start(scenario, episodes, config.dimensions)
        runs, counts = len(episodes), [len(each.tasks) for each in episodes]
        most, site = max(counts), site_of(scenario)
        sns, self._pairs = scenario.links.most_sns, Pairs.at(site.links)
        streams = runs * self._pairs.links
        self._en_inputs = sum(config.en_inputs(sns))
        returns = max(int((each.events.what == RETURNS).sum()) for each in episodes)
        self.intervals = Intervals(streams, episodes[0].window_ms, config, returns)
        self._sizes = _sizes(scenario, config, episodes[0].window_ms)
        self._scales = _scales(site)
        en_steps, sn_steps = steps or (np.zeros(runs, np.int64), np.zeros(runs, np.int64))
        epochs, actions = [self.intervals.most] * runs, config.sn.actions
        ens, links = scenario.en.count, self._pairs.links
        self._en_chance = _chance(config, random, en_steps, counts, _dispatch_choices(site), ens)
        self._sn_chance = _chance(config, random, sn_steps, epochs, actions, links, links)
        self.notes = Notes(
            rows=np.zeros((runs, most, self._en_inputs + EN_EXTRA), np.float32),
            latest=np.full((runs, scenario.en.count), -1),
            next_task=np.full((runs, most), -1),
            interval=np.zeros((runs, most, sns), np.int64),
            worth=np.ones((runs, most, sns)),
            pairs=self._pairs,
            decisions=self.intervals.count,
            seen=self.intervals.seen,
            before=self.intervals.before,
            action=self.intervals.action,
            start_ms=self.intervals.start_ms,
            length_ms=self.intervals.length_ms,
            reward=self.intervals.reward,
            pending=self.intervals.pending,
            hidden=np.zeros((streams, config.sn.hidden), np.float32),
            intervals_ms=np.array(config.sn.intervals_ms),
            scratch=np.zeros((6, _widest(config, sns)), np.float32),
        )
        self._generated = np.zeros((runs, most))
        self._size = np.zeros((runs, most))
        for run, each in enumerate(episodes):
            self._generated[run, : counts[run]] = each.tasks.time_ms
            self._size[run, : counts[run]] = each.tasks.input_bytes
        self._settled: list[NDArray[np.void]] = []
        self._waiting = (np.zeros(0, np.int64), np.zeros(0, np.int64))  # (run, task), see _write_en
        self.utility = np.zeros(runs)
        self._turn = self.worlds.advance_buffers()

    def play(self, networks: Networks, turns: int) -> bool:
        """So many decisions of each run; whether there are more."""
        for _ in range(turns):
            if self.worlds.all_over:
                return False
            # Hot: everything in the loop but these two calls costs next to nothing.
            act(
                self._sizes,
                self._scales,
                networks,
                self._turn,
                self._en_chance,
                self._sn_chance,
                self.notes,
            )
            self._turn = self.worlds.advance_buffers()
            settled = self._turn.counts[SETTLED_ROWS]
            if settled:
                self._settled.append(self._turn.settled[:settled].copy())
        return not self.worlds.all_over

    def write(self, episode: int, en_replay: Replay, sn_replay: SequenceReplay) -> None:
        """Finished tasks, and intervals whose tasks are all final, go to the replays."""
        if self._settled:
            self._write_en(en_replay, self._settle_tasks())
        elif len(self._waiting[0]):
            self._write_en(en_replay, (np.zeros(0, np.int64), np.zeros(0, np.int64)))
        self._write_intervals(episode, sn_replay)

    def _settle_tasks(self) -> tuple[Ints, Ints]:
        """Note what became of finished tasks, and return (run, task) of each."""
        settled = np.concatenate(self._settled)
        self._settled.clear()
        place = settled["world"].astype(np.int64), settled["task"].astype(np.int64)
        delay = settled["time_ms"] - self._generated[place]
        outcome = settled["outcome"]
        gained = utility(self._weights, settled["action"], outcome, delay, self._size[place])
        told = self._en_inputs
        self.notes.rows[(*place, told + en_agent.UTILITY)] = gained / self._scenario.utility.value
        self.notes.rows[(*place, told + en_agent.FAILED)] = outcome == FP
        sn = self._config.sn
        reward = (sn.utility_weight * (gained + sn.utility_shift))[:, None]
        pair = self._pairs.of_en[settled["en"]]
        took_part = pair >= 0
        self.intervals.settle(
            (place[0][:, None] * self._pairs.links + pair)[took_part],
            self.notes.interval[place][took_part],
            (reward * self.notes.worth[place])[took_part],
        )
        np.add.at(self.utility, place[0], gained)
        return place

    def _write_en(self, replay: Replay, settled: tuple[Ints, Ints]) -> None:
        """Transitions of finished tasks.

        Where values bootstrap, one waits for the EN's next decision, or for the episode's end.
        """
        if not self._config.en.bootstraps:
            replay.write(settled[0], self.notes.rows[settled])
            return
        run, task = (np.concatenate(both) for both in zip(self._waiting, settled, strict=True))
        after = self.notes.next_task[run, task]
        ready = (after >= 0) | self.worlds.over[run]
        self._waiting = run[~ready], task[~ready]
        run, task, after = run[ready], task[ready], after[ready]
        goes_on = (after >= 0)[:, None]
        seen = np.where(goes_on, self.notes.rows[run, after, : self._en_inputs], 0.0)
        parts = self.notes.rows[run, task], goes_on, seen
        replay.write(run, np.concatenate(parts, axis=1, dtype=np.float32))

    def _write_intervals(self, episode: int, replay: SequenceReplay) -> None:
        done, inputs = self.intervals, self.intervals.seen.shape[2]
        stream, n, terminal = done.complete(np.repeat(self.worlds.over, self._pairs.links))
        if not len(stream):
            return
        start = sn_agent.EXTRA_COLUMNS
        rows = np.zeros((len(stream), start + 2 * inputs + done.before.shape[2]), np.float32)
        rows[:, sn_agent.EPISODE] = episode
        rows[:, sn_agent.ACTION] = done.action[stream, n]
        scale = self._config.sn.reward_scale * self._scenario.utility.value
        rows[:, sn_agent.REWARD] = done.reward[stream, n] / scale
        rows[:, sn_agent.INTERVAL] = done.length_ms[stream, n]
        rows[:, sn_agent.TERMINAL] = terminal
        rows[:, start : start + inputs] = done.seen[stream, n]
        rows[:, start + inputs : -inputs] = done.before[stream, n]
        after = done.seen[stream, np.minimum(n + 1, done.most - 1)]
        rows[:, -inputs:] = np.where(terminal[:, None], 0.0, after)
        replay.write(stream // self._pairs.links, rows, stream)


def _dispatch_choices(site: Site) -> int:
    """How many numbers a random action of an EN is drawn from: as many as there are actions, or, if
    ENs reach different numbers of SNs, a multiple of each one's actions.
    """
    return min(math.lcm(*(site.links.exist.sum(axis=1) + 2).tolist()), 2**62)


def _chance(
    config: TrainingConfig,
    random: Sequence[np.random.Generator] | None,
    steps: Ints,
    counts: Sequence[int],
    choices: int,
    agents: int,
    streams: int = 1,
) -> Chance:
    """An episode's draws, for each run and each of its `streams` of decisions, by the run's own
    generator; without generators nothing is random. `agents` share the count of a run's steps.
    """
    chance = np.ones((len(counts) * streams, max(counts)))
    choice = np.zeros((len(counts) * streams, max(counts)), np.int64)
    for run, own in enumerate(random or ()):
        for row in range(run * streams, (run + 1) * streams):
            chance[row, : counts[run]] = own.random(counts[run])
            choice[row, : counts[run]] = own.integers(0, choices, counts[run])
    decay = config.exploration
    return Chance(steps, decay.start, decay.end, decay.steps * agents, chance, choice)


def _sizes(scenario: Scenario, config: TrainingConfig, window_ms: float) -> Sizes:
    weights, encoder, en, sn = scenario.utility, config.encoder, config.en, config.sn
    return Sizes(
        semantic=encoder.semantic,
        dimensions=config.dimensions,
        encoder_first=encoder.hidden[0],
        encoder_second=encoder.hidden[1],
        remotes=config.remote_inputs,
        branch=en.branch,
        fusion=en.fusion,
        gate_first=en.hierarchical,
        with_age=en.with_age,
        inputs=config.sn_inputs,
        projection=sn.projection,
        hidden=sn.hidden,
        actions=sn.actions,
        stale_loss_weight=float(sn.stale_loss_weight * weights.value),
        price=float(weights.update_weight * weights.update_cost_per_dimension * config.dimensions),
        discount_per_ms=sn.discount_per_ms,
        window_ms=window_ms,
    )


def _widest(config: TrainingConfig, sns: int) -> int:
    """Room for any layer's inputs and outputs."""
    en, sn, remote = config.en, config.sn, config.en_inputs(sns)[1]
    widths = (remote, 2 * en.branch, en.fusion, 3 * sn.hidden, sn.projection, sn.actions, 3 + sns)
    return max(*widths, *config.encoder.hidden, 4)


def _scales(site: Site) -> Scales:
    made, (ens, columns) = Features(site), site.links.reached_by
    return Scales(
        en_state=made.en_scale,
        sn_state=made.sn_scale,
        up_mbps=made.links.up_mbps,
        down_mbps=made.links.down_mbps[ens, columns],  # [SN, k]
        task=made.task_scale,
        delay_ms=made.delay_ms,
        throughput_mbps=made.scales.throughput_mbps,
        residual_ms=made.scales.residual_ms,
        age_ms=made.scales.age_ms,
        most_age=made.scales.most_age,
    )
