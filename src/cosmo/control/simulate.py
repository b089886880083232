"""One method on one scenario: episodes, outcomes, metrics."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from cosmo.control.arguments import (
    MethodLike,
    ScenarioLike,
    as_method,
    at_rates,
    check_tasks,
    several_seeds,
    whole_number,
)
from cosmo.control.play import play
from cosmo.device import chosen_device
from cosmo.documents import Settings
from cosmo.engine import engine_of, worlds_at_once
from cosmo.measure import Interval, Regret, episode_metrics, summary
from cosmo.scenario import Scenario
from cosmo.workload import Tasks, episode, recorded_windows, trace_of, widening
from cosmo.workload.effort import check_episodes
from cosmo.workload.windows import tasks_a_window
from cosmo.world import Outcome

# Called with the share of the work that is done, 0 to 1.
ShareDone = Callable[[float], None]


def part_of(share_done: ShareDone | None, done: int, parts: int) -> ShareDone | None:
    """Progress of one part of the work, 0 to 1, as progress of the whole."""
    return None if share_done is None else lambda share: share_done((done + share) / parts)


@dataclass(frozen=True, slots=True, repr=False)
class Simulation:
    """Finished episodes of one method; episodes are the replications of the intervals."""

    outcomes: list[Outcome]
    episodes: list[dict[str, float]]
    widened: float = 1.0  # what intervals are multiplied by: episodes of a trace depend on another
    remarks: tuple[str, ...] = ()  # of the method, on what it met and was not made for
    parts: tuple["Simulation", ...] = ()  # the runs, if there are several

    @property
    def runs(self) -> tuple["Simulation", ...]:
        """A simulation for each rate and seed, all seeds of the first rate first."""
        return self.parts or (self,)

    @property
    def metrics(self) -> dict[str, Interval]:
        """Mean and 95 % half-width of every metric over the episodes."""
        return summary(self.episodes, self.widened)

    def __repr__(self) -> str:
        means = {name: value.mean for name, value in self.metrics.items()}
        return (
            f"<Simulation of {len(self.episodes)} episode(s): success"
            f" {means['success_rate']:.3f}, net utility {means['net_utility_per_task']:.1f},"
            f" update cost {means['update_cost_rate']:.1f}/s>"
        )


def simulate(
    scenario: ScenarioLike,
    method: MethodLike,
    *,
    rates: float | Iterable[float] | None = None,
    arrivals: str | None = None,
    seeds: int | Iterable[int] = (0,),
    episodes: int = 1,
    settings: Settings = (),
    tasks: Tasks | None = None,
    share_done: ShareDone | None = None,
    device: str | None = None,
) -> Simulation:
    """Play one method on one scenario: the episodes of a run, or of several.

    `simulate("paper", "random", rates=220)`.

    Args:
        scenario: A scenario, a preset's name or the path of a TOML file.
        method: A method's name as on the command line, a method, or its class.
        rates: Tasks/s in each cell, one or several; the scenario's by default.
        arrivals: The arrival process, likewise.
        seeds: One or several, one run a seed at each rate.
        episodes: How many episodes each run has.
        settings: Further fields of the scenario, `{"sn.slots": 6}` or `["sn.slots=6"]`.
        tasks: Tasks to play instead; episodes are windows of them (`cosmo.workload.windows`). The
            world is played as it is described: to have UEs in reach whenever they upload, name the
            trace in the scenario (`workload.trace`) instead.
        share_done: Called with the share of the work that is done, 0 to 1.
        device: "cpu" or "gpu", with the same results; by default, what `COSMO_DEVICE` says.

    Returns:
        Outcomes and metrics of every episode; of each run in `runs`.

    Raises:
        InputError: In one line, for what is not there or not allowed.

    """
    chosen, points = several_seeds(seeds), at_rates(scenario, settings, rates, arrivals)
    episodes = whole_number("episodes", episodes)
    check_tasks(tasks)
    runs: list[Simulation] = []
    for done, where in enumerate(points):
        share = part_of(share_done, done, len(points))
        runs += simulate_runs(where, method, chosen, episodes, tasks, share, device=device)
    if len(runs) == 1:
        return runs[0]
    played = [(seed, number) for seed in chosen for number in range(episodes)]
    return Simulation(
        [outcome for run in runs for outcome in run.outcomes],
        [metrics for run in runs for metrics in run.episodes],
        widened_at(points[0], played * len(points), tasks),
        tuple(sorted({line for run in runs for line in run.remarks})),
        tuple(runs),
    )


def simulate_runs(
    scenario: Scenario,
    method: MethodLike,
    seeds: Sequence[int],
    episodes: int,
    tasks: Tasks | None = None,
    share_done: ShareDone | None = None,
    first_episode: int = 0,
    device: str | None = None,
) -> list[Simulation]:
    """Several runs at one load, side by side; episodes are numbered from `first_episode` on."""
    device = chosen_device(device)
    chosen = as_method(method)
    check_episodes(
        scenario, len(seeds) * episodes, None if tasks is None else tasks_a_window(scenario, tasks)
    )
    numbered = range(first_episode, first_episode + episodes)
    worlds = [(seed, number) for seed in seeds for number in numbered]
    outcomes: list[Outcome] = []
    remarks: set[str] = set()
    at_once, alone = worlds_at_once(scenario), engine_of(scenario).play is not None
    if device == "gpu" and scenario.engine == "embedded":
        from cosmo.control.gpu import worlds_that_fit

        example = episode(scenario, *worlds[0], tasks)
        at_once = worlds_that_fit(scenario, chosen, example) or at_once
    # Nodes that decide by themselves make the method anew, by its name.
    given, watchers = (method, []) if alone else (chosen, [Regret(scenario, chosen)])
    for first in range(0, len(worlds), at_once):
        here = worlds[first : first + at_once]
        batch = [episode(scenario, seed, number, tasks) for seed, number in here]
        total = sum(len(each.tasks) for each in batch)

        def report(generated: int, done: int = first, size: int = len(batch), total: int = total):  # type: ignore[no-untyped-def]
            if share_done is not None:
                share_done((done + size * generated / max(total, 1)) / len(worlds))

        own_seeds, numbers = [seed for seed, _ in here], [number for _, number in here]
        outcomes += play(
            *(scenario, given, batch, own_seeds, numbers, report, watchers),
            remarks=remarks,
            device=device,
        )
    if share_done is not None:
        share_done(1.0)
    metrics = [episode_metrics(scenario, outcome, chosen.carries) for outcome in outcomes]
    return [
        Simulation(
            outcomes[first:last],
            metrics[first:last],
            widened_at(scenario, worlds[first:last], tasks),
            tuple(sorted(remarks)),
        )
        for first in range(0, len(worlds), episodes)
        for last in (first + episodes,)
    ]


def widened_at(
    scenario: Scenario, played: Sequence[tuple[int, int]], tasks: Tasks | None = None
) -> float:
    """How much wider intervals over these episodes (seed, number) are: 1 without a trace."""
    if tasks is None and not scenario.workload.trace:
        return 1.0
    trace = trace_of(scenario) if tasks is None else tasks
    return widening(recorded_windows(scenario, trace), played)
