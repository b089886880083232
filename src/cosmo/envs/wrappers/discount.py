"""A discount that counts time, for learners that count steps."""

from typing import Any

import gymnasium


class SemiMarkovDiscount(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Rewards such that a learner with `step_discount` a step maximises the return with `discount`
    for every `per_ms` of time.

    A reward is multiplied by the ratio of the two discounts since the episode's start;
    `info["discount"]` is what the time since the last step alone is worth.
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        discount: float = 0.99,
        per_ms: float = 20.0,
        step_discount: float = 1.0,
    ) -> None:
        super().__init__(env)
        self._discount, self._per_ms, self._step = discount, per_ms, step_discount
        self._weight = 1.0

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        """A new episode starts with weight 1."""
        self._weight = 1.0
        return self.env.reset(**options)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """One decision."""
        seen, reward, terminated, truncated, info = self.env.step(action)
        weighted = float(reward) * self._weight
        passed = self._discount ** (info["elapsed_ms"] / self._per_ms)
        self._weight *= passed / self._step
        return seen, weighted, terminated, truncated, {**info, "discount": passed}
