"""Steps per second of the environments, by Gymnasium's and PettingZoo's own benchmark functions.

    python benchmarks/envs.py

The alternatives: ns-3 behind the same interface, and a typical pure-Python environment of this
field, `mobile-small-central-v0` (if mobile-env is installed).
"""

import time

import gymnasium
import numpy as np
from gymnasium.utils.performance import benchmark_step
from pettingzoo.test import performance_benchmark

import cosmo.envs
from cosmo.envs import aec
from cosmo.ns3 import library

SECONDS = 5


def vector_decisions(worlds: int, updater: str) -> float:
    env = gymnasium.make_vec("cosmo/Dispatch-v0", num_envs=worlds, rate=220, updater=updater)
    env.reset(seed=0)
    actions = np.random.default_rng(0).integers(0, 3, (1000, worlds))
    for step in range(20):
        env.step(actions[step])
    steps, start = 0, time.perf_counter()
    while time.perf_counter() - start < SECONDS:
        env.step(actions[steps % 1000])
        steps += 1
    return steps * worlds / (time.perf_counter() - start)


def main() -> None:
    ours = {}
    for name in ("cosmo/Dispatch-v0", "cosmo/Update-v0"):
        ours[name] = benchmark_step(gymnasium.make(name, rate=220), SECONDS, seed=0)
        print(f"{name}: {ours[name]:,.0f} steps/s")
    print("AEC, as PettingZoo tells it:")
    performance_benchmark(aec(rate=220))
    library.install()
    on_ns3 = benchmark_step(
        gymnasium.make("cosmo/Dispatch-v0", rate=220, engine="ns3"), SECONDS, seed=0
    )
    single = ours["cosmo/Dispatch-v0"]
    print(f"cosmo/Dispatch-v0 on ns-3: {on_ns3:,.0f} steps/s")
    vector = 0.0
    for worlds in (16, 256):
        for updater in ("aoi-threshold", "never"):
            vector = vector_decisions(worlds, updater)
            print(f"vector of {worlds}, updater {updater}: {vector:,.0f} decisions/s")
    print(f"ratio to ns-3: single {single / on_ns3:.0f} times, vector {vector / on_ns3:,.0f} times")
    try:
        import mobile_env  # noqa: F401
    except ImportError:
        print("mobile-env is not installed (pip install mobile-env): nothing to compare with")
        return
    theirs = benchmark_step(gymnasium.make("mobile-small-central-v0"), SECONDS, seed=0)
    print(f"mobile-small-central-v0: {theirs:,.0f} steps/s")
    print(f"ratio: single {single / theirs:.1f} times, vector {vector / theirs:.0f} times")


if __name__ == "__main__":
    assert cosmo.envs
    main()
