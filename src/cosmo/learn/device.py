"""Where JAX computes: on the CPU with one thread, unless the user asks for a GPU.

The gradient of a weight is a long sum over rows. XLA's CPU client cuts such a sum into as many
pieces as it has threads, so another number of CPUs adds up in another order. No flag of XLA has a
say in it; the number of threads has, which the client reads from PJRT_NPROC when JAX is first used.

Where there is a GPU, JAX takes it by default, with other bits again and, for networks as small as
ours, no gain. So training names its device, and records it.
"""

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, get_args

from cosmo.errors import InputError

Device = Literal["cpu", "gpu"]

_THREADS, _PLATFORMS = "PJRT_NPROC", "JAX_PLATFORMS"


def one_thread() -> None:
    """Ask for one thread, unless the user has asked for a number of their own.

    Warns where it comes too late: JAX has been used already, with a thread for every CPU.
    """
    if _THREADS in os.environ:
        return
    os.environ[_THREADS] = "1"
    if _at_work():
        warnings.warn(
            "JAX was used before cosmo.learn was imported: what is trained will depend on the"
            f" number of CPUs; import cosmo.learn first, or set {_THREADS}=1",
            stacklevel=3,
        )


def checked_device(name: str) -> Device:
    """The device of this name; InputError for any other name, or where JAX has no such device."""
    known = get_args(Device)
    if name not in known:
        raise InputError(f"device = {name!r}: must be {' or '.join(known)}")
    if name == "gpu":
        import jax

        try:
            jax.devices("gpu")
        except RuntimeError:
            raise InputError(
                "device = 'gpu': JAX finds no GPU on this machine; it needs one, and a build of"
                " JAX for it (pip install 'jax[cuda12]')"
            ) from None
    return "gpu" if name == "gpu" else "cpu"


def only_cpu() -> None:
    """Keep JAX off the GPUs for the rest of this process, which spares it their start-up.

    For processes of our own: in a user's process JAX may have other work on the GPU, and
    `computing_on` is enough. Without effect if JAX is at work already.
    """
    if not _at_work():
        os.environ[_PLATFORMS] = "cpu"
        if "jax" in sys.modules:
            import jax

            jax.config.update("jax_platforms", "cpu")  # type: ignore[no-untyped-call]


@contextmanager
def computing_on(device: Device) -> Iterator[None]:
    """While this lasts, JAX puts its arrays and computations on this device."""
    import jax

    with jax.default_device(jax.local_devices(backend=device)[0]):
        yield


def _at_work() -> bool:
    """Whether JAX has started its client; importing it alone does not."""
    if "jax" not in sys.modules:
        return False
    from jax._src import xla_bridge  # nothing public tells

    return bool(xla_bridge.backends_are_initialized())
