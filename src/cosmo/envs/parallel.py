"""The same world as a PettingZoo parallel environment, for libraries that know no other kind.

A step takes all decisions of one instant together: nodes decide at times of their own, but SNs that
chose equal intervals, or ENs whose tasks arrive at one time, decide at once. Agents that act have
`infos[agent]["acts"]`; the actions of the others are not looked at, and their `action_mask` allows
action 0 alone, so that a learner can leave those rows out. Rewards are those of `aec.py`, summed
over the decisions of a step.

What an agent sees does not depend on what others decide at the same instant: messages take time.
So a copy of the world, in which everybody rejects and nobody sends, shows what those behind the
first of them see. An agent with two decisions at an instant takes them in two steps. ns-3 cannot be
copied: there, every step takes one decision.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from pettingzoo import ParallelEnv

from cosmo.documents import short
from cosmo.envs.aec import CosmoAEC, aec
from cosmo.errors import InputError
from cosmo.world import Worlds


def parallel(*given: Any, **named: Any) -> "CosmoParallel":
    """Make the PettingZoo parallel environment.

    Args:
        given: The arguments of `cosmo.envs.aec`, in its order.
        named: The same by keyword.

    Returns:
        The environment.

    Raises:
        InputError: In one line, as `cosmo.envs.aec` does.

    """
    return CosmoParallel(aec(*given, **named))


class CosmoParallel(ParallelEnv):  # type: ignore[misc]
    """The environment that `cosmo.envs.parallel` makes: a step takes all decisions of one instant.

    `state()` is what all agents have seen, for critics trained centrally.
    """

    def __init__(self, inner: CosmoAEC) -> None:
        super().__init__()
        self.aec = inner
        self.metadata = {**inner.metadata, "name": "cosmo_parallel_v0"}
        self.scenario, self.render_mode = inner.scenario, inner.render_mode
        self.possible_agents = inner.possible_agents
        self.observation_spaces, self.action_spaces = inner.observation_spaces, inner.action_spaces
        self.state_space = inner.state_space
        self.agents: list[str] = []
        # Agents that act now, in the world's order, with what each sees and its part of `info`.
        self._asked: dict[str, tuple[Any, dict[str, Any]]] = {}

    def observation_space(self, agent: str) -> Any:
        """Return the space of the observations of `agent`."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Any:
        """Return the space of the actions of `agent`."""
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """As `CosmoAEC.reset`; (observations, infos) of all agents."""
        self.aec.reset(seed, options)
        self.agents = self.possible_agents[:]
        self._asked = self._deciding()
        return self._seen(), self._infos()

    def step(self, actions: dict[str, Any]) -> tuple[dict[str, Any], ...]:
        """Take the decisions of all agents that act now.

        Returns observations, rewards, terminations, truncations and infos of all agents. InputError
        if an action is missing, or is none that its agent has; then nothing has happened.
        """
        _ = self.aec.agent_selection  # says that there was no reset, if there was none
        if not isinstance(actions, Mapping):
            raise InputError(f"actions = {short(actions)}: must have an action for each agent")
        for agent in self._asked:
            if agent not in actions:
                raise InputError(f"actions: {agent} acts now, and its action is missing")
            if not self.action_space(agent).contains(actions[agent]):
                raise InputError(
                    f"actions: {agent} = {actions[agent]!r}: must be in {self.action_space(agent)}"
                )
        found = self.aec
        rewards = dict.fromkeys(self.possible_agents, 0.0)
        told = {agent: len(found.infos[agent]["final"]) for agent in self._asked}
        for agent in self._asked:
            # Its turn begins a new list of final tasks; those of this very step belong to it.
            added = found.infos[agent]["final"][told[agent] :]
            found.step(actions[agent])
            found.infos[agent]["final"][:0] = added
            for each, value in found.rewards.items():
                rewards[each] += value
        over = all(found.terminations.values()) or all(found.truncations.values())
        self._asked = {} if over else self._deciding()
        results = (
            self._seen(), rewards, dict(found.terminations), dict(found.truncations), self._infos()
        )  # fmt: skip
        if over:
            self.agents = []
        return results

    def _deciding(self) -> dict[str, tuple[Any, dict[str, Any]]]:
        found = self.aec
        first = found.agent_selection
        asked = {first: (found.observe(first), found.infos[first])}
        worlds = found.worlds
        if not isinstance(worlds, Worlds):
            return asked
        more = min(worlds.decisions_now(0), found.cycles_left - 1)
        if more <= 0:
            return asked
        ahead, turn = worlds.fork(), found.turn
        for _ in range(more):
            rows = len(turn.update)
            ahead.answer(
                action=[found.scenario.links.most_sns + 1] * len(turn.dispatch),
                send=[False] * rows, interval_ms=[1.0] * rows,
            )  # fmt: skip
            turn = ahead.advance()
            agent, seen, info = found.question(turn, ahead)
            if agent in asked:
                break
            asked[agent] = seen, info
        return asked

    def state(self) -> Any:
        """What all agents saw at their last or pending decisions."""
        return np.concatenate([*self._seen().values()])

    def render(self) -> Any:
        """Draw all nodes, as `CosmoAEC.render` does."""
        return self.aec.render()

    def close(self) -> None:
        """Close the window, if there is one."""
        self.aec.close()

    def _seen(self) -> dict[str, Any]:
        return {
            agent: (
                self._asked[agent][0] if agent in self._asked else self.aec.observe(agent)
            ).copy()
            for agent in self.possible_agents
        }

    def _infos(self) -> dict[str, Any]:
        infos = {}
        for agent in self.possible_agents:
            acts = agent in self._asked
            mask = self.aec.action_mask(agent)
            if not acts:
                mask = np.zeros_like(mask)
                mask[0] = 1
            asked = self._asked[agent][1] if acts else {}
            infos[agent] = {**self.aec.infos[agent], **asked, "acts": acts, "action_mask": mask}
        return infos
