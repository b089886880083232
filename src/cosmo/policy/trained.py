"""Trained controllers as methods: `cosmo:checkpoint=trained`."""

from dataclasses import replace
from pathlib import Path

from cosmo.errors import InputError
from cosmo.node import Dispatcher, Hidden, Method, Site, Updater
from cosmo.node.calls import NOTHING_HIDDEN
from cosmo.policy.controller import load_controller
from cosmo.policy.learned_methods import LEARNED, learned_method
from cosmo.seeds import run_digest


class Trained(Method):
    """A trained controller from a folder of `cosmo train`.

    Every world is played by the run that was trained with its seed, or by `run` if given.
    """

    name = ""  # of the method that the folder must hold; any if empty

    def __init__(self, checkpoint: Path, run: int | None = None) -> None:
        self.controller = load_controller(checkpoint)
        if self.name and self.controller.method != self.name:
            raise InputError(
                f"checkpoint = '{checkpoint}': holds {self.controller.method}, not {self.name}"
            )
        seeds = self.controller.seeds
        if run is not None and run not in seeds:
            raise InputError(f"run = {run}: must be one of {', '.join(map(str, seeds))}")
        self._run = run
        self.carries = self.controller.agents.dimensions

    def _at_work(self, site: Site) -> Method:
        asked = site.runs if self._run is None else [run_digest(self._run)] * site.worlds
        runs = [self.controller.run_of(run, site) for run in asked]
        return self.controller.agents.of(runs).at_work()

    def notice(self, site: Site, hidden: Hidden = NOTHING_HIDDEN) -> str:
        """What about a site the controller has not been trained for."""
        kind, trained = learned_method(self.controller.method), self.controller.sns
        here = site.links.reach.shape[1]
        if kind.scope == "load" and here != trained:
            return (
                f"{kind.name} was trained where an EN reaches {trained} SN(s); here it reaches"
                f" {here}: train it for this site"
            )
        return self._at_work(site).notice(site, hidden)

    def dispatcher(self, site: Site) -> Dispatcher:
        """Return the EN agents of the run that acts in each world of `site`, without memory."""
        return self._at_work(site).dispatcher(site)

    def updater(self, site: Site) -> Updater:
        """Return the SN agents of the run that acts in each world of `site`, without memory."""
        return self._at_work(site).updater(site)


# What a failed task costs, in successful ones, if net utility counts: then a task is worth trying
# only if it will rather be in time. `cosmo-next:objective=success` has what training found.
UTILITY_FAILURE = 1.0
OBJECTIVES = ("success", "utility")


class _WithShipped(Trained):
    """A method that has a controller in the package; `off` leaves a part of it out, `objective` is
    what counts: tasks in time, or net utility (R32), in which failed tasks cost more.
    """

    def __init__(
        self,
        checkpoint: Path | None = None,
        run: int | None = None,
        off: str = "",
        objective: str = "success",
    ) -> None:
        super().__init__(shipped(self.name) if checkpoint is None else checkpoint, run)
        if objective not in OBJECTIVES:
            raise InputError(f"objective = {objective!r}: must be {' or '.join(OBJECTIVES)}")
        agents = self.controller.agents
        if off:
            agents = agents.without(off)
        if objective == "utility":
            agents = agents.for_utility(UTILITY_FAILURE)
        self.controller = replace(self.controller, agents=agents)


def shipped(name: str) -> Path:
    """Where the controller of a method is that comes with the package."""
    return Path(__file__).parent / "controllers" / LEARNED[name].shipped


# A method of the registry for each that learns.
TRAINED: dict[str, type[Trained]] = {
    name: type(
        "".join(word.title() for word in name.split("-")),
        (_WithShipped if each.shipped else Trained,),
        {
            "__doc__": each.summary,
            "__module__": __name__,
            "name": name,
            "reference": each.reference,
            "plain": each.plain,
        },
    )
    for name, each in LEARNED.items()
}


def trained_method(name: str, folder: Path) -> Trained:
    """The method of this name from a folder of `cosmo train`."""
    return TRAINED[name](folder)
