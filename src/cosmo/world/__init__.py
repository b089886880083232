"""The embedded world: an event-driven engine that runs many worlds at once.

`worlds.py` is the door, `kernel.py` the event loop, `CONTRACT.md` what may be assumed of it.
"""

from cosmo.world.batch import Batch, Decisions
from cosmo.world.outcome import Outcome, StatusRecord
from cosmo.world.site import hidden_of, site_of
from cosmo.world.truth import Settled, Truth
from cosmo.world.watch import Watcher
from cosmo.world.worlds import Network, Worlds
