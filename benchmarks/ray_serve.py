"""Ray Serve's own router (power of two choices) and `CosmoRouter`, in one run.

    python benchmarks/ray_serve.py [--small] [--load 0.9] [--methods in-flight,leaky-bucket]

Needs Ray Serve (`pip install 'ray[serve]'`; `make test-integrations` has it). One deployment for
each router, with equal replicas that work on `SLOTS` requests at a time. How long a request takes
is lognormal and known to nobody before it ends. Several clients, each a process with a router of
its own, send Poisson requests. Windows of the routers alternate and have the same requests. A
request succeeds if its answer comes within `DEADLINE` mean service times. The table is Markdown:
the mean of all windows, and the lowest and highest.
"""

import argparse
import asyncio
import time
from typing import Any

import numpy as np

from cosmo.study.ray_cluster import start_here
from measured import SMALL, sized

_OPTIONS = argparse.ArgumentParser()
_OPTIONS.add_argument("--small", action="store_true")
_OPTIONS.add_argument("--load", type=float, default=0.9)
_OPTIONS.add_argument("--methods", default="in-flight,self-tracking")
REPLICAS, SLOTS, CLIENTS = sized(6, 2), 2, 2
SERVICE_MS, SPREAD, DEADLINE = sized(250.0, 50.0), 1.0, 4.0  # SPREAD of the logarithm
WINDOW_S, WINDOWS = sized(20.0, 3.0), sized(6, 1)
DEFAULT = "Ray's power of two choices"


class Service:
    """A replica: requests take as long as they say, so many at a time, in order of arrival."""

    def __init__(self, slots: int) -> None:
        self._slots = asyncio.Semaphore(slots)

    async def __call__(self, seconds: float) -> None:
        """Work on a request."""
        async with self._slots:
            await asyncio.sleep(seconds)


class Client:
    """Sends requests at given times, whatever becomes of them, through a router of its own."""

    def __init__(self) -> None:
        self._handles: dict[str, Any] = {}

    async def play(self, name: str, at_s: list[float], seconds: list[float]) -> list[float]:
        """[request] seconds until the answer."""
        from ray import serve

        if name not in self._handles:
            self._handles[name] = serve.get_app_handle(name)
            await self._handles[name].remote(0.0)
        handle, start = self._handles[name], time.monotonic() + 0.1

        async def one(when: float, work: float) -> float:
            await asyncio.sleep(start + when - time.monotonic())
            sent = time.monotonic()
            await handle.remote(work)
            return time.monotonic() - sent

        return list(await asyncio.gather(*map(one, at_s, seconds)))


def requests(window: int, client: int, load: float) -> tuple[list[float], list[float]]:
    """Times and demands in s, the same for every router."""
    random = np.random.default_rng([window, client])
    rate = load * REPLICAS * SLOTS / (SERVICE_MS / 1000.0) / CLIENTS
    at_s = np.sort(random.uniform(0.0, WINDOW_S, random.poisson(rate * WINDOW_S)))
    work = random.lognormal(-0.5 * SPREAD**2, SPREAD, len(at_s)) * SERVICE_MS / 1000.0
    return at_s.tolist(), work.tolist()


def deploy(names: list[str]) -> dict[str, str]:
    """{router: name of its application}."""
    from ray import serve

    from cosmo.integrations.ray_serve import router_config

    serve.start(proxy_location="Disabled")  # clients have handles
    found = {}
    for number, name in enumerate([DEFAULT, *names]):
        options: dict[str, Any] = {"num_replicas": REPLICAS, "max_ongoing_requests": 1000,
                                   "ray_actor_options": {"num_cpus": 0}}  # fmt: skip
        if name != DEFAULT:
            options["request_router_config"] = router_config(
                name, slots=SLOTS, service_ms=SERVICE_MS, deadline_ms=DEADLINE * SERVICE_MS
            )
        found[name] = f"router-{number}"
        made = serve.deployment(**options)(Service).bind(SLOTS)
        serve.run(made, name=found[name], route_prefix=None)
    return found


def measured(load: float, names: list[str]) -> dict[str, list[tuple[float, float, float]]]:
    """{router: (success, median delay in ms, 99th percentile in ms) of each window}."""
    import ray

    apps = deploy(names)
    made: Any = ray.remote(num_cpus=0)(Client)
    clients: list[Any] = [made.remote() for _ in range(CLIENTS)]
    found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in apps}
    for window in range(WINDOWS):
        order = list(apps) if window % 2 == 0 else list(apps)[::-1]
        for name in order:
            played = [
                each.play.remote(apps[name], *requests(window, number, load))
                for number, each in enumerate(clients)
            ]
            delay = 1000.0 * np.concatenate(ray.get(played))
            success = float((delay <= DEADLINE * SERVICE_MS).mean())
            found[name].append((success, *np.percentile(delay, [50, 99]).tolist()))
    return found


def main() -> None:
    """A row for each router."""
    given = _OPTIONS.parse_args()
    try:
        import ray
        from ray import serve  # noqa: F401
    except ImportError:
        print("left out: Ray Serve is not installed (pip install 'ray[serve]')")
        return
    start_here(2, log_to_driver=False, logging_level="ERROR")
    try:
        found = measured(given.load, given.methods.split(","))
    finally:
        ray.shutdown()
    print(
        f"{REPLICAS} replicas of {SLOTS} slots, {CLIENTS} routers, load {given.load:g}, {WINDOWS}"
        f" windows of {WINDOW_S:g} s{', small' if SMALL else ''}\n\n"
        "| router | success | from … to | median delay | p99 |\n|---|---|---|---|---|"
    )
    for name, rows in found.items():
        success, median, late = (np.array(column) for column in zip(*rows, strict=True))
        print(f"| {name} | {success.mean():.3f} | {success.min():.3f} … {success.max():.3f} |"
              f" {median.mean():.0f} ms | {late.mean():.0f} ms |")  # fmt: skip


if __name__ == "__main__":
    main()
