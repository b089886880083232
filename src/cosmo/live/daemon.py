"""The life of a daemon: start, serve, reload, drain, stop."""

import asyncio
import gc
import signal
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from cosmo.errors import InputError
from cosmo.live.clock import DELIVERY
from cosmo.live.config import NodeConfig, load_config
from cosmo.live.logs import Log
from cosmo.live.realtime import new_loop
from cosmo.live.serving import Serving
from cosmo.policy.registry import method

# What a running node can take over; all else needs a restart.
_RELOADABLE = ("method", "behaviour", "limits", "log", "picker")
_SETTLED_S = 0.2  # after this a late timer is no matter of the start any more
_SWITCH_S = 5e-4  # gRPC's own thread must not wait for long while this one decides


def serve(role: str, source: Path, settings: Iterable[str] = ()) -> None:
    """Run a daemon until a signal stops it; InputError if its configuration is wrong."""
    settings = tuple(settings)
    config = _checked(role, source, settings)
    method(config.method.use)  # what cannot be made is refused before anything listens
    with asyncio.Runner(loop_factory=new_loop()) as runner:
        runner.run(_run(config, lambda: _checked(role, source, settings)))


def _checked(role: str, source: Path, settings: Iterable[str]) -> NodeConfig:
    config = load_config(source, settings)
    if config.role != role:
        raise InputError(f"role = {config.role!r}: must be {role!r} for cosmo serve {role}")
    return config


async def _run(config: NodeConfig, read_again: Callable[[], NodeConfig]) -> None:
    loop, stop, log = (
        asyncio.get_running_loop(),
        asyncio.Event(),
        Log(config.name, config.log.level),
    )
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    loop.add_signal_handler(signal.SIGINT, stop.set)
    if config.standby and not await _called(loop, stop, log):
        return
    serving = Serving(config, log)
    loop.add_signal_handler(signal.SIGHUP, lambda: reload(serving, read_again))
    loop.add_signal_handler(signal.SIGUSR1, lambda: _say_facts(serving))
    await serving.start()
    sys.setswitchinterval(_SWITCH_S)
    gc.collect()
    gc.freeze()  # what is here stays: collections need not look at it again
    # By the node's own clock, so that whatever was due before has been counted by then.
    settled_ms = serving.clock.now() + 1000.0 * _SETTLED_S / config.scale
    serving.clock.at(settled_ms, DELIVERY, serving.clock.forget_lateness)
    log.info(
        "serving",
        role=config.role,
        port=serving.port,
        admin=serving.admin.port,
        method=config.method.use,
        boot=serving.boot,
        timerfd=serving.clock.fine,
        tls=bool(config.tls.certificate),
        uvloop="uvloop" in sys.modules,
    )
    try:
        await stop.wait()
        log.info("draining", under_way=serving.node.in_flight)
        await serving.drain()
    finally:
        facts = serving.facts()
        await serving.stop()
        log.info("stopped", **facts)


def _say_facts(serving: Serving) -> None:
    """Log how it went so far; how late timers are is measured anew from now on."""
    serving.log.info("facts", **serving.facts())
    serving.clock.forget_lateness()


async def _called(loop: asyncio.AbstractEventLoop, stop: asyncio.Event, log: Log) -> bool:
    """Wait for SIGUSR1, with everything imported; False if the daemon is to stop instead."""
    go = asyncio.Event()
    gc.collect()
    gc.freeze()  # so that the collection at the start has little to look at
    loop.add_signal_handler(signal.SIGUSR1, go.set)
    log.info("standing by")
    waiting = [loop.create_task(each.wait()) for each in (go, stop)]
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for each in waiting:
        each.cancel()
    return not stop.is_set()


def reload(serving: Serving, read_again: Callable[[], NodeConfig]) -> None:
    """Validate, then swap; a mistake changes nothing, and is said."""
    node, log = serving.node, serving.log
    try:
        config = read_again()
        old, new = serving.config.model_dump(), config.model_dump()
        fixed = [name for name in old if name not in _RELOADABLE and old[name] != new[name]]
        if fixed:
            raise InputError(f"{fixed[0]}: cannot change while the node runs")
        node.reload(config, method(config.method.use))
        serving.config = config
        log.level(config.log.level)
        log.info("reloaded", method=config.method.use)
    except InputError as error:
        log.warning("not reloaded", why=str(error))
