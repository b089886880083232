"""Clients of an EN: hand over a task, get its outcome."""

import itertools
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

from cosmo.files import MOST_KEY, read_bytes
from cosmo.live import wire
from cosmo.live.peers import CHANNEL_OPTIONS
from cosmo.live.tasks import Fate

_GRACE_S = 1.0  # after the deadline, for the answer that says so
_SMOOTHING = 0.1
_MOST_BYTES = 64_000_000


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a task."""

    fate: Fate
    where: str  # "local", an SN's name, or empty
    output: bytes
    delay_ms: float  # from generation to this answer, on the client's clock
    held_ms: float  # of that, by the EN
    reason: str
    rerun: bool

    @property
    def in_time(self) -> bool:
        """Whether the EN had the result within the deadline."""
        return self.fate == Fate.DONE


@dataclass(frozen=True, slots=True)
class Certificates:
    """Files in PEM: the client's own, and the authority that has signed the EN's."""

    certificate: Path
    key: Path
    authority: Path
    name: str  # of the EN, as its certificate has it

    def credentials(self) -> grpc.ChannelCredentials:
        """Return gRPC credentials for a channel to a node, read from the three files."""
        return grpc.ssl_channel_credentials(
            *(read_bytes(path, MOST_KEY) for path in (self.authority, self.key, self.certificate))
        )


class _Requests:
    """Tasks of one client, and how long they are on their way."""

    def __init__(self, ue: int, scale: float) -> None:
        self._ue, self.scale = ue, scale
        self._numbers = itertools.count()
        self.one_way_ms = 0.0

    def task(
        self,
        content: bytes,
        cycles: float,
        deadline_ms: float,
        elapsed_ms: float,
        kind: str,
        residual_ms: float,
    ) -> tuple[Any, float]:
        """The message, and the seconds that a call may take."""
        there_ms = elapsed_ms + self.one_way_ms / self.scale
        task = wire.Task(
            id=next(self._numbers),
            kind=kind,
            cycles=cycles,
            deadline_us=max(int(deadline_ms * 1000.0), 1),
            elapsed_us=max(int(there_ms * 1000.0), 0),
            input=content,
            ue=self._ue,
            residual_us=int(residual_ms * 1000.0),
        )
        return task, max(deadline_ms - elapsed_ms, 0.0) * self.scale / 1000.0 + _GRACE_S

    def answer(self, outcome: Any, began_s: float, elapsed_ms: float) -> Answer:
        """What an outcome says; learns how long the way is."""
        took_ms = (time.monotonic() - began_s) * 1000.0
        held_ms = outcome.held_us / 1000.0
        one_way = max(took_ms - held_ms * self.scale, 0.0) / 2.0
        weight = _SMOOTHING if self.one_way_ms else 1.0
        self.one_way_ms += weight * (one_way - self.one_way_ms)
        return Answer(
            fate=Fate(outcome.fate),
            where=outcome.where,
            output=outcome.output,
            delay_ms=elapsed_ms + took_ms / self.scale,
            held_ms=held_ms,
            reason=outcome.reason,
            rerun=outcome.rerun,
        )


def _options(certificates: Certificates | None) -> list[tuple[str, Any]]:
    sizes = [("grpc.max_receive_message_length", _MOST_BYTES)]
    named = [("grpc.ssl_target_name_override", certificates.name)] if certificates else []
    patient = [("grpc.min_reconnect_backoff_ms", 10_000)]  # the last of a name counts
    return [*CHANNEL_OPTIONS, *sizes, *named, *patient]


class _Caller:
    """A channel to an EN, and what is known of the way there."""

    _stack: Any = grpc  # who makes the channel: for threads, or for asyncio

    def __init__(
        self,
        address: str,
        *,
        ue: int = 0,
        scale: float = 1.0,
        certificates: Certificates | None = None,
    ) -> None:
        """`scale` is that of the nodes, 1 unless they run slowed down."""
        self._requests = _Requests(ue, scale)
        options = _options(certificates)
        if certificates is None:
            self._channel = self._stack.insecure_channel(address, options)
        else:
            signed = certificates.credentials()
            self._channel = self._stack.secure_channel(address, signed, options)
        self._submit = self._channel.unary_unary(
            wire.SUBMIT, wire.Task.SerializeToString, wire.Outcome.FromString
        )

    @property
    def one_way_ms(self) -> float:
        """How long a task is on its way to the EN, in real ms, as far as is known."""
        return self._requests.one_way_ms


class AsyncClient(_Caller):
    """A client for asyncio, which sends tasks to an EN and awaits their outcomes."""

    _stack = grpc.aio

    async def submit(
        self,
        content: bytes,
        *,
        deadline_ms: float,
        cycles: float = 0.0,
        elapsed_ms: float = 0.0,
        kind: str = "",
        residual_ms: float = 0.0,
    ) -> Answer:
        """Have a task done; `elapsed_ms` of its deadline have gone already.

        Raises grpc.RpcError if the EN cannot be reached, or does not take the call at all.
        """
        began = time.monotonic()
        task, timeout_s = self._requests.task(
            content, cycles, deadline_ms, elapsed_ms, kind, residual_ms
        )
        outcome = await self._submit(task, timeout=timeout_s)
        return self._requests.answer(outcome, began, elapsed_ms)

    async def close(self) -> None:
        """Close the connection to the EN."""
        await self._channel.close()

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *unused: object) -> None:
        await self.close()


class Client(_Caller):
    """The same for threads: a call blocks until its outcome is there."""

    def submit(
        self,
        content: bytes,
        *,
        deadline_ms: float,
        cycles: float = 0.0,
        elapsed_ms: float = 0.0,
        kind: str = "",
        residual_ms: float = 0.0,
    ) -> Answer:
        """Have a task done, as `AsyncClient.submit`."""
        began = time.monotonic()
        task, timeout_s = self._requests.task(
            content, cycles, deadline_ms, elapsed_ms, kind, residual_ms
        )
        outcome = self._submit(task, timeout=timeout_s)
        return self._requests.answer(outcome, began, elapsed_ms)

    def close(self) -> None:
        """Close the connection to the EN."""
        self._channel.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()
