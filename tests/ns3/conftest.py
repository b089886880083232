"""These tests install ns-3 themselves, once for all processes of a run."""

import fcntl

import pytest

from cosmo.errors import InputError
from cosmo.ns3 import library


@pytest.fixture(scope="session", autouse=True)
def ns3():
    folder = library.cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "install.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            library.install()
        except InputError as error:
            pytest.skip(f"ns-3 cannot be installed here: {error}")
        library.compiled_network()
