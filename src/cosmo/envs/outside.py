"""Policies from elsewhere as methods of the registry, to be compared like any other.

    cosmo simulate --method sb3:dqn.zip                 a Stable-Baselines3 model
    cosmo simulate --method onnx:policy.onnx            an ONNX file
    from_callable(policy, updater="aoi-threshold")      any function of observations

The policy is an EN's, as trained on `cosmo/Dispatch-v0`: it sees the same vectors and answers with
the same actions. Status is sent by the updater of another method (`…,updater=aov-gap`).
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosmo.control import Dispatcher, Method, Setting, Updater, method
from cosmo.envs.views import EnView
from cosmo.errors import InputError
from cosmo.world import DispatchObservation

Policy = Callable[[NDArray[np.float32]], Any]  # [row, number] → an action for each row


class _Dispatcher:
    def __init__(self, setting: Setting, policy: Policy) -> None:
        self._view, self._policy = EnView(setting.scenario), policy

    def decide(self, tasks: DispatchObservation) -> NDArray[np.int64]:
        """What the policy says."""
        return np.asarray(self._policy(self._view.of(tasks))).reshape(-1)

    would_decide = decide


class Outside(Method):
    """A policy from elsewhere at the EN, another method's updater at the SN."""

    def __init__(self, policy: Policy, updater: str = "aoi-threshold") -> None:
        self._policy, self._other = policy, method(updater)
        self.carries = self._other.carries  # type: ignore[misc]

    def dispatcher(self, setting: Setting) -> Dispatcher:
        """The policy."""
        return _Dispatcher(setting, self._policy)

    def updater(self, setting: Setting) -> Updater:
        """The other method's."""
        return self._other.updater(setting)


def from_callable(policy: Policy, updater: str = "aoi-threshold") -> Method:
    """Any function of a batch of observations as a method."""
    return Outside(policy, updater)


class Sb3(Outside):
    """A Stable-Baselines3 model (`sb3:dqn.zip`) that was trained on cosmo/Dispatch-v0."""

    def __init__(self, file: Path, algorithm: str = "DQN", updater: str = "aoi-threshold") -> None:
        _check_file(file)
        try:
            import stable_baselines3
        except ImportError:
            raise InputError(
                "sb3: needs Stable-Baselines3; install it with: pip install stable-baselines3"
            ) from None
        kind = getattr(stable_baselines3, algorithm, None)
        if kind is None:
            raise InputError(f"algorithm = {algorithm!r}: Stable-Baselines3 has no such algorithm")
        try:
            model = kind.load(file, device="cpu")
        except Exception as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise InputError(f"'{file}': is no {algorithm} model ({reason})") from None
        super().__init__(lambda seen: model.predict(seen, deterministic=True)[0], updater)


class Onnx(Outside):
    """An ONNX file (`onnx:policy.onnx`): observations in, action values or actions out."""

    def __init__(self, file: Path, updater: str = "aoi-threshold") -> None:
        _check_file(file)
        try:
            import onnxruntime
        except ImportError:
            raise InputError(
                "onnx: needs onnxruntime; install it with: pip install onnxruntime"
            ) from None
        try:
            session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
        except Exception as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise InputError(f"'{file}': cannot be read as ONNX ({reason})") from None
        name = session.get_inputs()[0].name

        def policy(seen: NDArray[np.float32]) -> Any:
            answer = np.asarray(session.run(None, {name: seen})[0])
            scores = answer.ndim == 2 and answer.shape[1] > 1
            return answer.argmax(axis=1) if scores else answer.reshape(-1)

        super().__init__(policy, updater)


def _check_file(file: Path) -> None:
    if not Path(file).is_file():
        raise InputError(f"there is no file '{file}'")
