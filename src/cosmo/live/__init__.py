"""Nodes that run: the methods of the registry behind real sockets, or under a virtual clock.

`core_en` and `core_sn` are the nodes themselves, with clock, timers, workers and transport handed
in; they stand on `cosmo.node` and `cosmo.policy` alone. `virtual` plays an episode through them and
takes the simulator's decisions; `serve_en` and `serve_sn` put them behind gRPC; `testbed` compares
the two. Daemons import nothing of the laboratory.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cosmo.live.client import AsyncClient, Client

__all__ = ["AsyncClient", "Client"]


def __getattr__(name: str) -> Any:
    """Clients are loaded when they are asked for: virtual nodes need no gRPC."""
    if name not in __all__:
        raise AttributeError(f"module 'cosmo.live' has no attribute {name!r}")
    from cosmo.live import client

    return getattr(client, name)
