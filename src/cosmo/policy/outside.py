"""Policies from elsewhere as methods of the registry, to be compared like any other.

    cosmo simulate --method sb3:ppo.zip                 a Stable-Baselines3 model
    cosmo simulate --method onnx:policy.onnx            an ONNX file
    from_callable(policy, updater="aoi-threshold")      any function of observations

The policy is an EN's, as trained on `cosmo/Dispatch-v0`: it sees the same vectors and answers with
the same actions. Status is sent by the updater of another method (`…,updater=aov-gap`) or by a
policy from elsewhere too (`onnx:en.onnx,updater=sn.onnx`), as trained on `cosmo/Update-v0`, there
with `…,intervals_ms=20+50` if these are not the paper's. Both together may come from
`aec(…, pad=False)`.
"""

import json
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosmo.errors import InputError
from cosmo.files import MOST_NETWORK, opened
from cosmo.node import (
    NOTHING,
    RAW,
    Dispatcher,
    DispatchObservation,
    Method,
    Site,
    UpdateObservation,
    Updater,
)
from cosmo.node.guard import reason
from cosmo.policy.views import EnView, SnView

INTERVALS_MS = (20.0, 25.0, 30.0, 35.0, 40.0, 45.0, 50.0, 100.0, 200.0)  # the paper's

Policy = Callable[[NDArray[np.float32]], Any]  # [row, number] → an action for each row


class _Dispatcher(Dispatcher):
    def __init__(self, site: Site, policy: Policy) -> None:
        self._view, self._policy = EnView(site), policy

    def decide(self, tasks: DispatchObservation) -> NDArray[np.int64]:
        """What the policy says."""
        return np.asarray(self._policy(self._view.of(tasks))).reshape(-1)

    would_decide = decide


class _Updater(Updater):
    def __init__(self, site: Site, policy: Policy, intervals_ms: Sequence[float]) -> None:
        self._view, self._policy = SnView(site), policy
        self._intervals_ms = np.array(intervals_ms)

    def decide(self, nodes: UpdateObservation) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        """What the policy says: send × intervals come first, then no-send × intervals."""
        action = np.asarray(self._policy(self._view.of(nodes))).reshape(-1)
        choices = len(self._intervals_ms)
        if action.dtype.kind not in "iu":
            raise InputError(f"updater: actions are {action.dtype}, must be whole numbers")
        wrong = action[(action < 0) | (action >= 2 * choices)]
        if len(wrong):
            raise InputError(
                f"updater: action = {wrong[0]}: must be from 0 to {2 * choices - 1}"
                f" (send or not × {choices} intervals)"
            )
        return action < choices, self._intervals_ms[action % choices]


class Outside(Method):
    """A policy from elsewhere at the EN; at the SN another method's updater, or a policy too."""

    def __init__(
        self,
        policy: Policy,
        updater: str | Policy = "aoi-threshold",
        intervals_ms: Sequence[float] = INTERVALS_MS,
    ) -> None:
        if not intervals_ms or not all(0 < each < np.inf for each in intervals_ms):
            raise InputError(f"intervals_ms = {intervals_ms}: must be finite and greater than 0")
        self._policy, self._intervals_ms = policy, intervals_ms
        self._other = _method(updater) if isinstance(updater, str) else updater
        self.carries = self._other.carries if isinstance(self._other, Method) else RAW
        check_raw(type(self._other).__name__, self.carries)

    def dispatcher(self, site: Site) -> Dispatcher:
        """Return the policy as the dispatcher of `site`."""
        return _Dispatcher(site, self._policy)

    def updater(self, site: Site) -> Updater:
        """The other method's, or the other policy."""
        if isinstance(self._other, Method):
            return sends_raw(self._other, self._other.updater(site))
        return _Updater(site, self._other, self._intervals_ms)


def _method(spec: str) -> Method:
    from cosmo.policy.registry import method  # which knows these methods by name

    return method(spec)


def sends_raw(method: Method, updater: Updater) -> Updater:
    """The updater, if its status is the raw state and not four numbers of another kind."""
    if not updater.sends_raw:
        raise InputError(
            f"updater: a message of {type(method).__name__} carries numbers of its own making, but"
            " an EN here goes by the SN's raw state"
        )
    return updater


def check_raw(who: str, carries: int) -> None:
    """A policy from elsewhere sees raw status or none: what is not sent cannot be seen (R28)."""
    if carries not in (NOTHING, RAW):
        raise InputError(
            f"updater: a message of {who} carries {carries} numbers, but an EN here goes by the"
            f" SN's raw state ({RAW} numbers)"
        )


def from_callable(
    policy: Policy,
    updater: str | Policy = "aoi-threshold",
    intervals_ms: Sequence[float] = INTERVALS_MS,
) -> Method:
    """Any function of a batch of observations as a method.

    Args:
        policy: Takes observations of ENs, [row, number] float32 as `cosmo/Dispatch-v0` shows them;
            returns actions [row] or action values [row, action].
        updater: A method's name, or such a function of observations of SNs, whose actions are those
            of `cosmo/Update-v0`: send × intervals, then no-send × intervals.
        intervals_ms: The intervals that such a function chooses from.

    Returns:
        The method, for `simulate`, `compare` and `check_method`.

    Raises:
        InputError: In one line, for an unknown updater, or intervals that are not allowed.

    """
    return Outside(policy, updater, intervals_ms)


class Sb3(Outside):
    """A Stable-Baselines3 model (`sb3:ppo.zip`) that was trained on cosmo/Dispatch-v0."""

    def __init__(
        self,
        file: Path,
        algorithm: str = "",
        updater: str = "aoi-threshold",
        intervals_ms: str = "",
    ) -> None:
        other = _sb3(Path(updater), algorithm) if updater.endswith(".zip") else updater
        super().__init__(_sb3(file, algorithm), other, _intervals(intervals_ms))


class Onnx(Outside):
    """An ONNX file (`onnx:policy.onnx`): observations in, action values or actions out."""

    def __init__(self, file: Path, updater: str = "aoi-threshold", intervals_ms: str = "") -> None:
        other = _onnx(Path(updater)) if updater.endswith(".onnx") else updater
        super().__init__(_onnx(file), other, _intervals(intervals_ms))


def _intervals(text: str) -> Sequence[float]:
    """From the command line, where commas part parameters: 20+50+200."""
    if not text:
        return INTERVALS_MS
    try:
        return tuple(float(part) for part in text.split("+"))
    except ValueError:
        raise InputError(f"intervals_ms = {text!r}: must look like 20+50+200") from None


_MOST_SETTINGS = 16 * 2**20  # bytes of a model's settings that are looked at
# What only models of one algorithm keep of their settings; the first that fits is meant.
_ALGORITHMS = (("PPO", "clip_range"), ("DQN", "exploration_fraction"), ("A2C", "gae_lambda"))


def sb3_algorithm(file: Path) -> str:
    """The algorithm of a model that Stable-Baselines3 saved, by its settings; nothing in it is run.

    `DQN` if the file does not say.
    """
    try:
        with zipfile.ZipFile(file) as parts, parts.open("data") as data:
            told = json.loads(data.read(_MOST_SETTINGS))
    except (OSError, ValueError, KeyError, RuntimeError, zipfile.BadZipFile, zlib.error):
        told = None  # loading it says what is wrong
    names = told if isinstance(told, dict) else {}
    return next((kind for kind, setting in _ALGORITHMS if setting in names), "DQN")


def _sb3(file: Path, algorithm: str) -> Policy:
    _check_file(file)
    algorithm = algorithm or sb3_algorithm(file)
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
    except BaseException as error:  # a pickle may raise anything
        raise InputError(f"'{file}': is no {algorithm} model ({reason(error)})") from None
    shape = model.observation_space.shape

    def policy(seen: NDArray[np.float32]) -> Any:
        if shape != seen.shape[1:]:
            raise InputError(
                f"'{file}': takes {shape[0]} numbers, but there are {seen.shape[1]} to see here"
            )
        return _with_one_thread(lambda: model.predict(seen, deterministic=True)[0])

    return policy


def _with_one_thread(work: Callable[[], Any]) -> Any:
    """What PyTorch computes with one thread, so that bits do not depend on the number of CPUs."""
    import torch

    threads = torch.get_num_threads()
    if threads == 1:
        return work()
    torch.set_num_threads(1)
    try:
        return work()
    finally:
        torch.set_num_threads(threads)


def _onnx(file: Path) -> Policy:
    _check_file(file)
    try:
        import onnxruntime
    except ImportError:
        raise InputError(
            "onnx: needs onnxruntime; install it with: pip install onnxruntime"
        ) from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # same bits on any CPUs
    options.log_severity_level = 4  # what goes wrong is said below, in one line
    try:
        session = onnxruntime.InferenceSession(
            str(file), options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:
        raise InputError(f"'{file}': cannot be read as ONNX ({reason(error)})") from None
    [given, *_] = session.get_inputs()
    name, width = given.name, given.shape[-1]

    def policy(seen: NDArray[np.float32]) -> Any:
        if isinstance(width, int) and width != seen.shape[1]:
            raise InputError(
                f"'{file}': takes {width} numbers, but there are {seen.shape[1]} to see here"
            )
        answer = np.asarray(session.run(None, {name: seen})[0])
        scores = answer.ndim == 2 and answer.shape[1] > 1
        return answer.argmax(axis=1) if scores else answer.reshape(-1)

    return policy


def _check_file(file: Path) -> None:
    try:
        opened(Path(file), MOST_NETWORK).close()
    except (FileNotFoundError, IsADirectoryError):
        raise InputError(f"there is no file '{file}'") from None
    except OSError as error:
        raise InputError(f"'{file}': cannot be read ({error.strerror})") from None
