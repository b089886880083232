"""What nodes know from the start: their own speeds and sizes, the links, and those of others.

One `Site` describes the ENs and SNs that a dispatcher or updater acts for. In a simulation these
are all nodes of a scenario, in every world of a batch; on a real node they are the node itself and
the peers that it has been introduced to.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosmo.node.observation import NO_NODE, DispatchObservation, UpdateObservation
from cosmo.node.units import BYTES_PER_MS, transfer_ms
from cosmo.seeds import Draws, Purpose

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Nodes:
    """Nodes of one kind, [node] each. Scenarios and daemons' files describe nodes by these names
    (`cosmo.scenario.topology`).
    """

    slots: Ints
    cycles_per_ms: Floats  # of one slot
    storage_bytes: Floats
    queue_capacity: Ints  # waiting and running tasks

    @classmethod
    def of(cls, columns: Mapping[str, Sequence[float]]) -> "Nodes":
        """From a number a node for each field; what else there is in `columns` is left alone."""
        made: dict[str, Any] = {
            each.name: np.array(columns[each.name], np.int64 if each.type is Ints else np.float64)
            for each in fields(cls)
        }
        return cls(**made)

    def row(self, number: int) -> dict[str, float]:
        """One node's fields, as plain numbers."""
        return {field.name: getattr(self, field.name)[number].item() for field in fields(self)}

    def columns(self) -> dict[str, list[float]]:
        """Each field as a list with a number a node: the inverse of `of`."""
        return {field.name: getattr(self, field.name).tolist() for field in fields(self)}

    def __len__(self) -> int:
        return len(self.slots)

    @cached_property
    def full_rate(self) -> Floats:
        """[node] cycles per ms of all slots."""
        return self.slots * self.cycles_per_ms

    @cached_property
    def idle_state(self) -> Floats:
        """[node, (N, W, B, M)] of nodes with nothing to do."""
        nothing = np.zeros(len(self))
        return np.stack([self.slots.astype(np.float64), nothing, nothing, self.storage_bytes], 1)


@dataclass(frozen=True)
class Links:
    """EN–SN links (R13), [EN, k] of the k-th SN that an EN reaches (R30).

    Where an EN reaches fewer SNs than others do, rates and hops are 1, and mean nothing.
    """

    reach: Ints  # number of the SN; -1 where there is none
    up_mbps: Floats  # nominal
    down_mbps: Floats
    hops: Ints
    hop_delay_ms: Floats
    packet_bytes: float
    result_bytes: float

    def transfer_ms(self, message_bytes: Floats, mbps: Floats, en: Ints | slice) -> Floats:
        """[row, k] how long a message takes on idle links of such rates; `en` is each row's EN."""
        found: Floats = transfer_ms(
            message_bytes,
            mbps * BYTES_PER_MS,
            self.hops[en],
            self.hop_delay_ms[en],
            self.packet_bytes,
        )
        return found

    @cached_property
    def result_ms(self) -> Floats:
        """[EN, k] from the finish at the SN until the result is back, on an idle link."""
        size = np.full_like(self.down_mbps, self.result_bytes)
        return self.transfer_ms(size, self.down_mbps, slice(None))

    @cached_property
    def exist(self) -> Bools:
        """[EN, k] whether there is such a link."""
        return np.asarray(self.reach != NO_NODE)

    @property
    def all_alike(self) -> bool:
        """Whether every EN reaches equally many SNs, so that every action is allowed at each."""
        return bool(self.exist.all())

    @cached_property
    def reached_by(self) -> tuple[Ints, Ints]:
        """Of each SN, the ENs that reach it, in order: ([SN, k] their numbers, -1 where there are
        fewer, [SN, k] in which column of `reach` they have the SN).
        """
        en, column = np.nonzero(self.exist)
        sn = self.reach[en, column]
        order = np.argsort(sn, kind="stable")
        counts = np.bincount(sn)
        place = np.arange(len(sn)) - np.repeat(np.cumsum(counts) - counts, counts)
        table = np.full((2, len(counts), int(counts.max())), NO_NODE, np.int64)
        table[0, sn[order], place], table[1, sn[order], place] = en[order], column[order]
        return table[0], table[1]


@dataclass(frozen=True)
class Tasks:
    """What tasks are expected: bounds of their sizes, and how they come."""

    input_bytes: tuple[float, float]
    cycles: tuple[float, float]
    deadline_ms: tuple[float, float]
    rate: float  # mean tasks a second at an EN
    squared_variation: float  # of the gaps between them: 0 deterministic, 1 Poisson

    @property
    def mean_cycles(self) -> float:
        """Mean declared cycles of a task."""
        return 0.5 * sum(self.cycles)


@dataclass(frozen=True)
class Scales:
    """What makes observations comparable (R18)."""

    wait_ms: float
    work_ms: float  # of a node's full rate
    throughput_mbps: float
    residual_ms: float
    age_ms: float
    most_age: float  # ages are cut off at so many of the above

    def age(self, age_ms: Floats) -> Floats:
        """Ages on their scale."""
        return np.minimum(age_ms / self.age_ms, self.most_age)


@dataclass(frozen=True)
class Prices:
    """What success and updates are worth, in units of utility (R16)."""

    success: float
    per_number: float  # λ_s·c_s: of each number that a status carries


@dataclass(frozen=True)
class Site:
    """What a dispatcher or an updater knows of its nodes, their links and the expected tasks.

    `draws` has the random numbers of each world (R26); no world's seed follows from them (R41).
    """

    en: Nodes
    sn: Nodes
    links: Links
    reservation_floor_bytes: float
    tasks: Tasks
    scales: Scales
    prices: Prices
    draws: tuple[Draws, ...] = (Draws.of(0, 0),)

    @property
    def worlds(self) -> int:
        """How many there are in the batch; 1 on a real node."""
        return len(self.draws)

    @property
    def runs(self) -> tuple[str, ...]:
        """The run of each world, by a digest of its seed (`run_digest`): trained controllers act
        where they were evaluated.
        """
        return tuple(each.run for each in self.draws)

    def random(self, purpose: Purpose) -> list[np.random.Generator]:
        """A generator of random numbers for each world, its own; `purpose` is DISPATCHER or
        UPDATER (InputError for any other: those streams make the world).
        """
        return [each.generator(purpose) for each in self.draws]

    def state_scale(self, nodes: Nodes) -> Floats:
        """[node, (N, W, B, M)] slots, ms, cycles, bytes (R18)."""
        wait = np.full(len(nodes), self.scales.wait_ms)
        work = self.scales.work_ms * nodes.full_rate
        return np.stack([nodes.slots.astype(np.float64), wait, work, nodes.storage_bytes], axis=1)

    def reservation(self, input_bytes: Floats) -> Floats:
        """Bytes of storage that tasks hold while they are at a node (R9)."""
        return np.maximum(input_bytes, self.reservation_floor_bytes)

    @cached_property
    def largest_reservation(self) -> float:
        """Of any task that is expected."""
        return max(self.reservation_floor_bytes, self.tasks.input_bytes[1])

    def places(self, nodes: Nodes) -> Floats:
        """[node] tasks of the largest size that fit in (R9, R10)."""
        fit = np.floor(nodes.storage_bytes / self.largest_reservation)
        return np.minimum(nodes.queue_capacity.astype(np.float64), fit)

    def most_tasks(self, nodes: Nodes) -> Ints:
        """[node] the most tasks of the smallest size that fit in, at least 1."""
        fit = nodes.storage_bytes / self.reservation(np.array(self.tasks.input_bytes[0]))
        most = np.minimum(nodes.queue_capacity, np.floor(fit)).astype(np.int64)
        return np.maximum(most, 1)

    def upload_ms(self, tasks: DispatchObservation) -> Floats:
        """[row, k] from now until the input is at the SN, behind what the link holds (R13);
        infinite where there is no SN.
        """
        return tasks.up_backlog_ms + self.links.transfer_ms(
            tasks.input_bytes[:, None], tasks.up_link_mbps[:, :, 0], tasks.en
        )

    def raw_states(self, tasks: DispatchObservation) -> Floats:
        """[row, k, (N, W, B, M)] of SNs by their last raw status, idle while there is none (R14);
        of any SN where there is none.
        """
        return np.where(tasks.heard[:, :, None], tasks.status, self.sn.idle_state[tasks.sn])

    def down_mbps(self, nodes: UpdateObservation) -> Floats:
        """[row, k] nominal rate from the SN to its k-th EN; of any link where there is none."""
        ens, columns = self.links.reached_by
        found: Floats = self.links.down_mbps[ens[nodes.sn], columns[nodes.sn]]
        return found

    def return_ms(self, tasks: DispatchObservation) -> Floats:
        """[row, k] from the finish at the SN until the result is back, on an idle link."""
        back: Floats = self.links.result_ms[tasks.en]
        return back
