"""The vector environments for Stable-Baselines3: many worlds in one process, one step for all.

from stable_baselines3 import PPO
from cosmo.envs.sb3 import vec_env

model = PPO("MlpPolicy", vec_env("cosmo/Dispatch-v0", 64, rate=220))
"""

import time
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np

from cosmo.errors import InputError

try:
    from stable_baselines3.common.vec_env import VecEnv
except ImportError:  # pragma: no cover
    raise InputError(
        "cosmo.envs.sb3 needs Stable-Baselines3; install it with: pip install stable-baselines3"
    ) from None


def vec_env(name: str, worlds: int, **settings: Any) -> "CosmoVecEnv":
    """`gymnasium.make_vec(name, num_envs=worlds, **settings)`, as SB3 takes it."""
    import cosmo.envs  # registers the names

    assert cosmo.envs
    return CosmoVecEnv(gymnasium.make_vec(name, num_envs=worlds, **settings))


class CosmoVecEnv(VecEnv):  # type: ignore[misc]
    """A vector environment of ours behind SB3's interface.

    Infos carry what SB3's own monitors would say: `terminal_observation`, and of a finished episode
    `episode` (return, length, seconds) and `metrics`, by which success can be followed in training.
    """

    def __init__(self, env: Any) -> None:
        self.env = env
        self._seed: int | None = None
        self._actions: Any = None
        super().__init__(env.num_envs, env.single_observation_space, env.single_action_space)
        self._begin()

    def _begin(self) -> None:
        self._returns, self._lengths = np.zeros(self.num_envs), np.zeros(self.num_envs, np.int64)
        self._start = time.monotonic()

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """World w plays run seed + w from the next reset on."""
        self._seed = seed
        return [None if seed is None else seed + world for world in range(self.num_envs)]

    def reset(self) -> Any:
        """Every world at the start of an episode: [world, number]."""
        seen, _ = self.env.reset(seed=self._seed)
        self._seed = None
        self.reset_infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        self._begin()
        return seen

    def step_async(self, actions: Any) -> None:
        """Keep the actions of all worlds."""
        self._actions = actions

    def step_wait(self) -> tuple[Any, Any, Any, list[dict[str, Any]]]:
        """One decision in every world; worlds that are over start their next episode."""
        seen, reward, over, _, told = self.env.step(self._actions)
        self._returns += reward
        self._lengths += 1
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for world in np.flatnonzero(over).tolist():
            metrics = told["final_info"]["metrics"]
            infos[world] = {
                "terminal_observation": told["final_obs"][world],
                "TimeLimit.truncated": False,
                "episode": {
                    "r": float(self._returns[world]),
                    "l": int(self._lengths[world]),
                    "t": round(time.monotonic() - self._start, 6),
                },
                "metrics": {name: float(values[world]) for name, values in metrics.items()},
            }
            self._returns[world] = self._lengths[world] = 0
        return seen, reward.astype(np.float32), over.copy(), infos

    def close(self) -> None:
        """Close the vector environment."""
        self.env.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """The same for every world: there is one environment."""
        return [getattr(self.env, attr_name) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """For all worlds: there is one environment."""
        setattr(self.env, attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any
    ) -> list[Any]:
        """Called once; the answer for every world."""
        answer = getattr(self.env, method_name)(*method_args, **method_kwargs)
        return [answer for _ in self._get_indices(indices)]

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """Worlds of a vector environment are not wrapped."""
        return [False for _ in self._get_indices(indices)]
