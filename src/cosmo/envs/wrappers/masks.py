"""Actions that cannot end well are masked, for learners that take masks."""

from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from cosmo.envs.game import DispatchGame
from cosmo.node import RAW, STORAGE
from cosmo.policy.dispatchers.raw import raw_states


class ActionMasks(gymnasium.Wrapper[Any, Any, Any, Any]):
    """`info["action_mask"]`, and `action_masks()` as sb3-contrib calls it.

    For an EN: local only if its own queue has room, offload only to SNs that it reaches and
    that have, as it was last told; reject always. For an SN nothing is masked.
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        self._game = env.unwrapped.game  # type: ignore[attr-defined]
        self._site = self._game.site

    def action_masks(self) -> NDArray[np.bool_]:
        """Which actions are allowed now."""
        mask = np.ones(self._game.actions, np.bool_)
        tasks = self._game.turn.dispatch
        if isinstance(self._game, DispatchGame) and len(tasks):
            mask[0] = tasks.local_room[0]
            mask[1:-1] = tasks.reached[0]
            if tasks.status.shape[2] == RAW:  # without status nothing is known of the SN
                needed = self._site.reservation(tasks.input_bytes)[0]
                mask[1:-1] &= raw_states(self._site, tasks)[0, :, STORAGE] >= needed
        return mask

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        """With the first mask."""
        seen, info = self.env.reset(**options)
        return seen, {**info, "action_mask": self.action_masks()}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """With the next mask."""
        seen, reward, terminated, truncated, info = self.env.step(action)
        info = {**info, "action_mask": self.action_masks()}
        return seen, reward, terminated, truncated, info
