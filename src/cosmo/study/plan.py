"""What a study compares: scenarios × arrival processes × rates × methods × seeds × episodes."""

from collections.abc import Iterator
from itertools import chain, product
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr

from cosmo.files import digest_of
from cosmo.learn.run import Config
from cosmo.policy.learned_methods import LEARNED
from cosmo.policy.registry import with_parameters
from cosmo.scenario import Scenario, changed, load
from cosmo.scenario.model import Arrivals, Engine
from cosmo.workload import mean_rate, trace_of

Rates = Annotated[tuple[Annotated[float, Field(gt=0, le=1e6)], ...], Field(min_length=1)]
Names = Annotated[tuple[str, ...], Field(min_length=1)]
Processes = Annotated[tuple[Arrivals, ...], Field(min_length=1)]
Seed = Annotated[int, Field(strict=True, ge=0, lt=2**63)]  # columns of tables have 64 bits
Seeds = Annotated[tuple[Seed, ...], Field(min_length=1)]


Code = Literal["run", "refuse", "skip"]  # what to do with code that a plan names


def _called(scenario: str, engine: str) -> str:
    """A scenario's name on an engine."""
    return scenario if engine == "embedded" else f"{scenario}-{engine}"


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Sweep(_Part):
    """An axis of its own: a field of the scenario, or `method.PARAMETER`, and its values."""

    field: str
    values: Annotated[tuple[bool | int | float | str, ...], Field(min_length=1)]

    @property
    def parameter(self) -> str:
        """Of the methods; empty if a field of the scenario is swept."""
        kind, _, name = self.field.partition(".")
        return name if kind == "method" else ""


class Compare(_Part):
    """Methods, and, where it differs from the rest of the plan, what they are played on."""

    methods: Names
    scenarios: Names | None = None
    arrivals: Processes | None = None
    rates: Rates | None = None
    sweep: Sweep | None = None


class Track(_Part):
    """A named place of a benchmark: a scenario at one load."""

    name: Annotated[str, Field(min_length=1)]
    scenario: str
    arrivals: Arrivals = "poisson"
    rate: Annotated[float, Field(gt=0, le=1e6)]


class Tune(_Part):
    """Every method with parameters is tuned on each scenario, all with the same budget."""

    settings: Annotated[int, Field(strict=True, ge=1, le=10_000)] = (
        32  # to try, besides the default
    )
    seeds: Seeds = (0, 1, 2)  # runs whose validation episodes are played
    episodes: Annotated[int, Field(strict=True, ge=1)] = 1  # of each run, at each load
    metric: str = "success_rate"  # the setting with the greatest mean is chosen
    curve: Annotated[int, Field(strict=True, ge=0, le=100)] = 5  # settings of the trade-off curve
    # Ranges by method and parameter, as `cosmo tune --over` has them; others have those of
    # `search.ranges_of`. A method with an empty table is not tuned.
    over: dict[str, dict[str, str]] = Field(default_factory=dict)


class Training(_Part):
    """How methods that learn are trained, unless a training of their own says otherwise."""

    config: str | None = None  # a preset of training, or a TOML file; the method's own by default
    settings: tuple[str, ...] = ()
    engine: Engine | None = None  # where they are trained, if not where they are compared


class OwnTraining(_Part):
    """A training with a name of its own, by which `compare` names it like a method."""

    name: Annotated[str, Field(min_length=1)]
    method: str
    config: str | None = None
    settings: tuple[str, ...] = ()
    scenario: str | None = None  # where it is trained, if not where it is compared
    world: tuple[str, ...] = ()  # settings of that scenario


class Plan(_Part):
    """What a study compares: scenarios × arrivals × rates × methods × seeds × episodes.

    Its fields are those of a plan's TOML file (`docs/studies.md`); `load_plan` reads one.
    """

    name: str
    description: str = ""
    scenarios: Names = ("paper",)
    settings: tuple[str, ...] = ()  # of every scenario
    engines: tuple[Engine, ...] = ()  # each scenario on each of these; its own by default
    traces: tuple[str, ...] = ()  # each scenario with the tasks of each of these files
    arrivals: Processes = ("deterministic", "poisson")
    rates: Rates | None = None  # the scenario's rates of interest by default
    seeds: Seeds = (0, 1, 2)
    episodes: Annotated[int, Field(strict=True, ge=1, le=1_000_000)] = 5
    bound: Annotated[bool, Field(strict=True)] = False  # R34 of every episode, for the figures
    training: Training = Training()
    train: tuple[OwnTraining, ...] = ()
    compare: Annotated[tuple[Compare, ...], Field(min_length=1)]
    tracks: tuple[Track, ...] = ()  # where parts of `compare` without scenarios are played
    also: tuple[str, ...] = ()  # methods that are compared as a further part without scenarios
    # Further trainings of a method, by its name: played where it is, pooled on the leaderboard.
    repeats: dict[str, Names] = Field(default_factory=dict)
    tune: Tune | None = None
    focus: str | None = None  # the method that a report is about; `focus_of` by default

    # What names of scenarios and trainings stand for; a study on disk keeps them, so that it means
    # the same when files change or are gone.
    _scenarios: dict[str, Scenario] = PrivateAttr(default_factory=dict)
    _configs: dict[str, Config] = PrivateAttr(default_factory=dict)
    _rates: dict[str, float] = PrivateAttr(default_factory=dict)  # of traces, by scenario's name

    def scenario(self, source: str) -> Scenario:
        """What a name in the plan stands for."""
        if source not in self._scenarios:
            self._scenarios[source] = load(source, self.settings)
        return self._scenarios[source]

    def worlds(self, source: str) -> list[Scenario]:
        """The same with every trace and on every engine; each has a name of its own."""
        scenario = self.scenario(source)
        loads = [
            changed(
                scenario, {"workload.trace": file, "name": f"{scenario.name} {Path(file).stem}"}
            )
            for file in self.traces
        ] or [scenario]
        return [
            changed(each, {"engine": engine, "name": _called(each.name, engine)})
            for each in loads
            for engine in self.engines
        ] or loads

    def trace_rate(self, scenario: Scenario) -> float:
        """Tasks a second in a cell of a scenario with a trace, as a study on disk remembers it."""
        if scenario.name not in self._rates:
            self._rates[scenario.name] = mean_rate(trace_of(scenario), scenario.en.count)
        return self._rates[scenario.name]

    def trainings(self) -> dict[str, OwnTraining]:
        """All that is trained, by the name that it has in the comparison."""
        own = {each.name: each for each in self.train}
        names = dict.fromkeys(name for part in self.parts for name in part.methods)
        plain = {
            name: OwnTraining(
                name=name,
                method=name,
                config=self.training.config,
                settings=self.training.settings,
            )
            for name in names
            if name in LEARNED and not LEARNED[name].shipped and name not in own
        }
        return plain | {name: each for name, each in own.items() if name in names}

    def config(self, name: str) -> Config:
        """How the training of this name is done."""
        if name not in self._configs:
            from cosmo.learn.session import load_config_of

            training = self.trainings()[name]
            found = load_config_of(training.method, training.config, training.settings)
            self._configs[name] = found
        return self._configs[name]

    @property
    def sources(self) -> list[str]:
        """Every scenario that is named."""
        own = () if self.tracks else self.scenarios
        others = (name for part in self.parts for name in part.scenarios or ())
        return list(dict.fromkeys([*own, *others]))

    @property
    def parts(self) -> list[Compare]:
        """What is compared: `compare` and `also` with repeated trainings, on every track."""

        def repeated(part: Compare) -> Compare:
            each = ((name, *self.repeats.get(name, ())) for name in part.methods)
            return part.model_copy(update={"methods": tuple(dict.fromkeys(chain(*each)))})

        more = [Compare(methods=self.also)] if self.also else []
        own = [repeated(part) for part in (*self.compare, *more)]
        everywhere = [part for part in own if part.scenarios is None and self.tracks]
        return [
            part.model_copy(
                update={
                    "scenarios": (track.scenario,),
                    "arrivals": (track.arrivals,),
                    "rates": (track.rate,),
                }
            )
            for track in self.tracks
            for part in everywhere
        ] + [part for part in own if part not in everywhere]

    @property
    def methods(self) -> list[str]:
        """Every method by the name that it has in the results, in order, each once."""
        names = (name for part in self.parts for _, name, _ in self.variants(part))
        return list(dict.fromkeys(names))

    def resolved(self) -> dict[str, Any]:
        """All that the plan names, in full."""
        trained_on = [each.scenario for each in self.train if each.scenario is not None]
        return {
            "scenarios": {
                source: self.scenario(source).model_dump(mode="json")
                for source in dict.fromkeys([*self.sources, *trained_on])
            },
            "training": {
                # Fields that came later are left out at their defaults: an older study is the same.
                name: self.config(name).model_dump(mode="json", exclude_defaults=True)
                for name in self.trainings()
            },
            "traces": {
                scenario.name: {
                    "rate": self.trace_rate(scenario),
                    "sha256": digest_of(Path(scenario.workload.trace)),
                }
                for scenario, *_ in self.points()
                if scenario.workload.trace
            },
            **({"events": events} if (events := self._events()) else {}),
        }

    def _events(self) -> dict[str, str]:
        """SHA-256 of the files of events, by scenario."""
        return {
            scenario.name: digest_of(Path(scenario.workload.events))
            for scenario, *_ in self.points()
            if scenario.workload.events
        }

    def points(self) -> Iterator[tuple[Scenario, str, float, str]]:
        """(scenario, arrivals, rate, method) of everything that is compared, each once.

        A scenario with a trace has one load, the trace's: arrivals "trace" at its mean rate.
        """
        seen = set()
        for part in self.parts:
            for scenario, name, _ in self.variants(part):
                arrivals: tuple[str, ...] = part.arrivals or self.arrivals
                rates = part.rates or self.rates or scenario.workload.rates_of_interest
                if scenario.workload.trace:
                    arrivals, rates = ("trace",), (self.trace_rate(scenario),)
                for process, rate in product(arrivals, rates):
                    key = scenario.name, process, float(rate), name
                    if key not in seen:
                        seen.add(key)
                        yield scenario, process, float(rate), name

    def axes(self) -> list[tuple[str, str, str, str, float | None]]:
        """(scenario, method, what was swept, its field, its value) of what is part of a sweep."""
        found = []
        for part in self.parts:
            for scenario, name, swept in self.variants(part):
                if part.sweep is not None and swept is not None:
                    base, value = swept
                    number = float(value) if isinstance(value, int | float) else None
                    found.append((scenario.name, name, base, part.sweep.field, number))
        return list(dict.fromkeys(found))

    def variants(self, part: Compare) -> Iterator[tuple[Scenario, str, tuple[str, Any] | None]]:
        """(scenario, method, (what is swept, value)): a swept scenario has a name that says so."""
        worlds = [
            scenario
            for source in part.scenarios or self.scenarios
            for scenario in self.worlds(source)
        ]
        sweep = part.sweep
        for scenario, name in product(worlds, part.methods):
            if sweep is None:
                yield scenario, name, None
                continue
            for value in sweep.values:
                if sweep.parameter:
                    yield scenario, with_parameters(name, {sweep.parameter: value}), (name, value)
                else:
                    called = f"{scenario.name} {sweep.field}={value}"
                    swept = changed(scenario, {sweep.field: value, "name": called})
                    yield swept, name, (scenario.name, value)
