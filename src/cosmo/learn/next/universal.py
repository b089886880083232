"""One controller for all sites: networks for one EN with one SN, numbers for crowds."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosmo.errors import InputError
from cosmo.learn.next.config import NextConfig
from cosmo.learn.next.crowd.config import CrowdConfig
from cosmo.learn.next.crowd.trainer import CrowdTrainer
from cosmo.learn.next.trainer import NextTrainer
from cosmo.learn.run import Arrays, Curve, Run, TrainsRuns
from cosmo.policy.controller import named_layers
from cosmo.policy.next.crowd.numbers import Numbers

_NETWORKS, _CROWD = "networks/", "crowd/"


def trainer_of(runs: Sequence[Run], config: NextConfig) -> TrainsRuns:
    """What trains `cosmo-next` as the configuration says."""
    networks = NextTrainer(runs, config)
    return networks if config.crowd is None else UniversalTrainer(networks, config.crowd)


class UniversalTrainer:
    """A round trains the networks for a round, and the crowd for some generations."""

    def __init__(self, networks: NextTrainer, config: CrowdConfig) -> None:
        runs, rounds = networks.runs, networks.config.episodes
        if len(runs) != 1:
            raise InputError("a controller for all sites is one run: add --seeds 0")
        if not networks.config.sn.single:
            raise InputError("sn.single = false: must be true, as crowds send one number")
        self._networks, self._config = networks, config
        total = rounds * config.generations
        self._crowd = CrowdTrainer(runs[0].scenario, runs[0].seed, config, total)

    @property
    def episode(self) -> int:
        """Rounds that are done."""
        return self._networks.episode

    def pretrain(self) -> None:
        """Nothing to do."""

    def train_episode(self) -> list[Curve]:
        """The next round; the curves are the crowd's."""
        first = self._networks.episode * self._config.generations
        curves = [
            self._crowd.train_generation(first + more) for more in range(self._config.generations)
        ]
        self._networks.train_episode()
        return [{name: float(np.mean([each[name] for each in curves])) for name in curves[0]}]

    def delivered(self) -> Arrays:
        """What is written for `cosmo.policy`."""
        fit = np.array(self._crowd.fit)  # [part, number]
        numbers = {name: fit[None, :, k] for k, name in enumerate(Numbers._fields)}
        return self._networks.delivered() | named_layers("crowd", numbers)

    def saved(self) -> Arrays:
        """All that a resumed training needs."""
        return _with(_NETWORKS, self._networks.saved()) | _with(_CROWD, self._crowd.saved())

    def restore(self, kept: Mapping[str, NDArray[Any]]) -> None:
        """The inverse of `saved`."""
        self._networks.restore(_without(_NETWORKS, kept))
        self._crowd.restore(_without(_CROWD, kept))


def _with(start: str, arrays: Arrays) -> Arrays:
    return {f"{start}{name}": value for name, value in arrays.items()}


def _without(start: str, arrays: Mapping[str, NDArray[Any]]) -> Arrays:
    return {k.removeprefix(start): v for k, v in arrays.items() if k.startswith(start)}
