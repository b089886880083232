"""A request router of Ray Serve that any method of the registry decides for.

    from cosmo.integrations.ray_serve import router_config

    @serve.deployment(num_replicas=4, request_router_config=router_config("in-flight"))
    class Model: ...

The router is an EN that can run nothing itself, and replicas are its SNs. Ray Serve's router API is
marked alpha; this module is written for 2.60. What differs from a node of our own:

- Demand is unknown: every request is declared as `service_ms` of one slot.
- There is no rejection: an empty answer would make Ray try for ever. If a method rejects, or names
  no replica that is there, the request goes to the replica with the fewest own requests a slot.
- No status arrives: replicas report to Ray's controller every 10 s, which is too old to decide by.
  Methods decide from their own requests and results.
"""

import logging
import math
import random
import time
from collections import deque
from collections.abc import Container, Sequence
from typing import Any, NamedTuple

import numpy as np

from cosmo.errors import InputError
from cosmo.live.dispatcher_runner import DispatcherRunner
from cosmo.live.sight import Links as SeenLinks
from cosmo.live.sight import Sight
from cosmo.live.sites import nodes_of
from cosmo.node import (
    DONE,
    GIVEN_UP,
    REFUSED,
    Links,
    Method,
    Prices,
    Scales,
    Site,
    Tasks,
)
from cosmo.policy.registry import method as made_method
from cosmo.policy.rules.run import Task
from cosmo.scenario.topology import Node
from cosmo.seeds import Draws

try:
    from ray.serve.config import RequestRouterConfig
    from ray.serve.request_router import RequestRouter
except ImportError as error:  # pragma: no cover
    raise InputError(
        f"cosmo.integrations.ray_serve needs Ray Serve ({error.name}); install it from a clone of"
        " the repository: pip install '.[ray-serve]'"
    ) from None

_LOG = logging.getLogger("ray.serve")
_FAR_MS = 1e9  # backlog of a link to a replica that is gone
_PLENTY = 1e6  # Mbit/s and bytes that are no matter
_RATES = (_PLENTY, 0.0, 0.0)  # mean of a link to a replica, its deviation, trend
_EN_STATE = [1.0, 0.0, 0.0, 1.0, 0.0, 0.0]  # `cosmo.node.observation` of an EN that runs nothing
_MOST_SLOTS = 1_000_000
_MOST = 256  # requests at a replica that methods keep in mind


class Expected(NamedTuple):
    """What a deployment's replicas and requests are like."""

    slots: int  # requests that a replica works on at a time
    service_ms: float  # mean time of a request in a slot
    deadline_ms: float  # after which an answer is late
    rate: float  # requests a second that a router is planned for


def router_config(
    method: str = "in-flight",
    slots: int = 1,
    service_ms: float = 100.0,
    deadline_ms: float = 10_000.0,
    rate: float = 100.0,
    seed: int = 0,
    **others: Any,
) -> Any:
    """A `RequestRouterConfig` of Ray Serve with `CosmoRouter`.

    `method` is a method of the registry with its parameters ("in-flight", "power-of-d:d=3"),
    `slots` the requests that a replica works on at a time, `service_ms` the mean time of a request,
    `deadline_ms` the time after which an answer is late, `rate` the requests a second to plan for,
    and `seed` that of ties at random. `others` are further fields of Ray's class. InputError for
    values that cannot be.
    """
    expected = _checked(Expected(slots, service_ms, deadline_ms, rate))
    made_method(method)
    given = {"method": method, "seed": seed, **expected._asdict()}
    made: Any = RequestRouterConfig
    return made(
        request_router_class="cosmo.integrations.ray_serve:CosmoRouter",
        request_router_kwargs=given,
        **others,
    )


def _checked(expected: Expected) -> Expected:
    for name, value in expected._asdict().items():
        if not (isinstance(value, int | float) and 0 < value < math.inf):
            raise InputError(f"{name} = {value!r}: must be a number greater than 0")
    if expected.slots != int(expected.slots) or expected.slots > _MOST_SLOTS:
        raise InputError(f"slots = {expected.slots!r}: must be a whole number up to {_MOST_SLOTS}")
    return expected


def _site(expected: Expected, replicas: int, seed: int) -> Site:
    """One EN that can run nothing, and equal SNs; a cycle is a millisecond of a slot."""
    replica = Node(
        slots=int(expected.slots), cycles_per_ms=1.0, storage_bytes=_PLENTY, queue_capacity=_MOST
    )
    router = Node(slots=1, cycles_per_ms=1e-3, storage_bytes=1.0, queue_capacity=1)
    links = np.ones((1, replicas))
    service, deadline = expected.service_ms, expected.deadline_ms
    return Site(
        en=nodes_of([router]),
        sn=nodes_of([replica] * replicas),
        links=Links(
            reach=np.arange(replicas)[None],
            up_mbps=_PLENTY * links,
            down_mbps=_PLENTY * links,
            hops=np.ones((1, replicas), np.int64),
            hop_delay_ms=0.0 * links,
            packet_bytes=1500.0,
            result_bytes=1.0,
        ),
        reservation_floor_bytes=1.0,
        tasks=Tasks((1.0, 1.0), (service, service), (deadline, deadline), expected.rate, 1.0),
        scales=Scales(service, service, _PLENTY, deadline, service, 10.0),
        prices=Prices(1.0, 1.0),
        draws=(Draws.of(seed, 0),),
    )


class _Sent(NamedTuple):
    """A request that the method has sent to a replica."""

    number: int  # of the task
    action: int
    replica: Any  # its id
    generation: int  # of the dispatcher that decided
    until_ms: float  # later answers are late


class Columns:
    """Which replica has which column of the site: whoever stays keeps its own."""

    def __init__(self) -> None:
        self.ids: list[Any] = []  # [column] id, None where nobody is

    def settle(self, present: Sequence[Any]) -> bool:
        """Take note of who is there; whether there are more columns than before."""
        self.ids = [each if each in present else None for each in self.ids]
        before = len(self.ids)
        for each in present:
            if each in self.ids:
                continue
            if None in self.ids:
                self.ids[self.ids.index(None)] = each
            else:
                self.ids.append(each)
        return len(self.ids) > before


class CosmoRouter(RequestRouter):
    """See the module. One router serves one deployment in one process (a handle or a proxy).

    Replicas may come and go. What a method knows of the others stays, but for methods that cannot
    take over what they know when there are more replicas than ever before: these start anew.
    """

    def initialize_state(self, method: str = "in-flight", seed: int = 0, **expected: Any) -> None:
        """Called by Ray with what `router_config` has put together."""
        self._method: Method = made_method(method)
        self._expected, self._seed = _checked(Expected(**expected)), seed
        self._columns = Columns()
        self._runner: DispatcherRunner | None = None  # once there are replicas
        self._links: SeenLinks  # likewise
        self._no_status = np.zeros(self._method.carries)
        self._generation = self._number = self.redirected = 0
        self._sent: dict[str, _Sent] = {}  # by Ray's id of the request
        self._open: dict[Any, int] = {}  # own requests in flight, by replica
        # Answers come in from other threads; only `choose_replicas` reads this.
        self._answers: deque[tuple[str, Any, float]] = deque()
        self._random = random.Random(seed)
        self._start = time.monotonic()

    def _now_ms(self) -> float:
        return 1000.0 * (time.monotonic() - self._start)

    async def choose_replicas(
        self, candidate_replicas: list[Any], pending_request: Any = None
    ) -> list[list[Any]]:
        """The method's choice first, then the others, the least busy first, if that one is full."""
        replicas = {each.replica_id: each for each in candidate_replicas}
        if not replicas:
            return []
        now = self._now_ms()
        self._hear()
        self._give_up_gone(replicas, now)
        if self._columns.settle(list(replicas)) or self._runner is None:
            self._grow()
        self._open = {each: self._open.get(each, 0) for each in replicas}
        if pending_request is None:
            return [[replicas[each]] for each in self._least_busy()]
        name = pending_request.metadata.internal_request_id
        if name in self._sent:  # Ray asks again: the last choice was full
            self._end(name, REFUSED, now)
        chosen = self._ask(name, now)
        if name not in self._sent:
            self._sent[name] = _Sent(-1, 0, chosen, self._generation, math.inf)
        self._open[chosen] += 1
        pending_request.future.add_done_callback(lambda done: self._given_up(name, done))
        return [[replicas[chosen]], *([replicas[k]] for k in self._least_busy() if k != chosen)]

    def on_request_routed(self, pending_request: Any, replica_id: Any, result: Any) -> None:
        """Another replica than the chosen one has taken the request, as that one was full."""
        name = pending_request.metadata.internal_request_id
        sent = self._sent.get(name)
        if sent is not None and sent.replica != replica_id:
            self._end(name, REFUSED, self._now_ms())
            self._sent[name] = _Sent(-1, 0, replica_id, self._generation, math.inf)
            self._open[replica_id] = self._open.get(replica_id, 0) + 1

    def on_request_completed(self, replica_id: Any, internal_request_id: str) -> None:
        """An answer has come, or an error."""
        self._answers.append((internal_request_id, replica_id, self._now_ms()))

    def _given_up(self, name: str, done: Any) -> None:
        if done.cancelled():  # before a replica had it
            self._answers.append((name, None, self._now_ms()))

    def _hear(self) -> None:
        """What has come of requests since the last decision."""
        while self._answers:
            name, replica, at_ms = self._answers.popleft()
            sent = self._sent.get(name)
            if sent is None or replica not in (None, sent.replica):
                continue  # a full replica has sent it away; it went to another one
            self._end(name, GIVEN_UP if replica is None else DONE, at_ms)

    def _give_up_gone(self, present: Container[Any], now: float) -> None:
        """Nothing is heard any more of requests whose replica has gone: they must not pile up."""
        if all(each is None or each in present for each in self._columns.ids):
            return
        for name in [name for name, sent in self._sent.items() if sent.replica not in present]:
            self._end(name, GIVEN_UP, now)

    def _end(self, name: str, fate: int, at_ms: float) -> None:
        sent = self._sent.pop(name)
        if self._open.get(sent.replica):
            self._open[sent.replica] -= 1
        if self._runner is not None and sent.number >= 0 and sent.generation == self._generation:
            in_time = fate == DONE and at_ms <= sent.until_ms
            self._runner.note_fate(sent.number, sent.action, fate, in_time, at_ms)

    def _grow(self) -> None:
        """There are more columns: the method goes on with what it knows, if it can."""
        count = len(self._columns.ids)
        site = _site(self._expected, count, self._seed)
        self._links = SeenLinks(site.links.reach, count, self._method.carries)
        if self._runner is None or not self._runner.resize(site, same=True):
            self._start_over(site)

    def _start_over(self, site: Site) -> None:
        self._runner = DispatcherRunner(self._method, site, 0)
        self._generation += 1
        self._number = 0

    def _ask(self, name: str, now: float) -> Any:
        """The replica that the method chooses, or the least busy one if it chooses none."""
        assert self._runner is not None
        number, self._number = self._number, self._number + 1
        try:
            action = self._runner.choose(self._seen(number, now))
        except InputError as error:
            _LOG.error(f"cosmo: {error}; the least busy replica is used")
            self._start_over(self._runner.site)
            action = 0
        ids = self._columns.ids
        if 0 < action <= len(ids) and ids[action - 1] is not None:
            chosen = ids[action - 1]
            until_ms = now + self._expected.deadline_ms
            self._sent[name] = _Sent(number, action, chosen, self._generation, until_ms)
            return chosen
        self._runner.note_fate(number, action, GIVEN_UP, False, now)
        self.redirected += 1
        return self._least_busy()[0]

    def _least_busy(self) -> list[Any]:
        """Replicas with the fewest own requests first; ties at random."""
        ids = list(self._open)
        self._random.shuffle(ids)
        return sorted(ids, key=self._open.__getitem__)

    def _seen(self, number: int, now: float) -> Sight:
        """What an EN sees of a request; nothing can run here."""
        for column, replica in enumerate(self._columns.ids):
            backlog_ms = _FAR_MS if replica is None else 0.0
            self._links.see(column, _RATES, self._no_status, math.nan, backlog_ms)
        task = Task(
            world=0,
            en=0,
            task=number,
            time_ms=now,
            generated_ms=now,
            input_bytes=1.0,
            cycles=self._expected.service_ms,
            deadline_ms=self._expected.deadline_ms,
            en_state=_EN_STATE,
            local_wait_ms=_FAR_MS,
            local_room=False,
        )
        return Sight(task, 0, _PLENTY, 0.0, _FAR_MS, 1.0, self._links)
