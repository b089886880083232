"""Where rules are played: on the CPU unless the user asks for a GPU.

The choice is an environment variable, so that the processes of a study have it too.
"""

import os

from cosmo.errors import InputError

VARIABLE = "COSMO_DEVICE"
DEVICES = ("cpu", "gpu")


def chosen_device(given: str | None = None) -> str:
    """The device that was asked for, here or by `COSMO_DEVICE`.

    Args:
        given: "cpu" or "gpu", or None for what the environment says.

    Returns:
        "cpu" or "gpu".

    Raises:
        InputError: In one line, for any other name.

    """
    name = os.environ.get(VARIABLE, "cpu") if given is None else given
    if name not in DEVICES:
        raise InputError(f"device = {name!r}: must be {' or '.join(DEVICES)}")
    return name


def environment_of(device: str | None) -> dict[str, str]:
    """Environment variables by which this process and those that it starts play on a device.

    Args:
        device: "cpu" or "gpu", or None for what the environment says already.

    Returns:
        Values by name, none for None.

    Raises:
        InputError: In one line, for any other name.

    """
    return {} if device is None else {VARIABLE: chosen_device(device)}
