"""The process of one world on ns-3: `python -m cosmo.ns3.worker <socket>`."""

import os
import pickle
import select
import socket
import sys
import threading
from dataclasses import fields

from cosmo.errors import InputError
from cosmo.ns3 import wire
from cosmo.ns3.network import Ns3Network
from cosmo.world import Worlds


def main() -> None:
    """Serve one batch after the other until the owner is gone."""
    link = socket.socket(fileno=int(sys.argv[1]))
    threading.Thread(target=_end_with, args=(link.fileno(),), daemon=True).start()
    worlds: Worlds | None = None
    while True:
        try:
            kind, payload = wire.receive(link)
        except (EOFError, OSError):
            break
        try:
            if kind == wire.BEGIN:
                scenario, episode, dimensions, rides = pickle.loads(payload)  # of our own owner
                network = Ns3Network(scenario, episode)
                worlds = Worlds(scenario, [episode], dimensions, [network], rides)
                wire.send(link, wire.READY)
                continue
            assert worlds is not None
            if kind == wire.STEP:
                wire.answer_into(worlds.turn, payload)
                turn = worlds.advance_buffers()
                wire.send(link, wire.TURN, wire.turn_bytes(turn, worlds.generated))
            elif kind == wire.BEHIND_ALL:
                truth = worlds.truth(behind_all=True)
                told = pickle.dumps((truth.delay_ms[0], truth.feasible[0]))
                wire.send(link, wire.RESULT, told)
            else:
                outcome = worlds.outcome(0)
                parts = {
                    field.name: getattr(outcome, field.name)
                    for field in fields(outcome)
                    if field.name != "episode"
                }
                wire.send(link, wire.RESULT, pickle.dumps(parts))
        except (InputError, RuntimeError, ValueError, AssertionError) as error:
            wire.send(link, wire.ERROR, str(error).encode())
    # ns-3 takes itself apart at an ordinary exit, in an order that nobody can rely on.
    sys.stderr.flush()
    os._exit(0)


def _end_with(link: int) -> None:
    """The owner may end while the simulator runs: nobody would ever ask again."""
    watch = select.poll()
    watch.register(link, select.POLLHUP)
    watch.poll()
    os._exit(0)


if __name__ == "__main__":
    main()
