"""Steps per second of the environments, by Gymnasium's and PettingZoo's own benchmark functions.

    python benchmarks/envs.py

The alternatives: ns-3 behind the same interface, and a typical pure-Python environment of this
field, `mobile-small-central-v0` (if mobile-env is installed).
"""

import time
from typing import Any

import gymnasium
import numpy as np
from gymnasium.utils.performance import benchmark_step
from pettingzoo.test import performance_benchmark

import cosmo.envs
from cosmo.envs import aec
from measured import ns3_ready, sized

SECONDS = sized(5, 1)
SIZES = sized((16, 256), (2, 16))


def single(name: str, **settings: Any) -> float:
    """Steps per second; says them per second of CPU time too, which a busy machine takes less."""
    env, cpu = gymnasium.make(name, **settings), time.process_time()
    found = float(benchmark_step(env, SECONDS, seed=0))
    cpu = time.process_time() - cpu
    print(f"{name}: {found:,.0f} steps/s, {found * SECONDS / cpu:,.0f} a CPU second")
    return found


def vector(worlds: int, updater: str) -> float:
    """Decisions per second."""
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
    one = single("cosmo/Dispatch-v0", rate=220)
    single("cosmo/Update-v0", rate=220)
    print("AEC, as PettingZoo tells it:")
    performance_benchmark(aec(rate=220))
    many = 0.0
    for worlds in SIZES:
        for updater in ("aoi-threshold", "never"):
            many = vector(worlds, updater)
            print(f"vector of {worlds}, updater {updater}: {many:,.0f} decisions/s")
    print(f"ratio to a single one: vector of {SIZES[-1]} {many / one:.1f} times")
    if ns3_ready():
        on_ns3 = single("cosmo/Dispatch-v0", rate=220, engine="ns3")
        print(f"ratio to ns-3: single {one / on_ns3:.0f} times, vector {many / on_ns3:,.0f} times")
    try:
        import mobile_env  # noqa: F401
    except ImportError:
        print("mobile-env is left out: it is not installed (pip install mobile-env)")
        return
    theirs = single("mobile-small-central-v0")
    print(f"ratio: single {one / theirs:.1f} times, vector {many / theirs:.0f} times")


if __name__ == "__main__":
    assert cosmo.envs  # registers the names
    main()
