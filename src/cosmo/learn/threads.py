"""One thread for XLA, so that bits do not depend on how many CPUs a process may use.

The gradient of a weight is a long sum over rows. XLA's CPU client cuts such a sum into as many
pieces as it has threads, so another number of CPUs adds up in another order. No flag of XLA has a
say in it; the number of threads has, which the client reads from PJRT_NPROC when JAX is first used.
"""

import os
import sys
import warnings

_SETTING = "PJRT_NPROC"


def one_thread() -> None:
    """Ask for one thread, unless the user has asked for a number of their own.

    Warns where it comes too late: JAX has been used already, with a thread for every CPU.
    """
    if _SETTING in os.environ:
        return
    os.environ[_SETTING] = "1"
    if _at_work():
        warnings.warn(
            "JAX was used before cosmo.learn was imported: what is trained will depend on the"
            f" number of CPUs; import cosmo.learn first, or set {_SETTING}=1",
            stacklevel=3,
        )


def _at_work() -> bool:
    """Whether JAX has started its client; importing it alone does not."""
    if "jax" not in sys.modules:
        return False
    from jax._src import xla_bridge  # nothing public tells

    return bool(xla_bridge.backends_are_initialized())
