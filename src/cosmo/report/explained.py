"""A study in plain words, for readers who have never heard of an EN: terms, sites, methods."""

import ast
import re
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

from cosmo.control import METHODS
from cosmo.errors import InputError
from cosmo.files import read_bytes
from cosmo.policy.registry import kind_of
from cosmo.report.verdict import rate_text
from cosmo.scenario import Scenario
from cosmo.scenario.topology import Nodes
from cosmo.scenario.words import knowledge
from cosmo.study.inputs import found as found_file
from cosmo.study.inputs import found_trace
from cosmo.study.store import Study
from cosmo.workload import Tasks, duration_ms, is_as_recorded, recorded_windows, trace_of

_MOST_BYTES, _MOST_SIGNS = 1_000_000, 300  # of a method's file; of what is shown of it
_ONE_LOAD = "No other load was played: what holds here may not hold at another one."
DRAWN = 6  # nodes of each kind that the drawing has room for
_PROCESSES = {
    "deterministic": "at equal distances in time",
    "poisson": "at random times (Poisson)",
    "bursty": "at random times, in bursts",
    "steps": "at random times, at a rate that changes in steps",
}


def terms(scenario: Scenario) -> list[tuple[str, str]]:
    """(term, meaning) of every word that the page cannot do without."""
    utility = scenario.utility
    worth = [
        f"{sign}{utility.value * weight:g}"
        for sign, weight in (
            ("+", utility.true_positive),
            ("−", utility.false_positive),
            ("+", utility.true_negative),
            ("−", utility.false_negative),
        )
    ]
    unit = utility.update_cost_per_dimension
    return [
        (
            "edge node (EN)",
            "receives the tasks of the devices near it and decides for each: run it here, offload"
            " it to a service node, or reject it.",
        ),
        ("service node (SN)", "runs the tasks that edge nodes send to it."),
        (
            "status",
            "a message in which a service node tells an edge node how busy it is. It is out of date"
            " as soon as the service node's queue changes.",
        ),
        (
            "update unit",
            f"what status messages cost: each number in a message costs {unit:g} units, for each"
            f" edge node that receives it. A full status of four numbers costs {4 * unit:g}. The"
            " number of messages is a metric of its own.",
        ),
        (
            "success rate",
            "the share of all measured tasks that were finished within their deadline, in percent.",
        ),
        (
            "net utility per task",
            f"points that a task earns on average: {worth[0]} in time, {worth[1]} accepted but"
            f" failed, {worth[2]} rejected when no node could have made it, {worth[3]} rejected"
            " although one could; less a little for delay and transfer, less"
            f" {utility.update_weight:g} for each update unit.",
        ),
        (
            "needless rejections",
            "what the paper calls false negatives: tasks that were rejected although a node could"
            " have finished them in time. Where more work arrives than all nodes can do, some"
            " rejections are unavoidable, and only those beyond that number count.",
        ),
        (
            "decision accuracy",
            "the share of right decisions: tasks that were accepted and finished in time, tasks"
            " that were rejected when no node could have made it, and unavoidable rejections.",
        ),
        (
            "run, episode, 95 % interval",
            "an episode is one played workload; a run is all episodes with one seed. Every method"
            " plays the same workloads. ± is the half-width of a 95 % interval over runs: the true"
            " mean lies inside in 95 of 100 such experiments.",
        ),
    ]


def methods(study: Study, names: Sequence[str]) -> list[dict[str, str]]:
    """Of each method: `method`, `summary` in one sentence, `reference`."""
    trainings = study.plan.trainings()
    found = []
    for name in names:
        spec = trainings[name].method if name in trainings else name
        base = spec.partition(":")[0]
        kind, parameters = kind_of(spec, METHODS) if base in METHODS else (None, {})
        if base.startswith("periodic-"):
            kind = METHODS["periodic"]
        if kind is None:
            summary = _own_words(study, spec)
            reference = f"from {base}" if base != name else "own"
        else:
            summary, reference = vars(kind).get("plain") or kind.summary(), kind.reference
        chosen = ", ".join(f"{key} = {value}" for key, value in parameters.items())
        found.append(
            {
                "method": name,
                "summary": summary.replace("`", "") + (f" Here {chosen}." if chosen else ""),
                "reference": reference,
            }
        )
    return found


def _own_words(study: Study, spec: str) -> str:
    """The first line of what an author says of the class, read and not run; else who wrote it."""
    by_author = "A method of the author of this study."
    named = re.match(r"(.+\.py):(\w+)", spec)
    if named is None:
        return by_author
    try:
        path = Path(found_file(study.folder, named[1]))
        tree = ast.parse(read_bytes(path, _MOST_BYTES))
    except (InputError, OSError, ValueError, SyntaxError, RecursionError, MemoryError):
        return by_author
    texts = [
        ast.get_docstring(each) or ""
        for each in tree.body
        if isinstance(each, ast.ClassDef) and each.name == named[2]
    ]
    first = "".join(texts[:1]).strip().partition("\n")[0].strip()
    return f"{by_author[:-1]}: {first[:_MOST_SIGNS]}" if first else by_author


def sites(study: Study) -> list[dict[str, Any]]:
    """Each scenario: counts for the drawing, and `site` and `workload` as sentences."""
    seen: dict[str, tuple[Scenario, dict[str, list[float]]]] = {}
    for scenario, process, rate, _ in study.plan.points():
        loads = seen.setdefault(scenario.name, (scenario, {}))[1]
        if rate not in loads.setdefault(process, []):
            loads[process].append(rate)
    played = study.plan.seeds, study.plan.episodes
    return [_site(_here(study, scenario), loads, played) for scenario, loads in seen.values()]


def _here(study: Study, scenario: Scenario) -> Scenario:
    try:
        return found_trace(study.folder, scenario)
    except InputError:  # the words on a trace that is not here say less
        return scenario


def _site(
    scenario: Scenario, loads: dict[str, list[float]], played: tuple[Sequence[int], int]
) -> dict[str, Any]:
    """`played`: the seeds of the runs, and how many episodes each has."""
    tasks = _trace(scenario)
    links = zip(scenario.links.en.tolist(), scenario.links.sn.tolist(), strict=True)
    return {
        "scenario": scenario.name,
        "ens": scenario.en.count,
        "sns": scenario.sn.count,
        "ues": scenario.ues,
        "enSlots": [int(each) for each in scenario.en.each("slots")],
        "snSlots": [int(each) for each in scenario.sn.each("slots")],
        "links": [pair for pair in links if max(pair) < DRAWN],
        "site": _site_words(scenario, tasks),
        "workload": [
            *(_trace_words(scenario, loads[name][0], tasks) for name in loads if name == "trace"),
            *(_load_words(scenario, name, loads[name]) for name in loads if name != "trace"),
            *([_kinds(scenario)] if set(loads) - {"trace"} else []),
            _lengths(scenario, [rate for rates in loads.values() for rate in rates], *played),
            *([_resampled(scenario, tasks, *played)] if "trace" in loads and tasks else []),
            *([_ONE_LOAD] if sum(map(len, loads.values())) == 1 else []),
        ],
    }


def _trace(scenario: Scenario) -> Tasks | None:
    """The tasks of its trace; None without one, or if the file is not here any more."""
    try:
        return trace_of(scenario) if scenario.workload.trace else None
    except InputError:
        return None


def _mean_cycles(scenario: Scenario) -> float:
    return sum(scenario.workload.cycles) / 2.0


def _count(number: int, name: str) -> str:
    return f"{number} {name}{'s' * (number != 1)}"


def _span(values: Any, form: str = "{:g}") -> str:
    low, high = form.format(min(values)), form.format(max(values))
    return low if low == high else f"{low} to {high}"


def _nodes(nodes: Nodes, name: str, cycles: float) -> str:
    times = [cycles / speed for speed in nodes.each("cycles_per_ms")]
    each = "each with" if nodes.count > 1 else "with"
    return (
        f"{_count(nodes.count, name)}, {each} {_span(nodes.each('slots'))} slots (tasks run at a"
        f" time); an average task takes {_span(times, '{:.0f}')} ms there."
    )


def _site_words(scenario: Scenario, tasks: Tasks | None) -> list[str]:
    """`tasks` are those of its trace: what an average task is follows from them."""
    cycles, ups = _mean_cycles(scenario), scenario.links.up_mbps
    bits = 8.0 * sum(scenario.workload.input_bytes) / 2.0
    if tasks is not None and len(tasks):
        cycles, bits = float(tasks.cycles.mean()), 8.0 * float(tasks.input_bytes.mean())
    words = [
        _nodes(scenario.en, "edge node", cycles),
        _nodes(scenario.sn, "service node", cycles),
        f"Links of {_span(ups)} Mbit/s lead from edge nodes to service nodes; the input of an"
        f" average task takes {_span(bits / 1000.0 / ups, '{:.1f}')} ms on one.",
        "All nodes together can finish about"
        f" {1000.0 * scenario.capacity_cycles_per_ms / cycles:.0f} average tasks a second.",
    ]
    return [*words, *knowledge(scenario)]


def _kinds(scenario: Scenario) -> str:
    work = scenario.workload
    sizes = _span([value / 1000.0 for value in work.input_bytes])
    demand = _span([value / 1e6 for value in work.cycles])
    return (
        f"A task brings {sizes} kB of input, needs {demand} million processor cycles and must be"
        f" finished within {_span(work.deadline.clip_ms)} ms."
    )


def _lengths(
    scenario: Scenario, rates: Sequence[float], seeds: Sequence[int], episodes: int
) -> str:
    window_s, warmup_s = scenario.episode.window_ms / 1000.0, scenario.episode.warmup_ms / 1000.0
    measured_s = scenario.en.count * len(seeds) * episodes * (window_s - warmup_s)
    here = "At each load, every" if len(rates) > 1 else "Every"
    return (
        f"An episode lasts {window_s:g} s; its first {warmup_s:g} s are not measured. {here} method"
        f" plays {_count(len(seeds), 'run')} of {_count(episodes, 'episode')}: about"
        f" {_span([measured_s * rate for rate in rates], '{:.0f}')} measured tasks."
    )


def _resampled(scenario: Scenario, tasks: Tasks, seeds: Sequence[int], episodes: int) -> str:
    """How many episodes are windows of the trace as it was recorded."""
    windows = recorded_windows(scenario, tasks)
    played = list(product(seeds, range(episodes)))
    recorded = sum(is_as_recorded(windows, seed, number) for seed, number in played)
    if recorded == len(played):
        return "All episodes are parts of the trace as it was recorded."
    return (
        f"Episodes of each method that are the trace as it was recorded: {recorded} of"
        f" {len(played)}. The other {len(played) - recorded} are drawn from blocks of"
        f" {scenario.workload.block_ms:g} ms of it and contain no further information; intervals"
        " are widened for that."
    )


def tuning(study: Study) -> str:
    """Whether the methods were fitted to what they are compared on."""
    tune = study.plan.tune
    if tune is None:
        return (
            "No method was tuned for this comparison: each has its default parameters, or those"
            " that its name says. Methods that learn were trained on other workloads."
        )
    return (
        f"Methods with parameters were tuned on each scenario: {tune.settings} settings, each on"
        f" {len(tune.seeds) * tune.episodes} episodes that are not part of the comparison. Results"
        " with default and with tuned parameters are shown."
    )


def _load_words(scenario: Scenario, process: str, rates: Sequence[float]) -> str:
    ens, cycles = scenario.en.count, _mean_cycles(scenario)
    here = ", ".join(map(rate_text, rates))
    total = ", ".join(rate_text(rate * ens) for rate in rates)
    each = f"each edge node ({total} in all)" if ens > 1 else "the edge node"
    shares = [
        100.0 * rate * ens * cycles / (1000.0 * scenario.capacity_cycles_per_ms) for rate in rates
    ]
    return (
        f"{here} tasks a second come to {each} {_PROCESSES[process]}; that is"
        f" {', '.join(f'{share:.0f}' for share in shares)} % of what all nodes together can do."
    )


def _trace_words(scenario: Scenario, rate: float, tasks: Tasks | None) -> str:
    ens = scenario.en.count
    cells = f" per edge node ({rate_text(rate * ens)} in all)" if ens > 1 else ""
    if tasks is None or not len(tasks):
        return f"Tasks come from a recorded trace: {rate_text(rate)} tasks a second{cells}."
    demand = float(tasks.work_cycles.sum()) / duration_ms(tasks)
    return (
        f"Tasks come from a recorded trace of {len(tasks)} tasks in"
        f" {duration_ms(tasks) / 1000.0:g} s: {rate_text(rate)} tasks a second{cells} on average,"
        f" of {_span(tasks.input_bytes / 1000.0, '{:.3g}')} kB and"
        f" {_span(tasks.cycles / 1e6, '{:.3g}')} million processor cycles, with deadlines of"
        f" {_span(tasks.deadline_ms, '{:.3g}')} ms; that is"
        f" {100.0 * demand / scenario.capacity_cycles_per_ms:.0f} % of what all nodes together can"
        " do."
    )
