"""A hand-written EN policy in twenty lines, played through the Gymnasium environment.

pip install '.[envs]'
python examples/hand_written.py
"""

import gymnasium

import cosmo.envs  # noqa: F401 (registers the environments)


def policy(seen: dict[str, float]) -> int:
    """Local if the wait is short, else offload if the SN seemed free, else reject."""
    if seen["local_room"] and seen["local_wait"] + seen["task_cycles"] < seen["task_slack"]:
        return 0
    return 1 if seen["sn0_work"] < 0.4 else 2


def main(episodes: int = 2) -> float:
    """Mean reward of an episode, in units of the task value."""
    env = gymnasium.make("cosmo/Dispatch-v0", rate=220, updater="aov-gap")
    names, total = env.unwrapped.observation_names, 0.0
    for episode in range(episodes):
        seen, _ = env.reset(seed=0 if episode == 0 else None)
        over = False
        while not over:
            action = policy(dict(zip(names, seen.tolist(), strict=True)))
            seen, reward, over, _, _ = env.step(action)
            total += reward
    return total / episodes


if __name__ == "__main__":
    print(f"mean reward of an episode: {main():.0f} V")
