"""MAPPO on one page, in JAX and Optax: all ENs and all SNs of a site learn together.

    pip install '.[envs]'
    python examples/jax_mappo.py [decisions] [seed]

The site is `campus`, three ENs and two SNs. One policy serves all ENs and one all SNs (shared
weights by role); each role has a critic that sees what all agents have seen, which only training
needs. At the end the two policies are a method like any other and are compared on workloads that
they have not seen. Draws `mappo-curve.png`.
"""

import sys
import time

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import optax

from cosmo import load, method, simulate
from cosmo.envs import from_callable, parallel

SCENARIO, RATE = "campus", 180.0
INTERVAL_MS = 50.0  # SNs have two actions then: 0 send, 1 do not
EPISODES, EPOCHS = 4, 4  # in a round
BATCH = {"en": 512, "sn": 128}
STEP, CLIP, ENTROPY, VALUE = 1e-3, 0.2, 0.003, 0.5  # the step falls to 0
HORIZON_MS, TRACE = 100.0, 0.95  # what is earned so much later counts 1/e
HIDDEN = 64
FIRST_RUN = 1_000_000  # runs from here on are trained on, run 0 never
SETTINGS = ["episode.window_ms=2000", "episode.warmup_ms=0"]


def layers(key, inputs, outputs, gain):
    """Weights of a network with two hidden layers."""
    made = []
    for width, height, scale in (
        (inputs, HIDDEN, 2**0.5), (HIDDEN, HIDDEN, 2**0.5), (HIDDEN, outputs, gain),
    ):  # fmt: skip
        key, own = jax.random.split(key)
        weight = jax.nn.initializers.orthogonal(scale)(own, (width, height))
        made.append((weight, jnp.zeros(height)))
    return made


def network(parameters, x, xp=jnp):
    """[row, output] of inputs [row, number]; with NumPy where few rows come at a time."""
    for weight, bias in parameters[:-1]:
        x = xp.tanh(x @ weight + bias)
    return x @ parameters[-1][0] + parameters[-1][1]


def loss(parameters, batch):
    """PPO's clipped objective, the central critic's error, and a bonus for entropy."""
    actor, critic = parameters
    seen, state, action, before, advantage, target = batch
    chances = jax.nn.log_softmax(network(actor, seen))
    ratio = jnp.exp(chances[jnp.arange(len(action)), action] - before)
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    gain = jnp.minimum(ratio * advantage, jnp.clip(ratio, 1 - CLIP, 1 + CLIP) * advantage)
    entropy = -(jnp.exp(chances) * chances).sum(axis=1)
    error = jnp.square(network(critic, state)[:, 0] - target)
    return VALUE * error.mean() - gain.mean() - ENTROPY * entropy.mean()


optimiser = optax.chain(optax.clip_by_global_norm(0.5), optax.scale_by_adam(eps=1e-5))


@jax.jit
def update(parameters, memory, batch, rate):
    """One step of the optimiser."""
    step, memory = optimiser.update(jax.grad(loss)(parameters, batch), memory)
    return jax.tree.map(lambda old, change: old - rate * change, parameters, step), memory


def drawn(actor, seen, random):
    """Actions drawn at random, [row], with their log probabilities; NumPy alone."""
    logits = network(actor, seen, np)
    action = (logits + random.gumbel(size=logits.shape)).argmax(axis=1)
    shifted = logits - logits.max(axis=1, keepdims=True)
    chances = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return action, chances[np.arange(len(action)), action]


def role_of(agent):
    """`en` or `sn`."""
    return agent.partition("_")[0]


class Learner:
    """One role: the policy of all its nodes, and their critic."""

    def __init__(self, key, inputs, state, actions):
        own, other = jax.random.split(key)
        self.parameters = layers(own, inputs, actions, 0.01), layers(other, state, 1, 1.0)
        self.memory = optimiser.init(self.parameters)

    def learn(self, paths, size, random, rate):
        """From the decisions of all agents of the role, each with its path through an episode."""
        columns, critic = [[] for _ in range(6)], jax.tree.map(np.asarray, self.parameters[1])
        for path in paths:
            seen, state, action, chance, at_ms, reward = map(np.array, zip(*path, strict=True))
            value = network(critic, state, np)[:, 0]
            ahead = advantages(reward, value, at_ms)
            for column, part in zip(
                columns, (seen, state, action, chance, ahead, ahead + value), strict=True
            ):
                column.append(part)
        rows = [np.concatenate(column) for column in columns]
        count = len(rows[0]) // size * size  # batches of one shape are compiled once
        for _ in range(EPOCHS):
            for chosen in random.permutation(len(rows[0]))[:count].reshape(-1, size):
                batch = [each[chosen] for each in rows]
                self.parameters, self.memory = update(self.parameters, self.memory, batch, rate)


def advantages(reward, value, at_ms):
    """Generalised advantage estimates along one agent's path; the discount counts time."""
    found, ahead, following, then_ms = np.zeros_like(value), 0.0, 0.0, np.inf
    for place in reversed(range(len(value))):
        discount = np.exp(-(then_ms - at_ms[place]) / HORIZON_MS)  # 0 at the end
        ahead = (reward[place] + discount * following - value[place]) + discount * TRACE * ahead
        found[place], following, then_ms = ahead, value[place], at_ms[place]
    return found


def play(env, learners, random):
    """One episode; ({role: paths of its agents}, the episode's metrics)."""
    actors = {role: jax.tree.map(np.asarray, each.parameters[0]) for role, each in learners.items()}
    paths = {agent: [] for agent in env.possible_agents}
    mine = dict(zip(paths, np.eye(len(paths), dtype=np.float32), strict=True))
    seen, infos = env.reset()
    while env.agents:
        state, chosen = env.state(), dict.fromkeys(env.agents, 0)
        for agent, info in infos.items():
            if not info["acts"]:
                continue
            role = role_of(agent)
            [action], [chance] = drawn(actors[role], seen[agent][None], random)
            chosen[agent] = int(action)
            whole = np.concatenate([state, mine[agent]])  # the critic knows whom it is asked about
            paths[agent].append([seen[agent], whole, action, chance, info["time_ms"], 0.0])
        seen, rewards, _, _, infos = env.step(chosen)
        for agent, value in rewards.items():
            if paths[agent]:  # what is earned belongs to the agent's last decision
                paths[agent][-1][-1] += value
    roles = {role: [paths[agent] for agent in paths if role_of(agent) == role] for role in actors}
    return roles, infos["en_0"]["metrics"]


def train(decisions, seed=0, report=print):
    """({role: actor}, the curve: decisions so far, success and update cost of each round)."""
    env = parallel(
        scenario=SCENARIO, rate=RATE, settings=SETTINGS, intervals_ms=[INTERVAL_MS], pad=False,
        reward_scale=10.0 * load(SCENARIO).utility.value,
    )  # fmt: skip
    env.reset(seed=FIRST_RUN + seed)
    state = env.state_space.shape[0] + len(env.possible_agents)
    key, random = jax.random.PRNGKey(seed), np.random.default_rng(seed)
    learners, curve, done, start = {}, [], 0, time.perf_counter()
    for role, own in zip(("en", "sn"), jax.random.split(key), strict=True):
        seen, actions = env.observation_space(f"{role}_0"), env.action_space(f"{role}_0")
        learners[role] = Learner(own, seen.shape[0], state, int(actions.n))
    while done < decisions:
        played = [play(env, learners, random) for _ in range(EPISODES)]
        rate = STEP * (1.0 - done / decisions)
        for role, learner in learners.items():
            paths = [path for roles, _ in played for path in roles[role]]
            learner.learn(paths, BATCH[role], random, rate)
            done += sum(map(len, paths))
        names = "success_rate", "update_cost_rate"
        curve.append((done, *(np.mean([told[name] for _, told in played]) for name in names)))
        if len(curve) % 10 == 0:
            report(f"{done:7,} decisions, {time.perf_counter() - start:3.0f} s: "
                   f"success {curve[-1][1]:.3f}, {curve[-1][2]:.0f} units/s")  # fmt: skip
    return {role: learner.parameters[0] for role, learner in learners.items()}, curve


def policy(actor):
    """Of a batch of observations, as it was trained: actions are drawn."""
    weights, random = jax.tree.map(np.asarray, actor), np.random.default_rng(0)
    return lambda seen: drawn(weights, seen, random)[0]


def draw(curve, rivals, file="mappo-curve.png"):
    """Success and update cost of the training's rounds, with lines for others."""
    done, success, cost = zip(*curve, strict=True)
    figure, (upper, lower) = plt.subplots(2, 1, figsize=(7, 5.5), sharex=True, layout="constrained")
    upper.plot(done, success, label="MAPPO, while it learns")
    lower.plot(done, cost)
    for (name, (mean, _, _)), line in zip(rivals.items(), ("--", ":", "-."), strict=False):
        upper.axhline(mean, color="black", linestyle=line, lw=1, label=name)
    upper.set(ylabel="success rate", ylim=(0.0, 1.0))
    upper.legend(loc="lower right")
    lower.set(xlabel="decisions of all agents", ylabel="update cost (units/s)")
    lower.set_ylim(bottom=0.0)
    figure.savefig(file, dpi=120)
    plt.close(figure)


def main(decisions=200_000, seed=0, episodes=5):
    """Train, compare, draw; returns (success, half its interval, update cost) by name."""
    actors, curve = train(decisions, seed)

    def pair(updater):
        return from_callable(policy(actors["en"]), updater, [INTERVAL_MS])

    scenario = load(SCENARIO, [f"workload.rate={RATE}"])
    rivals = ("local-until-full", "aov-gap", "power-of-d", "cosmo-next")
    found = {}
    for name, one in (
        ("the pair", pair(policy(actors["sn"]))),
        ("its ENs with an update every 50 ms", pair("periodic:interval_ms=50")),
        ("its ENs without updates", pair("never")),
        *((name, method(name)) for name in rivals),
    ):
        metrics = simulate(scenario, one, seeds=0, episodes=episodes).metrics
        mean, half = metrics["success_rate"]
        found[name] = mean, half, metrics["update_cost_rate"].mean
        print(f"{name}: success {mean:.3f} ± {half:.3f}, {found[name][2]:.1f} units/s")
    draw(curve, {name: found[name] for name in rivals if name != "power-of-d"})
    return found


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
