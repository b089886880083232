"""An episode of `DispatchEnv` written down for the episode viewer."""

import json
from pathlib import Path
from typing import Any

import gymnasium

from cosmo.envs.game import DispatchGame
from cosmo.errors import InputError
from cosmo.files import whole_file
from cosmo.study.recording import Recorder


class RecordEpisode(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Writes every finished episode to `folder/episode-N.json` (see `cosmo.study.recording`)."""

    def __init__(self, env: gymnasium.Env[Any, Any], folder: str | Path) -> None:
        super().__init__(env)
        self._game = env.unwrapped.game  # type: ignore[attr-defined]
        if not isinstance(self._game, DispatchGame):
            raise InputError("RecordEpisode: only for cosmo/Dispatch-v0")
        self._folder, self._count = Path(folder), 0
        self._folder.mkdir(parents=True, exist_ok=True)

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        """A new recording."""
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
