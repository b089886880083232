"""Gymnasium environments for one side of the world: `cosmo/Dispatch-v0` and `cosmo/Update-v0`."""

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Discrete

from cosmo.control import method
from cosmo.documents import Settings
from cosmo.envs.aec import scenario_of, space_of
from cosmo.envs.game import DispatchGame, Game, UpdateGame
from cosmo.envs.screen import FPS, MODES, Screen, check_mode
from cosmo.measure import OUTCOME_NAMES
from cosmo.policy.outside import INTERVALS_MS
from cosmo.scenario import Scenario


class _SideEnv(gymnasium.Env[Any, Any]):
    """One world; a step is one decision of the agent's side."""

    metadata = {"render_modes": MODES, "render_fps": FPS}  # noqa: RUF012

    def __init__(self, game: Game, reward_scale: float | None, render_mode: str | None) -> None:
        check_mode(render_mode)
        self.game, self.render_mode = game, render_mode
        self._screen = None if render_mode is None else Screen(game.scenario, game.site)
        self.observation_space = space_of(game.view)
        self.observation_names = game.view.names
        self.action_space = Discrete(game.actions)
        value = game.scenario.utility.value
        self._scale = value if reward_scale is None else reward_scale
        self._seed, self._number = 0, -1

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """The first episode of run `seed`, or, without a seed, the run's next one."""
        super().reset(seed=seed)
        if seed is not None:
            self._seed, self._number = seed, -1
        self._number += 1
        seen = self.game.begin([self._seed], [self._number])
        if self._screen is not None:
            self._screen.clear()
        self._look()
        return seen[0].copy(), self._info(0.0)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Decide; the reward is what became final since the last step, in units of V."""
        if self._number < 0:
            raise gymnasium.error.ResetNeeded("step() before reset()")
        if not self.action_space.contains(action):
            raise gymnasium.error.InvalidAction(f"{action!r} is not in {self.action_space}")
        before = float(self.game.time_ms[0])
        seen, reward = self.game.step(np.array([int(action)]))
        over = bool(self.game.worlds.all_over)
        info = self._info(before)
        if over:
            info["metrics"] = self.game.metrics(0)
        self._look()
        return seen[0].copy(), float(reward[0]) / self._scale, over, False, info

    def _look(self) -> None:
        if self._screen is not None:
            game = self.game
            outcomes = [settled.outcome[settled.world == 0] for settled, _ in game.final]
            self._screen.note(game.turn, game.worlds, np.concatenate([[], *outcomes]))
            if self.render_mode == "human":
                self._screen.show()

    def render(self) -> Any:
        """The picture as it is now, [row, column, colour], if the mode is "rgb_array"."""
        return self._screen.image() if self._screen and self.render_mode == "rgb_array" else None

    def close(self) -> None:
        """Close the window, if there is one."""
        if self._screen is not None:
            self._screen.close()

    def _info(self, before_ms: float) -> dict[str, Any]:
        now = float(self.game.time_ms[0])
        final = [
            {"task": task, "outcome": OUTCOME_NAMES[outcome], "utility": value}
            for settled, gained in self.game.final
            for task, outcome, value in zip(
                settled.task.tolist(), settled.outcome.tolist(), gained.tolist(), strict=True
            )
        ]
        return {"time_ms": now, "elapsed_ms": now - before_ms, "final": final}


class DispatchEnv(_SideEnv):
    """`cosmo/Dispatch-v0`: be the EN (local, offload or reject) against the updater of any method.

    Args:
        scenario: A scenario, a preset's name or the path of a TOML file.
        rate: Tasks/s in each cell; the scenario's by default.
        arrivals: The arrival process; the scenario's by default.
        settings: Further fields of the scenario, `{"sn.slots": 6}` or `["sn.slots=6"]`.
        engine: "embedded" or "ns3"; the scenario's by default.
        updater: The method whose updater sends statuses.
        reward_scale: What rewards, utilities of tasks that became final, are divided by; the task
            value V by default.
        render_mode: "rgb_array" or "human".

    Raises:
        InputError: In one line, for what is not there or not allowed.

    """

    def __init__(
        self,
        scenario: str | Scenario = "paper",
        rate: float | None = None,
        arrivals: str | None = None,
        settings: Settings = (),
        engine: str | None = None,
        updater: str = "aoi-threshold",
        reward_scale: float | None = None,
        render_mode: str | None = None,
    ) -> None:
        made = scenario_of(scenario, rate, arrivals, settings, engine)
        super().__init__(DispatchGame(made, method(updater)), reward_scale, render_mode)


class UpdateEnv(_SideEnv):
    """`cosmo/Update-v0`: be the SN (send or not, when to decide next) against any dispatcher.

    Rewards are utilities of tasks that became final minus the cost of updates.

    Args:
        scenario: As in `DispatchEnv`, like `rate`, `arrivals`, `settings`, `engine`, `reward_scale`
            and `render_mode`.
        dispatcher: The method whose dispatcher decides at the EN.
        intervals_ms: The intervals to choose from.

    Raises:
        InputError: In one line, for what is not there or not allowed.

    """

    def __init__(
        self,
        scenario: str | Scenario = "paper",
        rate: float | None = None,
        arrivals: str | None = None,
        settings: Settings = (),
        engine: str | None = None,
        dispatcher: str = "aoi-threshold/estimate",
        intervals_ms: Sequence[float] = INTERVALS_MS,
        reward_scale: float | None = None,
        render_mode: str | None = None,
    ) -> None:
        made = scenario_of(scenario, rate, arrivals, settings, engine)
        game = UpdateGame(made, method(dispatcher), intervals_ms)
        super().__init__(game, reward_scale, render_mode)
