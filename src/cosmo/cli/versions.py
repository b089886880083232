"""Versions of the package, and on request of its engines and of what it computes with."""

import sys
from importlib import metadata

import cosmo

_LIBRARIES = ("numpy", "numba", "jax", "jaxlib", "polars")
_ENGINES = {"embedded": "numba", "ns3": "ns3", "live": "grpcio"}  # what each needs


def versions(everything: bool = False) -> list[str]:
    """Lines; nothing is imported, so that they are there without any extra."""
    lines = [f"cosmo {cosmo.__version__}"]
    if everything:
        lines.append(f"python {sys.version.split()[0]}")
        lines += [f"{name} {_version(name)}" for name in _LIBRARIES]
        lines += [f"engine {name}: {need} {_version(need)}" for name, need in _ENGINES.items()]
    return lines


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"
