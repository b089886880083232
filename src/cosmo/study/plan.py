"""What a study compares: scenarios × arrival processes × rates × methods × seeds × episodes."""

from collections.abc import Collection, Iterator
from itertools import product
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr

from cosmo.control import METHODS, method
from cosmo.errors import InputError
from cosmo.learn.config import TrainingConfig, load_config
from cosmo.learn.session import TRAINED, config_of
from cosmo.scenario import Scenario, changed, load
from cosmo.scenario.model import Arrivals, Engine
from cosmo.study import method_files
from cosmo.study.units import PlayUnit, TrainUnit, Unit, at_load

Rates = Annotated[tuple[Annotated[float, Field(gt=0)], ...], Field(min_length=1)]
Names = Annotated[tuple[str, ...], Field(min_length=1)]
Processes = Annotated[tuple[Arrivals, ...], Field(min_length=1)]
_ON_ENGINE = {"embedded": "", "ns3": "-ns3"}
Seed = Annotated[int, Field(strict=True, ge=0, lt=2**63)]  # columns of tables have 64 bits
Seeds = Annotated[tuple[Seed, ...], Field(min_length=1)]


Code = Literal["run", "refuse", "skip"]  # what to do with code that a plan names


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Compare(_Part):
    """Methods, and, where it differs from the rest of the plan, what they are played on."""

    methods: Names
    scenarios: Names | None = None
    arrivals: Processes | None = None
    rates: Rates | None = None


class Training(_Part):
    """How methods that learn are trained."""

    config: str = "paper"  # a preset of training, or a TOML file
    settings: tuple[str, ...] = ()
    engine: Engine | None = None  # where they are trained, if not where they are compared


class Plan(_Part):
    """All of it."""

    name: str
    description: str = ""
    scenarios: Names = ("paper",)
    settings: tuple[str, ...] = ()  # of every scenario
    engines: tuple[Engine, ...] = ()  # each scenario on each of these; its own by default
    arrivals: Processes = ("deterministic", "poisson")
    rates: Rates | None = None  # the scenario's rates of interest by default
    seeds: Seeds = (0, 1, 2)
    episodes: Annotated[int, Field(strict=True, ge=1)] = 5
    training: Training = Training()
    compare: Annotated[tuple[Compare, ...], Field(min_length=1)]

    # What names of scenarios and of the training stand for; a study on disk keeps them, so that it
    # means the same when files change or are gone.
    _scenarios: dict[str, Scenario] = PrivateAttr(default_factory=dict)
    _config: TrainingConfig | None = PrivateAttr(default=None)

    def scenario(self, source: str) -> Scenario:
        """What a name in the plan stands for."""
        if source not in self._scenarios:
            self._scenarios[source] = load(source, self.settings)
        return self._scenarios[source]

    def worlds(self, source: str) -> list[Scenario]:
        """The same on every engine; on ns-3 it has a name of its own."""
        scenario = self.scenario(source)
        return [
            changed(scenario, {"engine": engine, "name": f"{scenario.name}{_ON_ENGINE[engine]}"})
            for engine in self.engines
        ] or [scenario]

    def config(self) -> TrainingConfig:
        """How methods that learn are trained."""
        if self._config is None:
            self._config = load_config(self.training.config, self.training.settings)
        return self._config

    @property
    def sources(self) -> list[str]:
        """Every scenario that is named."""
        others = (name for part in self.compare for name in part.scenarios or ())
        return list(dict.fromkeys([*self.scenarios, *others]))

    def resolved(self) -> dict[str, Any]:
        """All that the plan names, in full."""
        return {
            "scenarios": {
                source: self.scenario(source).model_dump(mode="json") for source in self.sources
            },
            "training": self.config().model_dump(mode="json"),
        }

    def points(self) -> Iterator[tuple[Scenario, str, float, str]]:
        """(scenario, arrivals, rate, method) of everything that is compared, each once."""
        seen = set()
        for part in self.compare:
            arrivals = part.arrivals or self.arrivals
            worlds = [
                scenario
                for source in part.scenarios or self.scenarios
                for scenario in self.worlds(source)
            ]
            for scenario, name in product(worlds, part.methods):
                rates = part.rates or self.rates or scenario.workload.rates_of_interest
                for process, rate in product(arrivals, rates):
                    key = scenario.name, process, float(rate), name
                    if key not in seen:
                        seen.add(key)
                        yield scenario, process, float(rate), name

    def units(self) -> list[Unit]:
        """The work, cut into pieces that need nothing of one another; dear ones first.

        A method that learns is trained in stacks: all its runs at one rate, or, if there is but one
        rate, at one load. The others are played at all rates of an arrival process.
        """
        one_rate = len({rate for _, _, rate, name in self.points() if name in TRAINED}) == 1
        stacks: dict[tuple[str, str, float, str], list[str]] = {}
        batches: dict[tuple[str, str, str], list[float]] = {}
        scenarios: dict[str, Scenario] = {}
        for scenario, process, rate, name in self.points():
            scenarios[scenario.name] = scenario
            if name in TRAINED:
                key = scenario.name, name, rate, process if one_rate else ""
                stacks.setdefault(key, []).append(process)
            else:
                batches.setdefault((scenario.name, name, process), []).append(rate)
        config = self.config()
        units: list[Unit] = [
            TrainUnit(
                scenarios[where],
                tuple(processes),
                rate,
                name,
                self.seeds,
                self.episodes,
                config_of(name, config),
                self.training.engine or scenarios[where].engine,
            )
            for (where, name, rate, _), processes in stacks.items()
        ]
        units.sort(key=lambda unit: -sum(unit.rates))  # the longest first: no one waits at the end
        units += [
            PlayUnit(scenarios[where], process, tuple(rates), name, self.seeds, self.episodes)
            for (where, name, process), rates in batches.items()
        ]
        return units

    def check(self, code: Code = "run", own: Collection[str] = ()) -> None:
        """Refuse what would fail later: unknown methods, scenarios, processes, fields.

        To know whether a method of a file is one, the file must be run. `code` says what to do
        about those that are not the user's `own`: run them, refuse them or leave them out.
        """
        if len(set(self.seeds)) < len(self.seeds):
            raise InputError(f"seeds = {list(self.seeds)}: must be different")
        self.config()
        self._check_names()
        checked = set()
        for scenario, process, rate, name in self.points():
            at_load(scenario, process, rate)
            if name not in checked and name not in TRAINED:
                if name in METHODS and METHODS[name].trained:
                    raise InputError(f"methods: {name!r} cannot be trained in a study yet")
                if code == "run" or name in own or not method_files.runs_code(name):
                    method(name)
                elif code == "refuse":
                    raise InputError(
                        f"methods: {name!r} runs code from a file; add --trust if you trust this"
                        " plan and its files"
                    )
            checked.add(name)

    def _check_names(self) -> None:
        names = [scenario.name for source in self.sources for scenario in self.worlds(source)]
        for name in names:
            if names.count(name) > 1:
                raise InputError(f"scenarios: two are called {name!r}; set another name in one")
