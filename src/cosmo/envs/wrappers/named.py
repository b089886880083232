"""Observations as a dictionary, a name for every number."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict


class NamedObservation(gymnasium.ObservationWrapper[Any, Any, Any]):
    """`{"task_cycles": [0.7], …}`; Gymnasium's `FlattenObservation` is the way back."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        space = env.observation_space
        assert isinstance(space, Box)
        self._names = env.get_wrapper_attr("observation_names")
        self.observation_space = Dict(
            {
                name: Box(space.low[k : k + 1], space.high[k : k + 1], dtype=np.float32)
                for k, name in enumerate(self._names)
            }
        )

    def observation(self, observation: Any) -> Any:
        """The same numbers by name."""
        return {name: observation[k : k + 1] for k, name in enumerate(self._names)}
