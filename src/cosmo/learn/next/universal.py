"""One controller for all sites: networks for one EN with one SN, parameters for several nodes."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosmo.errors import InputError
from cosmo.learn.next.config import NextConfig
from cosmo.learn.next.multi_node.config import MultiNodeConfig
from cosmo.learn.next.multi_node.trainer import MultiNodeTrainer
from cosmo.learn.next.trainer import NextTrainer
from cosmo.learn.run import Arrays, Curve, Run, TrainsRuns
from cosmo.policy.controller import named_layers
from cosmo.policy.rules.multi_node_parameters import Parameters

_NETWORKS, _MULTI_NODE = "networks/", "multi_node/"


def trainer_of(runs: Sequence[Run], config: NextConfig) -> TrainsRuns:
    """The trainer of `cosmo-next` for a configuration."""
    networks = NextTrainer(runs, config)
    return networks if config.multi_node is None else UniversalTrainer(networks, config.multi_node)


class UniversalTrainer:
    """Trains the networks once per round, and the multi-node controller for some generations."""

    def __init__(self, networks: NextTrainer, config: MultiNodeConfig, workers: int = 1) -> None:
        runs, rounds = networks.runs, networks.config.episodes
        if len(runs) != 1:
            raise InputError("a controller for all sites is one run: add --seeds 0")
        if not networks.config.sn.single:
            raise InputError(
                "sn.single = false: must be true, as the multi-node controller sends one number"
            )
        self._networks, self._config = networks, config
        total = rounds * config.generations
        self._multi_node = MultiNodeTrainer(runs[0].scenario, runs[0].seed, config, total, workers)

    @property
    def episode(self) -> int:
        """The number of finished rounds."""
        return self._networks.episode

    def pretrain(self) -> None:
        """Do nothing: `cosmo-next` needs no pretraining."""

    def train_episode(self) -> list[Curve]:
        """Train for the next round; the curves are those of the multi-node controller."""
        first = self._networks.episode * self._config.generations
        curves = [
            self._multi_node.train_generation(first + more)
            for more in range(self._config.generations)
        ]
        self._networks.train_episode()
        return [{name: float(np.mean([each[name] for each in curves])) for name in curves[0]}]

    def delivered(self) -> Arrays:
        """The arrays of the trained controller, as `cosmo.policy` reads them."""
        scaled = np.array(self._multi_node.scaled)  # [row, parameter]
        parameters = {name: scaled[None, :, k] for k, name in enumerate(Parameters._fields)}
        return self._networks.delivered() | named_layers("multi_node", parameters)

    def saved(self) -> Arrays:
        """The state that a resumed training needs."""
        return _with(_NETWORKS, self._networks.saved()) | _with(
            _MULTI_NODE, self._multi_node.saved()
        )

    def restore(self, kept: Mapping[str, NDArray[Any]]) -> None:
        """The inverse of `saved`."""
        self._networks.restore(_without(_NETWORKS, kept))
        self._multi_node.restore(_without(_MULTI_NODE, kept))


def _with(start: str, arrays: Arrays) -> Arrays:
    return {f"{start}{name}": value for name, value in arrays.items()}


def _without(start: str, arrays: Mapping[str, NDArray[Any]]) -> Arrays:
    return {k.removeprefix(start): v for k, v in arrays.items() if k.startswith(start)}
