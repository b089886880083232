"""The same world on the real ns-3: packets over 802.11n and point-to-point links.

Queues, caches, decisions and labels are those of the embedded engine, the very same code; only what
travels does so in ns-3 (`cpp/`). The simulator is one a process, so every world has a process of
its own (`worker.py`), owned and watched by `process.py`; `worlds.py` is the door.
"""

from cosmo.ns3.worlds import Ns3Worlds
