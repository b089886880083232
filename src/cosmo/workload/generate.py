"""Episodes from a scenario and a seed (R2, R3, R26), or from given tasks."""

import math

import numpy as np
from numpy.typing import NDArray

from cosmo.node.units import BYTES_PER_MS, transfer_ms
from cosmo.scenario import Scenario
from cosmo.seeds import Purpose, stream
from cosmo.workload.arrivals import arrival_times, modulated
from cosmo.workload.effort import check_effort
from cosmo.workload.table import BackgroundTasks, Episode, Tasks
from cosmo.workload.windows import trace_of, window

Floats = NDArray[np.float64]


def episode(scenario: Scenario, seed: int, number: int) -> Episode:
    """Episode `number` of a run: its tasks, background load and link rates.

    The tasks are generated, or a window of the scenario's trace (see `windows`).
    Raises InputError if it would be too long to compute (`effort`).
    """
    if scenario.workload.trace:
        return from_tasks(
            scenario, window(scenario, trace_of(scenario), seed, number), seed, number
        )
    check_effort(scenario, scenario.episode.window_ms)
    cells = [_cell(scenario, seed, number, en) for en in range(scenario.en.count)]
    columns = [np.concatenate(column) for column in zip(*cells, strict=True)]
    order = np.argsort(columns[0], kind="stable")
    time, en, ue, size, cycles, deadline = (column[order] for column in columns)
    return Episode(
        tasks=Tasks(time, en, ue, size, cycles, deadline),
        background=_background(scenario, seed, number),
        rate_factor=_rate_factor(scenario, seed, number),
        window_ms=scenario.episode.window_ms,
        message_seed=_message_seed(seed, number),
        network_seed=_network_seed(seed, number),
        rate=scenario.workload.rate * scenario.en.count,
    )


def from_tasks(scenario: Scenario, tasks: Tasks, seed: int, number: int) -> Episode:
    """An episode with given tasks. The window is stretched to the next full second if they go on
    beyond it; background load and link rates are drawn as ever.
    """
    window = scenario.episode.window_ms
    if len(tasks) and tasks.time_ms[-1] >= window:
        window = 1000.0 * (math.floor(float(tasks.time_ms[-1]) / 1000.0) + 1.0)
        longer = scenario.episode.model_copy(update={"window_ms": window})
        scenario = scenario.model_copy(update={"episode": longer})
    check_effort(scenario, window, len(tasks))
    return Episode(
        tasks=tasks,
        background=_background(scenario, seed, number),
        rate_factor=_rate_factor(scenario, seed, number),
        window_ms=window,
        message_seed=_message_seed(seed, number),
        network_seed=_network_seed(seed, number),
        rate=len(tasks) / (window / 1000.0),
    )


def idle_delay_ms(scenario: Scenario, en: int, input_bytes: Floats, cycles: Floats) -> Floats:
    """R3: the shorter of the two paths (the shortest of all) on an idle system."""
    access, links = scenario.access, scenario.links
    uplink = access.overhead_ms + input_bytes / (access.rate_mbps * BYTES_PER_MS)
    best = uplink + cycles / scenario.en.each("cycles_per_ms")[en]
    speeds = scenario.sn.each("cycles_per_ms")
    result_bytes = np.float64(scenario.backhaul.result_bytes)
    for link in range(links.first[en], links.first[en + 1]):
        there = _transfer_ms(scenario, input_bytes, link, links.up_mbps[link])
        back = _transfer_ms(scenario, result_bytes, link, links.down_mbps[link])
        best = np.minimum(best, uplink + there + cycles / speeds[links.sn[link]] + back)
    return best


def deadlines_ms(
    scenario: Scenario, en: int, input_bytes: Floats, cycles: Floats, slack_ms: Floats
) -> Floats:
    """R3, from the generation of each task of a cell."""
    rule = scenario.workload.deadline
    limit = rule.factor * idle_delay_ms(scenario, en, input_bytes, cycles) + slack_ms
    return np.clip(limit, *rule.clip_ms)


def _transfer_ms(
    scenario: Scenario, size: Floats | np.float64, link: int, mbps: np.float64
) -> Floats:
    """R13 on an idle link."""
    links, packet_bytes = scenario.links, scenario.backhaul.packet_bytes
    hops, delay_ms = links.hops[link], links.hop_delay_ms[link]
    return np.asarray(transfer_ms(size, mbps * BYTES_PER_MS, hops, delay_ms, packet_bytes))


def _cell(scenario: Scenario, seed: int, number: int, en: int) -> tuple[NDArray[np.generic], ...]:
    def random(purpose: Purpose) -> np.random.Generator:
        return stream(seed, purpose, number, en)

    workload, deadline = scenario.workload, scenario.workload.deadline
    time = arrival_times(scenario, random(Purpose.ARRIVALS))
    count = len(time)
    size = _whole(workload.input_bytes, count, random(Purpose.INPUT_BYTES))
    cycles = _whole(workload.cycles, count, random(Purpose.CYCLES))
    slack = random(Purpose.SLACK).uniform(*deadline.slack_ms, count)
    ues = len(scenario.mobility.distances_m)
    return (
        time,
        np.full(count, en, np.int64),
        np.arange(count, dtype=np.int64) % ues,  # R2: the UEs in turn
        size,
        cycles,
        deadlines_ms(scenario, en, size, cycles, slack),
    )


def _whole(bounds: tuple[float, float], count: int, random: np.random.Generator) -> Floats:
    """Uniform whole numbers, so that a trace file holds them exactly."""
    low, high = math.ceil(bounds[0]), math.floor(bounds[1])
    if low > high:  # no whole number in between: a degenerate range of a user's scenario
        return np.full(count, bounds[0])
    return random.integers(low, high, count, endpoint=True).astype(np.float64)


def _background(scenario: Scenario, seed: int, number: int) -> BackgroundTasks:
    load, demand = scenario.background, scenario.workload
    times, nodes, sizes, cycles = [], [], [], []
    for sn in range(scenario.sn.count if any(load.rates) else 0):
        when, size, work = (stream(seed, Purpose.BACKGROUND, number, sn, part) for part in range(3))
        time = modulated(load.rates, load.dwell_ms, scenario.episode.window_ms, when)
        times.append(time)
        nodes.append(np.full(len(time), sn, np.int64))
        sizes.append(_whole(demand.input_bytes, len(time), size))
        cycles.append(_whole(demand.cycles, len(time), work))
    if not times:
        return BackgroundTasks(np.empty(0), np.empty(0, np.int64), np.empty(0), np.empty(0))
    time = np.concatenate(times)
    order = np.argsort(time, kind="stable")
    return BackgroundTasks(
        time_ms=time[order],
        sn=np.concatenate(nodes)[order],
        input_bytes=np.concatenate(sizes)[order],
        cycles=np.concatenate(cycles)[order],
    )


def _message_seed(seed: int, number: int) -> int:
    return int(stream(seed, Purpose.MESSAGES, number).integers(2**64, dtype=np.uint64))


def _network_seed(seed: int, number: int) -> int:
    return int(stream(seed, Purpose.NETWORK, number).integers(1, 2**63))


def _rate_factor(scenario: Scenario, seed: int, number: int) -> Floats:
    fading = scenario.fading
    shape = 2, len(scenario.links)
    if fading.factors == (1.0, 1.0):
        return np.empty((*shape, 0))
    steps = math.ceil(scenario.episode.window_ms / fading.period_ms)
    random = stream(seed, Purpose.FADING, number)
    # Steps are drawn one after the other, so that a longer window keeps the first ones.
    factors = random.uniform(*fading.factors, (steps, *shape))
    return np.ascontiguousarray(np.moveaxis(factors, 0, -1))
