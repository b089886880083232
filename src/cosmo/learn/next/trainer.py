"""Training of `cosmo-next`: rounds of playing at all loads and fitting, for a stack of runs."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from cosmo.errors import InputError
from cosmo.learn.next import fit
from cosmo.learn.next.config import NextConfig, ScheduleConfig
from cosmo.learn.next.experience import Chances, Experience, MakeDispatcher, run_rows_of, some_load
from cosmo.learn.next.returns import baseline, earned_by, load_terms, returns
from cosmo.learn.next.worth import Worth, earned_after
from cosmo.learn.run import TRAINING_EPISODES, Arrays, Curve, Run
from cosmo.measure import episode_metrics
from cosmo.policy.controller import named_layers
from cosmo.policy.controller_fields import Fields
from cosmo.policy.next.agents import NextAgents
from cosmo.policy.next.arrival_rates import SIZE as LOAD
from cosmo.policy.next.settings import settings_at, settings_from
from cosmo.policy.next.values import chance_shapes, value_shapes
from cosmo.seeds import Purpose, stream
from cosmo.world import site_of

_FITTED = ("local", "remote", "load", "chance")


class NextTrainer:
    """Trains a stack of runs of one scenario, with the interface of `Trainer`."""

    def __init__(self, runs: Sequence[Run], config: NextConfig) -> None:
        first = runs[0].scenario
        if any(run.scenario != first for run in runs):
            raise InputError("runs of cosmo-next are trained on one scenario, for all its loads")
        if first.engine != "embedded":
            raise InputError(
                f"engine = {first.engine!r}: cosmo-next is trained on many worlds at once, which"
                " only the engine embedded has; evaluate it on others"
            )
        self.runs, self.config = tuple(runs), config
        episode = first.episode.model_copy(update={"window_ms": config.window_ms, "warmup_ms": 0.0})
        self._scenario = first.model_copy(update={"episode": episode})
        self._settings = settings_from(Fields(config.model_dump(), "training"))
        site = site_of(first)
        if len(first.links) < first.en.count * first.sn.count:
            raise InputError(
                "backhaul.reach: cosmo-next is trained where every EN reaches every SN; it acts"
                " anywhere"
            )
        self._places = np.maximum(site.places(site.sn), 1.0)
        self._site_settings = settings_at(self._settings, site)
        self._unit_ms = site.tasks.deadline_ms[1]  # what the configuration counts time in
        self._run_rows = run_rows_of(len(runs), config.worlds)
        en = config.en
        shapes = value_shapes(en.hidden, en.joint) | chance_shapes(en.chance_hidden)
        start = [_initial(shapes, stream(run.seed, Purpose.NETWORKS, 0)) for run in runs]
        p = {name: np.stack([each[name] for each in start]) for name in shapes}
        self._fit: Any = fit.started(p, en.gradient_clip)
        terms = load_terms(np.zeros((1, LOAD)), np).shape[1]
        self._baseline = np.zeros((len(runs), terms), np.float32)
        self._kept: list[Arrays] = []
        self._worth = Worth(len(runs), config.sn.ridge, config.sn.confidence)
        self.episode = 0

    def pretrain(self) -> None:
        """Do nothing: `cosmo-next` needs no pretraining."""

    def agents(self) -> NextAgents:
        """The present agents of every run, with averaged weights."""
        en = {name: np.asarray(value) for name, value in self._fit["average"].items()}
        sn = {"worth": self._worth.weights(), "doubt": self._worth.doubt()}
        return NextAgents(en, sn, self._settings)

    def train_episode(self) -> list[Curve]:
        """Train every run for one round."""
        config, number = self.config, self.episode
        played = self._played()
        played.play()
        rows = played.decisions()
        earned = earned_by(rows["succeeded"], rows["failed"], config.en.failure)
        self._learn_values(rows, earned)
        if number >= config.sn.from_share * config.episodes:
            self._learn_worth(played, rows, earned)
        self.episode += 1
        return self._curves(played)

    def _played(self) -> Experience:
        config, episodes, random, shares = self.config, [], [], []
        for run in self.runs:
            draw = stream(run.seed, Purpose.EXPLORATION, TRAINING_EPISODES + self.episode)
            first = TRAINING_EPISODES + self.episode * config.worlds
            for world in range(config.worlds):
                episodes.append(
                    some_load(self._scenario, config.loads, draw, run.seed, first + world)
                )
                random.append(stream(run.seed, Purpose.DISPATCHER, first + world))
            shares.append(draw.choice(config.sn.send_shares, config.worlds))
        act = MakeDispatcher(self.agents().en, self._run_rows, self._settings, _compiled)
        look_ms = config.sn.look * self._unit_ms
        chances = Chances(random, config.en.exploration, np.concatenate(shares), look_ms)
        return Experience(self._scenario, episodes, act, self._settings, chances)

    def _learn_values(self, rows: Arrays, earned: NDArray[np.floating]) -> None:
        number, schedule = self.episode, self.config.schedule
        run = self._run_rows.run[rows["world"]]
        own = [np.flatnonzero(run == each) for each in range(len(self.runs))]
        for each, mine in enumerate(own):
            new = baseline(rows["before/load"][mine], earned[mine])
            weight = 1.0 if number < schedule.fresh_rounds else schedule.baseline_weight
            self._baseline[each] += weight * (new - self._baseline[each])
        if number < schedule.fresh_rounds:
            self._kept = []
        self._kept = [*self._kept, self._lessons(rows, own)][-self.config.en.kept_rounds :]
        self._refit()

    def _lessons(self, rows: Arrays, own: list[NDArray[np.int64]]) -> Arrays:
        """Samples of a round: inputs and targets of some decisions of each run, whose rows are
        `own`.
        """
        config, number = self.config.en, self.episode
        # Runs have different numbers of decisions; shorter ones are padded with their own.
        length = self._length()
        padded = [np.resize(mine, length) for mine in own]
        stacked = {
            name: np.stack([value[mine] for mine in padded]).astype(np.float32)
            for name, value in rows.items()
            if "/" in name or name in ("elapsed", "action")
        }
        judged = fit.judged(
            self._fit["average"],
            stacked,
            self._places.astype(np.float32),
            self._baseline[:, None],
            config.tasks,
            config.task_shift,
            self._site_settings,
        )
        found = {name: np.asarray(value) for name, value in judged.items()}
        trace = trace_at(number / self.config.episodes, config.trace, self.config.schedule)
        columns: dict[str, list[NDArray[Any]]] = {}
        for each, mine in enumerate(own):
            mine = mine[:length]
            count = len(mine)
            sequence = rows["world"][mine] * self._scenario.en.count + rows["en"][mine]
            target, known = returns(
                sequence,
                rows["time"][mine],
                rows["explores"][mine],
                found["found"][each, :count],
                found["left"][each, :count],
                config.horizon * self._unit_ms,
                trace,
            )
            random = stream(self.runs[each].seed, Purpose.COLLECTION, TRAINING_EPISODES + number)
            chosen = random.choice(np.flatnonzero(known), self._sample())
            for name in _FITTED:
                columns.setdefault(name, []).append(found[name][each][chosen])
            columns.setdefault("target", []).append(target[chosen])
            feasible = rows["feasible"][mine][chosen, 1:].astype(np.float32)
            columns.setdefault("feasible", []).append(feasible)
        return {name: np.stack(column) for name, column in columns.items()}

    def _refit(self) -> None:
        """On all rounds that are kept; while there are few of them, they stand in for more, so that
        arrays have one shape.
        """
        config, number = self.config.en, self.episode
        kept = [self._kept[k % len(self._kept)] for k in range(config.kept_rounds)]
        data = {name: np.concatenate([each[name] for each in kept], axis=1) for name in kept[0]}
        after = fit.fitted(
            self._fit,
            data,
            number,
            np.float32(self._rate()),
            np.float32(config.averaging),
            config.gradient_clip,
            config.steps,
            config.batch,
        )
        self._fit = jax.tree.map(np.asarray, after)

    def _rate(self) -> float:
        done = self.episode / self.config.episodes
        return rate_at(done, self.config.en.learning_rate, self.config.schedule)

    def _learn_worth(self, played: Experience, rows: Arrays, earned: NDArray[np.floating]) -> None:
        looks, horizon = played.looks(), self.config.sn.horizon * self._unit_ms
        relative = earned.astype(np.float64) - rows["feasible"].any(axis=1)
        after = earned_after(
            looks["world"], looks["time"], rows["world"], rows["time"], relative, horizon
        )
        whole = looks["time"] + horizon <= self.config.window_ms
        run = self._run_rows.run[looks["world"]]
        for each in range(len(self.runs)):
            mine = whole & (run == each)
            self._worth.add(
                each, looks["change"][mine], looks["send"][mine], looks["share"][mine], after[mine]
            )

    def _sample(self) -> int:
        """Decisions a run learns from in a round: what its worlds have on average."""
        interest = self._scenario.workload.rates_of_interest
        loads = self.config.loads
        rate = 0.5 * (loads.below * min(interest) + loads.above * max(interest))
        tasks = rate * self.config.worlds * self.config.window_ms / 1000.0
        return max(1, int(0.95 * tasks * self._scenario.en.count))

    def _length(self) -> int:
        """So many at most, whatever the loads: arrays of one shape are compiled once."""
        return int(1.5 * self._sample()) + 64

    def _curves(self, played: Experience) -> list[Curve]:
        found: list[Curve] = []
        dimensions = self._settings.dimensions
        for run in range(len(self.runs)):
            worlds = np.flatnonzero(self._run_rows.run == run)
            metrics = [
                episode_metrics(self._scenario, played.outcomes[int(world)], dimensions)
                for world in worlds
            ]
            mean = {
                name: float(np.nanmean([each[name] for each in metrics]))
                for name in ("success_rate", "decision_accuracy", "update_cost_rate")
            }
            utility = float(np.mean([each["utility_per_task"] for each in metrics]))
            found.append({"reward": utility, "epsilon": self.config.en.exploration, **mean})
        return found

    def delivered(self) -> Arrays:
        """The arrays of the trained controller, as `cosmo.policy` reads them."""
        agents = self.agents()
        return named_layers("en", agents.en) | named_layers("sn", agents.sn)

    def saved(self) -> Arrays:
        """The state that a resumed training needs, as plain arrays."""
        kept: Arrays = {
            "episode": np.array(self.episode),
            "baseline": self._baseline,
            "worth/square": self._worth.square,
            "worth/cross": self._worth.cross,
            "worth/noise": self._worth.noise,
        }
        leaves = jax.tree.leaves(self._fit)
        kept |= {f"fit.{place}": np.asarray(leaf) for place, leaf in enumerate(leaves)}
        for place, rows in enumerate(self._kept):
            kept |= {f"kept{place}/{name}": value for name, value in rows.items()}
        return kept

    def restore(self, kept: Arrays) -> None:
        """The inverse of `saved`."""
        self.episode = int(kept["episode"])
        self._baseline = kept["baseline"]
        self._worth.square, self._worth.cross = kept["worth/square"], kept["worth/cross"]
        self._worth.noise = kept["worth/noise"]
        leaves, shape = jax.tree.flatten(self._fit)
        self._fit = jax.tree.unflatten(shape, [kept[f"fit.{k}"] for k in range(len(leaves))])
        self._kept = []
        for place in range(self.config.en.kept_rounds):
            start = f"kept{place}/"
            rows = {k.removeprefix(start): v for k, v in kept.items() if k.startswith(start)}
            if rows:
                self._kept.append(rows)


def _compiled(*known: Any) -> tuple[Any, Any, Any]:
    advantage, fate, rejected = fit.weighed(*known)
    return np.asarray(advantage), np.asarray(fate), np.asarray(rejected)


def _initial(shapes: dict[str, tuple[int, ...]], random: np.random.Generator) -> Arrays:
    """He's initialisation; values start near 0."""
    found: Arrays = {}
    for name, shape in shapes.items():
        if name.endswith(".b"):
            found[name] = np.zeros(shape, np.float32)
        else:
            spread = np.sqrt(2.0 / shape[0]) * (0.01 if name == "value.w" else 1.0)
            found[name] = (spread * random.standard_normal(shape)).astype(np.float32)
    return found


def trace_at(done: float, final: float, config: ScheduleConfig) -> float:
    """λ when the share `done` of the rounds is done.

    While values are far off, long returns put them right in fewer rounds; later, short ones have
    less noise.
    """
    early = max(0.0, 1.0 - done / config.early)
    return final + early * max(0.0, config.first_trace - final)


def rate_at(done: float, first: float, config: ScheduleConfig) -> float:
    """The learning rate: constant, then falling to almost 0, which reduces noise."""
    return first * min(1.0, (1.0 - done) / (1.0 - config.constant) + config.last)
