"""CoSMO's training loop in the usual way: eager PyTorch, one run, one decision at a time.

The same world, observations, networks, losses, replays and update schedule as `cosmo.learn`; only
used by `benchmarks/training.py`, which needs `pip install torch` for it.
"""

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from cosmo.learn.config import TrainingConfig
from cosmo.learn.run import TRAINING_EPISODES
from cosmo.measure import utility, weights_of
from cosmo.policy.features import Features
from cosmo.scenario import Scenario
from cosmo.workload import episode
from cosmo.world import Worlds, site_of
from cosmo.world.records import FP


class Encoder(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(
            nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 2)
        )


class Dueling(nn.Module):
    def __init__(self, inputs: int, actions: int) -> None:
        super().__init__()
        self.value, self.advantage = nn.Linear(inputs, 1), nn.Linear(inputs, actions)

    def forward(self, x):
        advantage = self.advantage(x)
        return self.value(x) + advantage - advantage.mean(-1, keepdim=True)


class EnAgent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.local = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU())
        self.remote = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU())
        self.fusion = nn.Sequential(nn.Linear(64, 64), nn.ReLU())
        self.gate, self.route = Dueling(64, 2), Dueling(64, 2)

    def forward(self, x):
        h = self.fusion(torch.cat([self.local(x[:, :10]), self.remote(x[:, 10:])], dim=-1))
        gate, route = self.gate(h), self.route(h)
        accepted = gate[:, 1:] + route - route.max(-1, keepdim=True).values
        return gate, route, torch.cat([accepted, gate[:, :1]], dim=-1)


class SnAgent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.project, self.gru = nn.Linear(11, 32), nn.GRUCell(32, 32)
        self.update = Dueling(32, 18)

    def forward(self, x, hidden):
        hidden = self.gru(functional.relu(self.project(x)), hidden)
        return self.update(hidden), hidden


class TorchTwin:
    """One run, trained episode by episode."""

    def __init__(self, scenario: Scenario, config: TrainingConfig) -> None:
        torch.manual_seed(0)
        torch.set_num_threads(1)
        self._scenario, self._config, self._features = scenario, config, Features(site_of(scenario))
        self._encoder, self._en, self._sn, self._target = Encoder(), EnAgent(), SnAgent(), SnAgent()
        self._target.load_state_dict(self._sn.state_dict())
        self._en_optimizer = torch.optim.Adam(self._en.parameters(), config.en.learning_rate)
        self._sn_optimizer = torch.optim.Adam(self._sn.parameters(), config.sn.learning_rate)
        self._random = np.random.default_rng(0)
        self._en_replay: list = []
        self._sn_replay: list = []
        self._en_steps = self._sn_steps = self._en_seen = self._sn_seen = self._sn_updates = 0
        self._number = 0
        self.updates = [0, 0]

    def _epsilon(self, steps: int) -> float:
        decay = self._config.exploration
        return decay.start + min(steps / decay.steps, 1.0) * (decay.end - decay.start)

    def train_episode(self) -> None:
        scenario, config, features = self._scenario, self._config, self._features
        worlds = Worlds(scenario, [episode(scenario, 0, TRAINING_EPISODES + self._number)], 2)
        self._number += 1
        tasks = worlds.episodes[0].tasks
        pending: dict[int, list] = {}
        intervals: list[dict] = []
        written = 0
        hidden = torch.zeros(1, 32)
        turn = worlds.advance()
        while True:
            settled = worlds.settled()
            for task, action, outcome, time in zip(
                settled.task, settled.action, settled.outcome, settled.time_ms, strict=True
            ):
                delay = np.array([time - tasks.time_ms[task]])
                gained = float(
                    utility(
                        weights_of(scenario), np.array([action]), np.array([outcome]), delay,
                        tasks.input_bytes[task : task + 1],
                    )[0]
                )  # fmt: skip
                seen, chosen, accept, route, interval = pending.pop(int(task))
                failed = float(outcome == FP)
                self._remember(
                    self._en_replay, (seen, chosen, gained / 80.0, failed, accept, route)
                )
                self._en_seen += 1
                interval["reward"] += gained
                interval["pending"] -= 1
                if self._en_seen % config.en.update_every == 0:
                    self._update_en()
            while written < len(intervals) - (not turn.over) and not intervals[written]["pending"]:
                self._remember(self._sn_replay, (self._number, intervals[written], intervals))
                intervals[written]["terminal"] = written == len(intervals) - 1
                written += 1
                self._sn_seen += 1
                if self._sn_seen % config.sn.update_every == 0:
                    self._update_sn()
            if turn.over:
                return
            if len(turn.dispatch):
                seen = turn.dispatch
                with torch.no_grad():
                    local, remote = features.en_local(seen), features.en_remote(seen, False)
                    x = torch.from_numpy(np.concatenate([local, remote], axis=1))
                    gate, route, _ = self._en(x)
                    greedy = 2 if gate[0, 0] >= gate[0, 1] else int(route[0].argmax())
                random = self._random.random() < self._epsilon(self._en_steps)
                action = int(self._random.integers(3)) if random else greedy
                self._en_steps += 1
                truth = worlds.truth()
                feasible = truth.feasible[0]
                best = int(np.where(feasible, truth.delay_ms[0], np.inf).argmin())
                interval = intervals[-1]
                interval["pending"] += 1
                pending[int(seen.task[0])] = [x, action, float(feasible.any()), best, interval]
                worlds.answer(action=[action])
            if len(turn.update):
                nodes = turn.update
                with torch.no_grad():
                    state = torch.from_numpy(features.sn_state(nodes.sn_state, nodes.sn))
                    status = self._encoder(state).numpy()
                    x = torch.from_numpy(features.sn(nodes, status)[:, 0])  # of the one EN
                    before = hidden
                    values, hidden = self._sn(x, hidden)
                    greedy = int(values.argmax())
                random = self._random.random() < self._epsilon(self._sn_steps)
                action = int(self._random.integers(18)) if random else greedy
                self._sn_steps += 1
                length = config.sn.intervals_ms[action % 9]
                worlds.answer(send=[action < 9], interval_ms=[length], numbers=status)
                if nodes.time_ms[0] >= worlds.episodes[0].window_ms:
                    turn = worlds.advance()
                    continue  # R21: on the window's end there is no transition
                cost = 4.0 if action < 9 else 0.0
                intervals.append(
                    {"x": x, "hidden": before, "action": action, "reward": -cost, "pending": 0,
                     "length": length, "terminal": False, "place": len(intervals)}
                )  # fmt: skip
            turn = worlds.advance()

    def _remember(self, replay: list, row: tuple) -> None:
        replay.append(row)
        if len(replay) > self._config.en.replay:
            replay.pop(0)

    def _update_en(self) -> None:
        config, aux = self._config.en, self._config.en.auxiliary
        if len(self._en_replay) < config.batch:
            return
        drawn = self._random.integers(0, len(self._en_replay), config.batch)
        rows = [self._en_replay[k] for k in drawn]
        x = torch.cat([row[0] for row in rows])
        action = torch.tensor([row[1] for row in rows])
        gained, failed, accept = (
            torch.tensor([row[k] for row in rows], dtype=torch.float32) for k in (2, 3, 4)
        )
        best = torch.tensor([row[5] for row in rows])
        gate, route, values = self._en(x)
        taken = values.gather(1, action[:, None])[:, 0]
        loss = functional.smooth_l1_loss(taken, gained)
        loss = loss + aux.gate * functional.cross_entropy(gate, accept.long())
        routes = functional.cross_entropy(route, best, reduction="none")
        loss = loss + aux.route * (routes * accept).sum() / accept.sum().clamp(min=1.0)
        margin = functional.relu(aux.margin_width - (2 * accept - 1) * (gate[:, 1] - gate[:, 0]))
        loss = loss + aux.margin * margin.mean()
        boundary = functional.relu(aux.boundary_width - (gate[:, 0] - taken)) * failed
        loss = loss + aux.boundary * boundary.sum() / failed.sum().clamp(min=1.0)
        self._en_optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self._en.parameters(), config.gradient_clip)
        self._en_optimizer.step()
        self.updates[0] += 1

    def _update_sn(self) -> None:
        config = self._config.sn
        pairs: list[tuple] = []
        if len(self._sn_replay) <= config.batch:
            return
        while len(pairs) < config.batch:
            _, first, all_of_it = self._sn_replay[self._random.integers(len(self._sn_replay))]
            if first["place"] + 1 < len(all_of_it):
                pairs.append((first, all_of_it[first["place"] + 1], all_of_it))
        after = [
            all_of_it[min(second["place"] + 1, len(all_of_it) - 1)]["x"]
            for _, second, all_of_it in pairs
        ]
        sequence = [
            torch.cat([first["x"] for first, _, _ in pairs]),
            torch.cat([second["x"] for _, second, _ in pairs]),
            torch.cat(after),
        ]
        start = torch.cat([first["hidden"] for first, _, _ in pairs])
        values, evaluated, hidden = [], [], start
        for x in sequence:
            value, hidden = self._sn(x, hidden)
            values.append(value)
        with torch.no_grad():
            hidden = start
            for x in sequence:
                value, hidden = self._target(x, hidden)
                evaluated.append(value)
        loss = torch.zeros(())
        for n in range(2):
            rows = [pair[n] for pair in pairs]
            action = torch.tensor([row["action"] for row in rows])
            reward = torch.tensor([row["reward"] / 800.0 for row in rows])
            discount = torch.tensor([config.discount ** (row["length"] / 20.0) for row in rows])
            last = torch.tensor([float(row["terminal"]) for row in rows])
            taken = values[n].gather(1, action[:, None])[:, 0]
            best = values[n + 1].detach().argmax(-1)
            future = evaluated[n + 1].gather(1, best[:, None])[:, 0]
            goal = reward + (1 - last) * discount * future
            loss = loss + functional.smooth_l1_loss(taken, goal.float())
        self._sn_optimizer.zero_grad()
        (loss / 2).backward()
        nn.utils.clip_grad_norm_(self._sn.parameters(), config.gradient_clip)
        self._sn_optimizer.step()
        self.updates[1] += 1
        self._sn_updates += 1
        if self._sn_updates % config.target_every == 0:
            self._target.load_state_dict(self._sn.state_dict())
