"""The Ray executor: units as tasks of a cluster, for more than one machine.

Nodes need not share a disk: a unit is carried out in a temporary folder of its node, and its files
come back to the machine that runs the study. A node that dies costs its units another try.
"""

import os
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cosmo.device import VARIABLE, chosen_device
from cosmo.errors import InputError
from cosmo.files import temporary_folder, whole_file
from cosmo.study.checks import DONE, STATE
from cosmo.study.executor import Event, Failed, Finished, Started, Work
from cosmo.study.pool import WORKER_ENVIRONMENT, cause, environment
from cosmo.study.units import Unit

_TRIES = 5  # of a unit whose node or process dies
_ASK_S = 1.0  # how often progress is looked at


def _ray() -> Any:
    try:
        import ray
    except ImportError:
        raise InputError(
            "--executor ray: Ray is not installed; install it from a clone: pip install '.[ray]'"
        ) from None
    return ray


def _carried_out(unit: Unit, work: Work, shares: Any) -> tuple[str | None, dict[str, bytes]]:
    """On a node: (what went wrong, the files that were written)."""
    last = 0.0

    def report(share: float) -> None:
        nonlocal last
        if time.monotonic() - last > _ASK_S:
            last = time.monotonic()
            shares.tell.remote(unit.name, share)

    with temporary_folder() as folder:
        try:
            work(unit, folder, report)
        except BaseException as error:  # a policy may raise anything
            return cause(error), {}
        paths = (path for path in folder.rglob("*") if path.is_file() and path != folder / STATE)
        return None, {str(path.relative_to(folder)): path.read_bytes() for path in paths}


class _Shares:
    """Lives in the cluster: what units say about their progress."""

    def __init__(self) -> None:
        self._shares: dict[str, float] = {}

    def tell(self, name: str, share: float) -> None:
        """Note the share (0 to 1) of a unit that is done."""
        self._shares[name] = share

    def all(self) -> dict[str, float]:
        """The share (0 to 1) that is done, by the names of units that have reported any."""
        return self._shares


def start_here(cpus: int | None, **start: Any) -> None:
    """A cluster of this machine alone: whoever reaches one of Ray's ports can run code.

    `start` are further arguments of `ray.init`. InputError if Ray listens to others all the same.
    """
    ray = _ray()
    from ray._private import ray_constants

    before = ray_constants.ENABLE_RAY_CLUSTER
    # Ray's own switch for "no cluster"; its processes read the variable, this one the constant.
    with environment({"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}):
        ray_constants.ENABLE_RAY_CLUSTER = False
        try:
            ray.init(address="local", num_cpus=cpus, include_dashboard=False, **start)
        finally:
            ray_constants.ENABLE_RAY_CLUSTER = before
    where = ray.util.get_node_ip_address()
    if where not in ("127.0.0.1", "::1"):
        ray.shutdown()
        raise InputError(
            f"--executor ray: this version of Ray listens on {where}, open to others; start a"
            " cluster yourself and give its --address"
        )


class RayExecutor:
    """Units on a Ray cluster: at `address`, or one that is started here and ends with the study."""

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        self._ray, self._address, self._workers = _ray(), address, workers

    @contextmanager
    def kept(self) -> Iterator[None]:
        """One connection, or one cluster of this machine, for all `run`s of the block."""
        ours = not self._ray.is_initialized()
        if ours:
            self._connect()
        try:
            yield
        finally:
            if ours:
                self._ray.shutdown()

    def run(self, units: Sequence[Unit], folder: Path, work: Work) -> Iterator[Event | Failed]:
        """Events as they happen, until every unit is finished or has failed."""
        with self.kept():
            yield from self._run(units, folder, work)

    def _connect(self) -> None:
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        _check_address(self._address)
        start: dict[str, Any] = {
            "log_to_driver": False,
            "logging_level": "ERROR",
            "runtime_env": {"env_vars": {**WORKER_ENVIRONMENT, VARIABLE: chosen_device()}},
        }
        try:
            if self._address is None:
                start_here(self._workers, **start)
            else:
                self._ray.init(address=self._address, **start)
        except (ConnectionError, ValueError, RuntimeError) as error:
            if isinstance(error, InputError):
                raise
            reason = str(error).strip().splitlines()[0]
            raise InputError(f"address = {self._address!r}: no Ray cluster ({reason})") from None

    def _run(self, units: Sequence[Unit], folder: Path, work: Work) -> Iterator[Event | Failed]:
        ray = self._ray
        shares = ray.remote(num_cpus=0, max_restarts=-1)(_Shares).remote()
        task = ray.remote(num_cpus=1, max_retries=_TRIES)(_carried_out)
        left = {task.remote(unit, work, shares): unit for unit in units}
        known: dict[str, float] = {}
        while left:
            done, _ = ray.wait(list(left), timeout=_ASK_S)
            for reference in done:
                unit = left.pop(reference)
                try:
                    wrong, files = ray.get(reference)
                except ray.exceptions.RayError as error:
                    text = str(error).strip().splitlines()[0]
                    yield Failed(unit, f"{type(error).__name__}: {text}")
                    continue
                if wrong is None:
                    _write(folder / unit.name, files)
                    yield Finished(unit)
                else:
                    yield Failed(unit, wrong)
            yield from self._progress(shares, left, known)

    def _progress(
        self, shares: Any, left: dict[Any, Unit], known: dict[str, float]
    ) -> Iterator[Event]:
        try:
            told = self._ray.get(shares.all.remote(), timeout=5.0)
        except self._ray.exceptions.RayError:
            return  # its node is gone; it is started again elsewhere
        for unit in left.values():
            share = told.get(unit.name)
            if share is not None and known.get(unit.name) != share:
                yield Started(unit) if unit.name not in known else Event(unit, share)
                known[unit.name] = share


def _check_address(address: str | None) -> None:
    """Ray itself waits for minutes where nobody answers."""
    host, colon, port = (address or "").removeprefix("ray://").rpartition(":")
    if not colon:
        return  # none, auto or local
    try:
        socket.create_connection((host, int(port)), timeout=5.0).close()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"address = {address!r}: no Ray cluster answers ({reason})") from None


def _write(folder: Path, files: dict[str, bytes]) -> None:
    """`done.json` last, as the unit itself would have."""
    for name in sorted(files, key=lambda name: name == DONE):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as temporary:
            temporary.write_bytes(files[name])
