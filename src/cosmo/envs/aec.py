"""The world as a PettingZoo AEC environment: whoever's event fires next acts.

Agents `en_0`, … decide on tasks (0 local, 1..K offload, K+1 reject); agents `sn_0`, … decide on
updates (send × intervals, then no-send × intervals).

An EN is rewarded with a task's utility when it is final. An SN is rewarded with the utilities of
the tasks decided in its intervals, when they are final, and pays for an update when it sends it. So
rewards of all ENs add up to the episode's utility, and those of an SN to the episode's utility
minus the cost of its updates.

All observations have the same space, as many libraries want: the shorter kind ends in zeros.
`pad=False` gives every agent its own, the numbers that policies see as methods (`outside.py`).
"""

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete
from pettingzoo import AECEnv

from cosmo.control.arguments import as_scenario
from cosmo.control.update_intervals import check_intervals
from cosmo.documents import Settings
from cosmo.engine import worlds as start
from cosmo.envs.ledger import Ledger, finished_metrics
from cosmo.envs.screen import FPS, MODES, Screen, check_mode
from cosmo.errors import InputError
from cosmo.measure import OUTCOME_NAMES
from cosmo.node import RAW, Updater
from cosmo.policy.outside import INTERVALS_MS, check_raw
from cosmo.policy.views import LIMIT, EnView, SnView, View
from cosmo.scenario import Scenario, changed
from cosmo.workload import episode
from cosmo.world import Batch, Decisions, site_of

ORACLE = "oracle_for_training_only"


def space_of(view: View) -> Box:
    """The bounds of what an agent sees, as a space of Gymnasium."""
    return Box(view.low, view.high, dtype=np.float32)


def scenario_of(
    scenario: str | Scenario,
    rate: float | None,
    arrivals: str | None,
    settings: Settings,
    engine: str | None,
) -> Scenario:
    """The scenario of the keyword arguments that all environments share."""
    chosen = as_scenario(scenario, settings, rate, arrivals)
    return chosen if engine is None else changed(chosen, {"engine": engine})


def aec(
    scenario: str | Scenario = "paper",
    rate: float | None = None,
    arrivals: str | None = None,
    settings: Settings = (),
    engine: str | None = None,
    intervals_ms: Sequence[float] = INTERVALS_MS,
    dimensions: int = RAW,
    max_cycles: int | None = None,
    pad: bool = True,
    reward_scale: float = 1.0,
    render_mode: str | None = None,
) -> "CosmoAEC":
    """Make the PettingZoo AEC environment.

    Args:
        scenario: A scenario, a preset's name or the path of a TOML file.
        rate: Tasks/s in each cell; the scenario's by default.
        arrivals: The arrival process; the scenario's by default.
        settings: Further fields of the scenario, `{"sn.slots": 6}` or `["sn.slots=6"]`.
        engine: "embedded" or "ns3"; the scenario's by default.
        intervals_ms: The intervals that SNs choose from.
        dimensions: 4: a status carries the SN's raw state; 0: none is sent, and SNs do not act.
        max_cycles: Decisions after which an episode is truncated; None: never.
        pad: All observations have the same space; False: each kind of agent has its own.
        reward_scale: What utilities are divided by.
        render_mode: "rgb_array" or "human": draws work at all nodes, and what has become of tasks.

    Returns:
        The environment.

    Raises:
        InputError: In one line, for what is not there or not allowed.

    """
    check_raw("aec", dimensions)
    if not reward_scale > 0:
        raise InputError(f"reward_scale = {reward_scale}: must be greater than 0")
    made = scenario_of(scenario, rate, arrivals, settings, engine)
    check_intervals(intervals_ms)
    return CosmoAEC(
        made, tuple(intervals_ms), dimensions, max_cycles, pad, reward_scale, render_mode
    )


class NotResetError(InputError, AttributeError):
    """What a reset makes was asked for before the first one."""


class CosmoAEC(AECEnv):  # type: ignore[misc]
    """The environment that `cosmo.envs.aec` makes: agents act one after the other.

    `reset(seed)` starts run `seed`; further resets start its next episodes.
    """

    metadata = {  # noqa: RUF012
        "name": "cosmo_v0", "render_modes": MODES, "render_fps": FPS, "is_parallelizable": False,
    }  # fmt: skip

    def __init__(
        self,
        scenario: Scenario,
        intervals_ms: tuple[float, ...],
        dimensions: int,
        max_cycles: int | None,
        pad: bool,
        reward_scale: float,
        render_mode: str | None = None,
    ) -> None:
        super().__init__()
        check_mode(render_mode)
        self.scenario, self.render_mode = scenario, render_mode
        self._scale = reward_scale
        self._intervals_ms, self._dimensions, self._max_cycles = (
            intervals_ms,
            dimensions,
            max_cycles,
        )
        ens = [f"en_{en}" for en in range(scenario.en.count)]
        # Where status carries nothing, SNs have nothing to decide.
        sns = [f"sn_{sn}" for sn in range(scenario.sn.count if dimensions else 0)]
        self.possible_agents = [*ens, *sns]
        site = site_of(scenario)
        self._screen = None if render_mode is None else Screen(scenario, site)
        self._en_view, self._sn_view = EnView(site), SnView(site)
        self._encode = Updater().encode  # raw
        views = {agent: self._en_view if agent in ens else self._sn_view for agent in [*ens, *sns]}
        size = max(len(view.names) for view in views.values())
        shared = Box(-LIMIT, LIMIT, (size,), dtype=np.float32)
        self.observation_spaces = {
            agent: shared if pad else space_of(view) for agent, view in views.items()
        }
        self.observation_names = {agent: view.names for agent, view in views.items()}
        actions = dict.fromkeys(ens, 2 + scenario.links.most_sns) | dict.fromkeys(
            sns, 2 * len(intervals_ms)
        )
        self.action_spaces = {agent: Discrete(count) for agent, count in actions.items()}
        low, high = ([getattr(self.observation_spaces[agent], end) for agent in [*ens, *sns]]
                     for end in ("low", "high"))  # fmt: skip
        self.state_space = Box(np.concatenate(low), np.concatenate(high), dtype=np.float32)
        self._reach = scenario.links.reach
        self._seed, self._number = 0, -1

    def __getattr__(self, name: str) -> Any:
        if self.__dict__.get("_number", 0) < 0:
            raise NotResetError(f"{name}: is there after reset(), which was not called yet")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def observation_space(self, agent: str) -> Any:
        """Of an agent; `observation_names[agent]` says what each number is."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Any:
        """Return the space of the actions of `agent`."""
        return self.action_spaces[agent]

    def state(self) -> Any:
        """What all agents saw at their last or pending decisions, one after the other.

        For critics that are trained centrally; it holds nothing that no agent has seen.
        """
        return np.concatenate([self._seen[agent] for agent in self.possible_agents])

    def action_mask(self, agent: str) -> Any:
        """[action] 1 where the agent may choose it: an EN may reach fewer SNs than others do."""
        mask = np.ones(self.action_spaces[agent].n, np.int8)
        kind, _, number = agent.partition("_")
        if kind == "en":
            mask[1:-1] = self._reach[int(number)] >= 0
        return mask

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Start an episode: the first of run `seed`, or, without a seed, the run's next one."""
        if seed is not None:
            self._seed, self._number = seed, -1
        self._number += 1
        chosen = episode(self.scenario, self._seed, self._number)
        self.__dict__.pop("worlds", None)  # what they hold can be used again
        self.worlds = start(self.scenario, [chosen], self._dimensions)
        self._ledger = Ledger(self.scenario, [chosen], self._dimensions)
        self.agents = self.possible_agents[:]
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos = {agent: self._blank_info() for agent in self.agents}
        self._seen = {
            agent: np.zeros(space.shape, np.float32)
            for agent, space in self.observation_spaces.items()
        }
        self._last_turn_ms = dict.fromkeys(self.agents, 0.0)
        self._decided_by: dict[int, str] = {}
        self._cycles = 0
        if self._screen is not None:
            self._screen.clear()
        self._look(self.worlds.advance())

    @staticmethod
    def _blank_info() -> dict[str, Any]:
        return {"elapsed_ms": 0.0, "time_ms": 0.0, "final": []}

    def observe(self, agent: str) -> Any:
        """What the agent saw at its last or pending decision."""
        return self._seen[agent]

    def step(self, action: Any) -> None:
        """Carry out `action` for the agent `agent_selection` and advance to the next decision."""
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        if not self.action_space(agent).contains(action):
            raise InputError(f"action = {action!r}: must be in {self.action_space(agent)}")
        self._cumulative_rewards[agent] = 0.0
        self._clear_rewards()
        self.infos[agent] = self._blank_info()
        if agent.startswith("en"):
            self._decided_by[int(self.worlds.truth().place[0])] = agent
            self.worlds.answer(action=[int(action)])
        else:
            choices = len(self._intervals_ms)
            send = int(action) < choices
            if send:
                price = float(self._ledger.update_price[self._turn.update.sn[0]])
                self.rewards[agent] -= price / self._scale
            interval_ms = self._intervals_ms[int(action) % choices]
            numbers = self._encode(self._turn.update.states)
            self.worlds.answer(send=[send], interval_ms=[interval_ms], numbers=numbers)
        self._cycles += 1
        self._look(self.worlds.advance())
        self._accumulate_rewards()

    def _look(self, turn: Decisions) -> None:
        """Rewards for what became final, and who is next."""
        self._turn = turn
        settled = self.worlds.settled()
        gained = self._ledger.utilities(settled)
        if self._screen is not None:
            self._screen.note(turn, self.worlds, settled.outcome)
            if self.render_mode == "human":
                self._screen.show()
        for row, value in enumerate(gained.tolist()):
            task, outcome = int(settled.task[row]), OUTCOME_NAMES[int(settled.outcome[row])]
            told = {"task": task, "outcome": outcome, "utility": value,
                    "time_ms": float(settled.time_ms[row])}  # fmt: skip
            for agent in self._earners(task):
                self.rewards[agent] += value / self._scale
                self.infos[agent]["final"].append(told)
        if turn.over:
            self.terminations = dict.fromkeys(self.agents, True)
            metrics = finished_metrics(self.scenario, self.worlds, 0, self._dimensions)
            for agent in self.agents:
                self.infos[agent]["metrics"] = metrics
            self.agent_selection = self.agents[0]
            return
        agent, seen, asked = self.question(turn, self.worlds)
        now = asked["time_ms"]
        self._seen[agent] = seen
        self.infos[agent] |= asked
        self._last_turn_ms[agent] = now
        self.agent_selection = agent
        if self._max_cycles is not None and self._cycles >= self._max_cycles:
            self.truncations = dict.fromkeys(self.agents, True)

    @property
    def turn(self) -> Decisions:
        """The pending decision, as nodes see it."""
        return self._turn

    @property
    def cycles_left(self) -> int:
        """Decisions until `max_cycles` truncates."""
        return sys.maxsize if self._max_cycles is None else self._max_cycles - self._cycles

    def question(self, turn: Decisions, worlds: Batch) -> tuple[str, Any, dict[str, Any]]:
        """Who decides in a turn of these worlds, what it sees, and its part of `info`."""
        if len(turn.dispatch):
            agent, now = f"en_{turn.dispatch.en[0]}", float(turn.dispatch.time_ms[0])
            view, truth = self._en_view.of(turn.dispatch)[0], worlds.truth()
            asked = {
                ORACLE: {
                    "feasible": truth.feasible[0].copy(),
                    "delay_ms": truth.delay_ms[0].copy(),
                },
                "task": int(truth.place[0]),  # as in `final`
            }
        else:
            agent, now = f"sn_{turn.update.sn[0]}", float(turn.update.time_ms[0])
            view, asked = self._sn_view.of(turn.update)[0], {}
        seen = np.zeros(self.observation_spaces[agent].shape, np.float32)
        seen[: len(view)] = view
        return agent, seen, asked | {
            "elapsed_ms": now - self._last_turn_ms[agent], "time_ms": now,
        }  # fmt: skip

    def _earners(self, task: int) -> list[str]:
        """Its EN, and every SN: SNs decide first at time 0, so each task is in one of their
        intervals. A task that nobody decided earns nobody anything.
        """
        agent = self._decided_by.pop(task, None)
        if agent is None:
            return []
        return [agent, *(name for name in self.agents if name.startswith("sn"))]

    def render(self) -> Any:
        """The picture as it is now, [row, column, colour], if the mode is "rgb_array"."""
        return self._screen.image() if self._screen and self.render_mode == "rgb_array" else None

    def close(self) -> None:
        """Close the window, if there is one."""
        if self._screen is not None:
            self._screen.close()
