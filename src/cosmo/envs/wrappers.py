"""Wrappers for the single environments."""

import json
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict
from numpy.typing import NDArray

from cosmo.envs.game import DispatchGame
from cosmo.errors import InputError
from cosmo.files import whole_file
from cosmo.node import RAW, STORAGE
from cosmo.report.recording import Recorder


class SemiMarkovDiscount(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Rewards such that a learner with `step_discount` a step maximises the return with `discount`
    for every `per_ms` of time.

    A reward is multiplied by the ratio of the two discounts since the episode's start;
    `info["discount"]` is what the time since the last step alone is worth.
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        discount: float = 0.99,
        per_ms: float = 20.0,
        step_discount: float = 1.0,
    ) -> None:
        super().__init__(env)
        self._discount, self._per_ms, self._step = discount, per_ms, step_discount
        self._weight = 1.0

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        """A new episode starts with weight 1."""
        self._weight = 1.0
        return self.env.reset(**options)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take one decision; the reward is discounted by the time since the episode began."""
        seen, reward, terminated, truncated, info = self.env.step(action)
        weighted = float(reward) * self._weight
        passed = self._discount ** (info["elapsed_ms"] / self._per_ms)
        self._weight *= passed / self._step
        return seen, weighted, terminated, truncated, {**info, "discount": passed}


class ActionMasks(gymnasium.Wrapper[Any, Any, Any, Any]):
    """`info["action_mask"]`, and `action_masks()` as sb3-contrib calls it.

    For an EN: local only if its own queue has room, offload only to SNs that it reaches and
    that have, by the last status; reject always. For an SN nothing is masked.
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
                mask[1:-1] &= self._site.raw_states(tasks)[0, :, STORAGE] >= needed
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


class RecordEpisode(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Writes every finished episode to `folder/episode-N.json` (see `cosmo.report.recording`)."""

    def __init__(self, env: gymnasium.Env[Any, Any], folder: str | Path) -> None:
        super().__init__(env)
        self._game = env.unwrapped.game  # type: ignore[attr-defined]
        if not isinstance(self._game, DispatchGame):
            raise InputError("RecordEpisode: only for cosmo/Dispatch-v0")
        self._game.keeps_journal = True
        self._folder, self._count = Path(folder), 0
        self._folder.mkdir(parents=True, exist_ok=True)

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        """Start a new episode and a new recording; returns its first observation and `info`."""
        self._recorder = Recorder(self._game.scenario, self._game.method.carries)
        self._game.sent = self._recorder.updated  # before the SNs' first decisions
        return self.env.reset(**options)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """One decision, noted before it is carried out."""
        turn = self._game.turn
        self._recorder.note_task(turn.dispatch, self._game.worlds.truth(), int(action))
        result = self.env.step(action)
        if result[2]:
            recording = self._recorder.finished(self._game.worlds.outcome(0))
            with whole_file(self._folder / f"episode-{self._count}.json") as temporary:
                temporary.write_text(json.dumps(recording), encoding="utf-8")
            self._count += 1
        return result
