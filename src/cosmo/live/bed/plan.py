"""What a test bed plays: loads × time scales × methods × seeds × episodes, in a TOML file."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from cosmo.documents import Documents, dump
from cosmo.errors import InputError
from cosmo.scenario import Scenario, changed, load
from cosmo.scenario.model import Arrivals

MOST_NODES = 32  # processes that one machine is asked to run

Rate = Annotated[float, Field(gt=0, le=1e6)]
Seed = Annotated[int, Field(strict=True, ge=0, lt=2**63)]
Scale = Annotated[float, Field(ge=0.1, le=1000)]
Key = tuple[str, float, float, str, int, int]  # arrivals, rate, scale, method, seed, episode
Transport = Literal["loopback", "netns"]


class BedPlan(BaseModel):
    """All of it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    description: str
    scenario: str  # a preset's name or a TOML file
    settings: tuple[str, ...]  # of the scenario
    arrivals: tuple[Arrivals, ...]  # the scenario's own if there is none
    rates: tuple[Rate, ...]  # tasks/s in each cell; the scenario's own if there is none
    methods: Annotated[tuple[str, ...], Field(min_length=1)]
    seeds: Annotated[tuple[Seed, ...], Field(min_length=1)]
    episodes: Annotated[int, Field(strict=True, ge=1, le=1000)]  # of each seed
    scales: Annotated[tuple[Scale, ...], Field(min_length=1)]  # how many times slower than real
    transport: Transport
    fifo: Annotated[int, Field(strict=True, ge=0, le=50)]  # priority (chrt -f); 0: none
    most_late_ms: Annotated[float, Field(gt=0, le=1000)]  # p99 of timers; no verdict beyond
    within: Annotated[float, Field(gt=0, le=1)]  # of the simulator's share: what is close

    def loads(self) -> list[Scenario]:
        """The scenario at every load; InputError if daemons cannot stand for it."""
        base = load(self.scenario, self.settings)
        check_playable(base)
        return [
            changed(base, {"workload.arrivals": arrivals, "workload.rate": rate})
            for arrivals in self.arrivals or (base.workload.arrivals,)
            for rate in self.rates or (base.workload.rate,)
        ]

    def units(self) -> "Iterator[Unit]":
        """Everything that is to be played, in this order: methods are next to one another."""
        for scenario in self.loads():
            for scale in self.scales:
                for seed in self.seeds:
                    for number in range(self.episodes):
                        for spec in self.methods:
                            yield Unit(scenario, scale, spec, seed, number)


@dataclass(frozen=True)
class Unit:
    """One episode of one method, at one load and time scale."""

    scenario: Scenario
    scale: float
    method: str
    seed: int
    episode: int

    @property
    def key(self) -> Key:
        """What tells it from all others of a plan."""
        load = self.scenario.workload
        return load.arrivals, load.rate, self.scale, self.method, self.seed, self.episode


def check_playable(scenario: Scenario) -> None:
    """Refuse a scenario that daemons of one machine cannot stand for."""
    name, status = scenario.name, scenario.status
    if scenario.fading.factors != (1.0, 1.0) or any(scenario.background.rates):
        raise InputError(
            f"scenario = {name!r}: has links that fade or background load, which daemons cannot"
            " emulate"
        )
    if status.loss_probability > 0.0 or status.jitter_ms > 0.0:
        raise InputError(
            f"scenario = {name!r}: has statuses that are lost or late, which daemons cannot emulate"
        )
    count = scenario.en.count + scenario.sn.count
    if count > MOST_NODES:
        raise InputError(
            f"scenario = {name!r}: has {count} nodes, must have at most {MOST_NODES}: each is a"
            " process"
        )


_PLANS = Documents("plan", BedPlan, "cosmo.live.bed", "held-out", "episodes=5")


def bed_plan_names() -> list[str]:
    """The plans that come with the package."""
    return _PLANS.preset_names()


def load_bed_plan(source: str | Path, settings: Iterable[str] = ()) -> BedPlan:
    """A preset by name or a TOML file by path, with single fields set as `episodes=5`.

    A setting whose name is no field of a plan is one of the scenario: `workload.rate=220`.
    """
    own: list[str] = []
    of_scenario: list[str] = []
    for setting in settings:
        field = setting.partition("=")[0].strip().partition(".")
        is_scenarios = bool(field[1]) and field[0] not in BedPlan.model_fields
        (of_scenario if is_scenarios else own).append(setting)
    plan = _PLANS.load(source, own)
    if of_scenario:
        plan = plan.model_copy(update={"settings": (*plan.settings, *of_scenario)})
    plan.loads()  # whatever is wrong with the scenario is said now
    return plan


def bed_plan_text(plan: BedPlan) -> str:
    """As a complete TOML file."""
    return dump(plan) + "\n"
