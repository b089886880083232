"""The same for many worlds at once, on the batched engine: a step is one decision in each.

A world that is over starts its next episode in the same step (`AutoresetMode.SAME_STEP`): the last
observation of the old episode (zeros: there is no next task) is in `infos["final_obs"]`, and how
good it was in `infos["final_info"]["metrics"]`.
"""

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Discrete
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from cosmo.control import method
from cosmo.documents import Settings
from cosmo.envs.aec import scenario_of, space_of
from cosmo.envs.game import DispatchGame, Game, UpdateGame
from cosmo.policy.outside import INTERVALS_MS
from cosmo.scenario import Scenario


class _SideVectorEnv(VectorEnv[Any, Any, Any]):
    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012

    def __init__(self, game: Game, num_envs: int, reward_scale: float | None) -> None:
        self.game, self.num_envs = game, num_envs
        self.single_observation_space = space_of(game.view)
        self.observation_names = game.view.names
        self.single_action_space = Discrete(game.actions)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        value = game.scenario.utility.value
        self._scale = value if reward_scale is None else reward_scale
        self._seeds, self._rounds = list(range(num_envs)), 0
        self.render_mode = None

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Runs seed, seed + 1, …; without a seed the same runs go on with later episodes."""
        if isinstance(seed, int | np.integer):
            self._seeds, self._rounds = [seed + world for world in range(self.num_envs)], 0
        elif seed is not None:
            self._seeds = [
                old if new is None else new for old, new in zip(self._seeds, seed, strict=True)
            ]
            self._rounds = 0
        seen = self.game.begin(self._seeds, [1000 * self._rounds] * self.num_envs)
        self._rounds += 1
        return seen.copy(), self._info(np.zeros(self.num_envs))

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """One decision in every world."""
        if not self._rounds:
            raise gymnasium.error.ResetNeeded("step() before reset()")
        chosen = np.asarray(actions)
        if chosen.dtype.kind not in "iu" or not self.action_space.contains(chosen):
            raise gymnasium.error.InvalidAction(f"{actions!r} is not in {self.action_space}")
        before = self.game.time_ms.copy()
        seen, reward = self.game.step(chosen.astype(np.int64))
        earned = reward / self._scale
        over = self.game.worlds.over
        info = self._info(before)
        if over.any():
            final = np.full(self.num_envs, None, dtype=object)
            for world in np.flatnonzero(over):
                final[world] = seen[world].copy()
            info |= {"final_obs": final, "_final_obs": over.copy()}
            info |= {"final_info": self._finished(over), "_final_info": over.copy()}
            self.game.restart(np.flatnonzero(over))
        never = np.zeros(self.num_envs, np.bool_)
        return self.game.seen.copy(), earned, over, never, info

    def _finished(self, over: Any) -> dict[str, Any]:
        """Metrics of the episodes that have ended, [world], NaN where none has."""
        found: dict[str, Any] = {}
        for world in np.flatnonzero(over).tolist():
            for name, value in self.game.metrics(world).items():
                found.setdefault(name, np.full(self.num_envs, np.nan))[world] = value
        return {"metrics": found, "_metrics": over.copy()}

    def _info(self, before: Any) -> dict[str, Any]:
        everyone = np.ones(self.num_envs, np.bool_)
        now = self.game.time_ms.copy()
        return {
            "time_ms": now, "_time_ms": everyone, "elapsed_ms": now - before,
            "_elapsed_ms": everyone,
        }  # fmt: skip


class DispatchVectorEnv(_SideVectorEnv):
    """`num_envs` worlds of `DispatchEnv` at once; the other arguments are the same.

    A world that is over starts its next episode in the same step.
    """

    def __init__(
        self,
        num_envs: int = 1,
        scenario: str | Scenario = "paper",
        rate: float | None = None,
        arrivals: str | None = None,
        settings: Settings = (),
        engine: str | None = None,
        updater: str = "aoi-threshold",
        reward_scale: float | None = None,
    ) -> None:
        made = scenario_of(scenario, rate, arrivals, settings, engine)
        super().__init__(DispatchGame(made, method(updater)), num_envs, reward_scale)


class UpdateVectorEnv(_SideVectorEnv):
    """`num_envs` worlds of `UpdateEnv` at once; the other arguments are the same.

    A world that is over starts its next episode in the same step.
    """

    def __init__(
        self,
        num_envs: int = 1,
        scenario: str | Scenario = "paper",
        rate: float | None = None,
        arrivals: str | None = None,
        settings: Settings = (),
        engine: str | None = None,
        dispatcher: str = "aoi-threshold/estimate",
        intervals_ms: Sequence[float] = INTERVALS_MS,
        reward_scale: float | None = None,
    ) -> None:
        made = scenario_of(scenario, rate, arrivals, settings, engine)
        game = UpdateGame(made, method(dispatcher), intervals_ms)
        super().__init__(game, num_envs, reward_scale)
