"""Episodes from a scenario and a seed (R2, R3, R26), or from given tasks."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosmo.node.units import BYTES_PER_MS, transfer_ms
from cosmo.scenario import Scenario
from cosmo.seeds import Purpose, stream
from cosmo.workload.arrivals import arrival_times, en_rates, modulated, total_rate
from cosmo.workload.effort import check_effort
from cosmo.workload.event_files import events_of
from cosmo.workload.node_events import drawn_events
from cosmo.workload.table import FAILS, BackgroundTasks, Episode, NodeEvents, Tasks
from cosmo.workload.windows import trace_of, window

Floats = NDArray[np.float64]


def episode(scenario: Scenario, seed: int, number: int, tasks: Tasks | None = None) -> Episode:
    """Make an episode of a run: its tasks, background load, link rates, speeds and outages.

    Args:
        scenario: The scenario; with `workload.trace`, the tasks are a window of that trace.
        seed: The seed of the run.
        number: The episode's number in it, from 0.
        tasks: Tasks of a trace to take a window of, instead of the scenario's own.

    Returns:
        The episode, the same for the same arguments.

    Raises:
        InputError: In one line, if it would be too long to compute, or the trace cannot be read.

    """
    trace = trace_of(scenario) if tasks is None and scenario.workload.trace else tasks
    if trace is not None:
        return from_tasks(scenario, window(scenario, trace, seed, number), seed, number)
    check_effort(scenario, scenario.episode.window_ms)
    cells = [_cell(scenario, seed, number, en, rate) for en, rate in enumerate(en_rates(scenario))]
    columns = [np.concatenate(column) for column in zip(*cells, strict=True)]
    order = np.argsort(columns[0], kind="stable")
    events, background = _happenings(scenario, seed, number)
    return Episode(
        tasks=Tasks(*(column[order] for column in columns)),
        background=background,
        rate_factor=_rate_factor(scenario, seed, number),
        window_ms=scenario.episode.window_ms,
        message_seed=_message_seed(seed, number),
        network_seed=_network_seed(seed, number),
        rate=total_rate(scenario),
        events=events,
        expires=_expires(scenario, events),
    )


def from_tasks(scenario: Scenario, tasks: Tasks, seed: int, number: int) -> Episode:
    """An episode with given tasks. The window is stretched to the next full second if they go on
    beyond it; background load and link rates are drawn as ever, and true cycles if the tasks have
    none (R35).
    """
    window = scenario.episode.window_ms
    if len(tasks) and tasks.time_ms[-1] >= window:
        window = 1000.0 * (math.floor(float(tasks.time_ms[-1]) / 1000.0) + 1.0)
        longer = scenario.episode.model_copy(update={"window_ms": window})
        scenario = scenario.model_copy(update={"episode": longer})
    check_effort(scenario, window, len(tasks))
    spread = scenario.workload.demand.spread
    if tasks.as_declared and spread > 0.0:
        true_cycles = _true(tasks.cycles, spread, stream(seed, Purpose.DEMAND, number))
        tasks = replace(tasks, true_cycles=true_cycles)
    events, background = _happenings(scenario, seed, number)
    return Episode(
        tasks=tasks,
        background=background,
        rate_factor=_rate_factor(scenario, seed, number),
        window_ms=window,
        message_seed=_message_seed(seed, number),
        network_seed=_network_seed(seed, number),
        rate=len(tasks) / (window / 1000.0),
        events=events,
        expires=_expires(scenario, events),
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


def _cell(
    scenario: Scenario, seed: int, number: int, en: int, rate: float
) -> tuple[NDArray[Any], ...]:
    def random(purpose: Purpose) -> np.random.Generator:
        return stream(seed, purpose, number, en)

    workload, deadline = scenario.workload, scenario.workload.deadline
    time = arrival_times(scenario, en, rate, random(Purpose.ARRIVALS), random(Purpose.THINNING))
    count = len(time)
    size = _whole(workload.input_bytes, count, random(Purpose.INPUT_BYTES))
    cycles = _whole(workload.cycles, count, random(Purpose.CYCLES))
    slack = random(Purpose.SLACK).uniform(*deadline.slack_ms, count)
    ues = len(scenario.mobility.distances_m)
    columns = (
        time,
        np.full(count, en, np.int64),
        np.arange(count, dtype=np.int64) % ues,  # R2: the UEs in turn
        size,
        cycles,
        deadlines_ms(scenario, en, size, cycles, slack),
    )
    spread = workload.demand.spread
    return (*columns, _true(cycles, spread, random(Purpose.DEMAND))) if spread > 0.0 else columns


def _whole(bounds: tuple[float, float], count: int, random: np.random.Generator) -> Floats:
    """Uniform whole numbers, so that a trace file holds them exactly."""
    low, high = math.ceil(bounds[0]), math.floor(bounds[1])
    if low > high:  # no whole number in between: a degenerate range of a user's scenario
        return np.full(count, bounds[0])
    return random.integers(low, high, count, endpoint=True).astype(np.float64)


def _true(cycles: Floats, spread: float, random: np.random.Generator) -> Floats:
    """R35: what tasks of these declared cycles really take; the mean stays."""
    return cycles * np.exp(spread * random.standard_normal(len(cycles)) - 0.5 * spread**2)


def _background(scenario: Scenario, seed: int, number: int) -> BackgroundTasks:
    load, demand, sns = scenario.background, scenario.workload, scenario.sn.count
    spread, together = demand.demand.spread, round(load.together * sns)
    all_dwell = load.each("dwell_ms", sns)
    parts: list[tuple[NDArray[Any], ...]] = []
    for sn, rates in enumerate(load.each("rates", sns)):
        if not any(rates):
            continue
        when, size, work, true = (
            stream(seed, Purpose.BACKGROUND, number, sn, part) for part in range(4)
        )
        dwell, phases = all_dwell[sn], None
        if sn < together:  # the same draws for all of them: one process
            dwell, phases = all_dwell[0], stream(seed, Purpose.TENANTS, number)
        time = modulated(rates, dwell, scenario.episode.window_ms, when, phases)
        cycles = _whole(load.cycles or demand.cycles, len(time), work)
        parts.append(
            (
                time,
                np.full(len(time), sn, np.int64),
                _whole(demand.input_bytes, len(time), size),
                cycles,
                *((_true(cycles, spread, true),) if spread > 0.0 else ()),
            )
        )
    if not parts:
        return BackgroundTasks(np.empty(0), np.empty(0, np.int64), np.empty(0), np.empty(0))
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    order = np.argsort(columns[0], kind="stable")
    return BackgroundTasks(*(column[order] for column in columns))


def _happenings(scenario: Scenario, seed: int, number: int) -> tuple[NodeEvents, BackgroundTasks]:
    """R37 to R39: what happens at nodes, and tenants' tasks: drawn, or of the scenario's file."""
    if scenario.workload.events:
        return events_of(scenario)
    return drawn_events(scenario, seed, number), _background(scenario, seed, number)


def _expires(scenario: Scenario, events: NodeEvents) -> bool:
    """R38: where SNs may fail, ENs stop waiting for an offloaded task at its deadline."""
    return scenario.sn.outage is not None or bool((events.what == FAILS).any())


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
