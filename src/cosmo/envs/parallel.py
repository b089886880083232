"""The same world as a PettingZoo parallel environment, for libraries that know no other kind.

Every step takes one decision: nodes decide at times of their own. The agent whose turn it is has
`infos[agent]["acts"]`; the actions of the others are not looked at, and their `action_mask` allows
action 0 alone, so that a learner can leave those rows out. Rewards are those of `aec.py`.
"""

from typing import Any

import numpy as np
from pettingzoo import ParallelEnv

from cosmo.envs.aec import CosmoAEC, aec
from cosmo.errors import InputError


def parallel(**given: Any) -> "CosmoParallel":
    """The environment; arguments are those of `cosmo.envs.aec`."""
    return CosmoParallel(aec(**given))


class CosmoParallel(ParallelEnv):  # type: ignore[misc]
    """See the module; `state()` is what all agents have seen, for critics trained centrally."""

    def __init__(self, inner: CosmoAEC) -> None:
        super().__init__()
        self.aec = inner
        self.metadata = {**inner.metadata, "name": "cosmo_parallel_v0"}
        self.scenario, self.render_mode = inner.scenario, inner.render_mode
        self.possible_agents = inner.possible_agents
        self.observation_spaces, self.action_spaces = inner.observation_spaces, inner.action_spaces
        self.state_space = inner.state_space
        self.agents: list[str] = []

    def observation_space(self, agent: str) -> Any:
        """Of an agent."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Any:
        """Of an agent."""
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """As `CosmoAEC.reset`; (observations, infos) of all agents."""
        self.aec.reset(seed, options)
        self.agents = self.possible_agents[:]
        return self._seen(), self._infos()

    def step(self, actions: dict[str, Any]) -> tuple[dict[str, Any], ...]:
        """Take the decision of the agent whose turn it is.

        Returns observations, rewards, terminations, truncations and infos of all agents.
        """
        acting = self.aec.agent_selection
        if acting not in actions:
            raise InputError(f"actions: {acting} acts now, and its action is missing")
        self.aec.step(actions[acting])
        found = self.aec
        told = (
            self._seen(), dict(found.rewards), dict(found.terminations), dict(found.truncations),
            self._infos(),
        )  # fmt: skip
        if all(found.terminations.values()) or all(found.truncations.values()):
            self.agents = []
        return told

    def state(self) -> Any:
        """What all agents saw at their last or pending decisions."""
        return self.aec.state()

    def render(self) -> Any:
        """As `CosmoAEC.render`."""
        return self.aec.render()

    def close(self) -> None:
        """Close the window, if there is one."""
        self.aec.close()

    def _seen(self) -> dict[str, Any]:
        return {agent: self.aec.observe(agent).copy() for agent in self.possible_agents}

    def _infos(self) -> dict[str, Any]:
        acting = self.aec.agent_selection
        infos = {}
        for agent in self.possible_agents:
            mask = self.aec.action_mask(agent)
            if agent != acting:
                mask = np.zeros_like(mask)
                mask[0] = 1
            infos[agent] = {**self.aec.infos[agent], "acts": agent == acting, "action_mask": mask}
        return infos
