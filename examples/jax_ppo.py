"""PPO on one page, in JAX and Optax, on many worlds at once.

    pip install '.[lab,envs]'
    python examples/jax_ppo.py [decisions]

Be the EN of the paper at 220 tasks/s (Poisson). All worlds are stepped together by the batched
engine, and their experience is learned from together. At the end the policy is a method like any
other and is compared on workloads that it has not seen.
"""

import sys
import time

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import optax

import cosmo.envs  # registers the environments
from cosmo import load, method, simulate
from cosmo.envs import from_callable

WORLDS, STEPS = 32, 128  # experience of one round
EPOCHS, BATCHES = 4, 8
RATE, CLIP, ENTROPY, VALUE = 5e-4, 0.2, 0.01, 0.5
DISCOUNT, TRACE = 0.97, 0.95  # a decision pays off some tens of decisions later
HIDDEN, SEED = 64, 1_000_000  # runs from this seed on are trained on, run 0 never
UPDATER = "periodic-37"


def initial(key, inputs, actions):
    """Two layers for policy and value each; the last ones start near zero."""
    parameters = []
    for out, scale in ((actions, 0.01), (1, 1.0)):
        for width, height, gain in (
            (inputs, HIDDEN, 2**0.5), (HIDDEN, HIDDEN, 2**0.5), (HIDDEN, out, scale),
        ):  # fmt: skip
            key, own = jax.random.split(key)
            weight = jax.nn.initializers.orthogonal(gain)(own, (width, height))
            parameters.append((weight, jnp.zeros(height)))
    return parameters


def forward(parameters, seen):
    """Logits [row, action] and values [row]."""
    heads = []
    for layers in (parameters[:3], parameters[3:]):
        x = seen
        for weight, bias in layers[:-1]:
            x = jnp.tanh(x @ weight + bias)
        heads.append(x @ layers[-1][0] + layers[-1][1])
    return heads[0], heads[1][:, 0]


@jax.jit
def act(parameters, key, seen):
    """Draw actions; with their log probabilities and the values of what is seen."""
    logits, value = forward(parameters, seen)
    action = jax.random.categorical(key, logits)
    chance = jax.nn.log_softmax(logits)[jnp.arange(len(action)), action]
    return action, chance, value


@jax.jit
def advantages(reward, over, value, last):
    """Generalised advantage estimates, [step, world]."""

    def back(carry, step):
        ahead, following = carry
        earned, ended, now = step
        error = earned + DISCOUNT * following * (1.0 - ended) - now
        ahead = error + DISCOUNT * TRACE * (1.0 - ended) * ahead
        return (ahead, now), ahead

    _, found = jax.lax.scan(back, (jnp.zeros_like(last), last), (reward, over, value), reverse=True)
    return found


def loss(parameters, batch):
    """PPO's clipped objective, the value's error, and a bonus for entropy."""
    seen, action, before, advantage, target = batch
    logits, value = forward(parameters, seen)
    chances = jax.nn.log_softmax(logits)
    ratio = jnp.exp(chances[jnp.arange(len(action)), action] - before)
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    gain = jnp.minimum(ratio * advantage, jnp.clip(ratio, 1 - CLIP, 1 + CLIP) * advantage)
    entropy = -(jnp.exp(chances) * chances).sum(axis=1)
    return VALUE * jnp.square(value - target).mean() - gain.mean() - ENTROPY * entropy.mean()


optimiser = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(RATE, eps=1e-5))


@jax.jit
def update(parameters, state, batch):
    """One step of the optimiser."""
    step, state = optimiser.update(jax.grad(loss)(parameters, batch), state)
    return optax.apply_updates(parameters, step), state


def train(decisions, told=print):
    """The parameters after so many decisions in all worlds together."""
    env = gymnasium.make_vec("cosmo/Dispatch-v0", WORLDS, rate=220, updater=UPDATER)
    key, random = jax.random.PRNGKey(0), np.random.default_rng(0)
    inputs, actions = env.single_observation_space.shape[0], int(env.single_action_space.n)
    parameters = initial(key, inputs, actions)
    state = optimiser.init(parameters)
    seen, _ = env.reset(seed=SEED)
    successes, start = [], time.perf_counter()
    for number in range(max(1, decisions // (WORLDS * STEPS))):
        notes = []
        for _ in range(STEPS):
            key, own = jax.random.split(key)
            action, chance, value = map(np.asarray, act(parameters, own, seen))
            following, reward, over, _, info = env.step(action)
            notes.append((seen, action, chance, value, reward, over))
            seen = following
            if over.any():
                successes += info["final_info"]["metrics"]["success_rate"][over].tolist()
        saw, action, chance, value, reward, over = (
            np.stack(each) for each in zip(*notes, strict=True)
        )
        last = forward(parameters, seen)[1]
        ahead = np.asarray(advantages(reward, over.astype(np.float32), value, last))
        flat = [each.reshape(WORLDS * STEPS, *each.shape[2:])
                for each in (saw, action, chance, ahead, ahead + value)]  # fmt: skip
        for _ in range(EPOCHS):
            for rows in random.permutation(WORLDS * STEPS).reshape(BATCHES, -1):
                parameters, state = update(parameters, state, [each[rows] for each in flat])
        if successes and number % 10 == 9:
            rate = (number + 1) * WORLDS * STEPS / (time.perf_counter() - start)
            told(f"round {number + 1}: success {np.mean(successes[-WORLDS:]):.3f}, "
                 f"{rate:,.0f} decisions/s")  # fmt: skip
    env.close()
    return parameters


def main(decisions=400_000):
    """Train and compare; returns success rates by name."""
    parameters = train(decisions)
    greedy = jax.jit(lambda seen: forward(parameters, seen)[0].argmax(axis=1))
    mine = from_callable(lambda seen: np.asarray(greedy(seen)), updater=UPDATER)
    scenario = load("paper", ["workload.rate=220"])
    found = {}
    for name, one in (("ppo", mine), ("local-until-full", method("local-until-full"))):
        mean, half = simulate(scenario, one, episodes=5).metrics["success_rate"]
        found[name] = mean
        print(f"{name}: success {mean:.3f} ± {half:.3f}")
    return found


if __name__ == "__main__":
    assert cosmo.envs
    main(*(int(argument) for argument in sys.argv[1:]))
