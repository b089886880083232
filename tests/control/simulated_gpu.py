"""Plays tiny worlds in Numba's simulator of a GPU, for `test_gpu`, with all code as plain Python.

Started with NUMBA_ENABLE_CUDASIM=1; writes what became of every task to a file.
"""

import sys

import numba
import numpy as np


def _plain(function):
    function.py_func = function
    return function


# Threads of the simulator are Python's: what they call must be Python, too.
vars(numba)["njit"] = lambda **_: _plain

from cosmo import load, play  # noqa: E402
from cosmo.workload import episode  # noqa: E402


def main() -> None:
    out, seed, *cases = sys.argv[1:]
    found = {}
    for number, case in enumerate(cases):
        name, *settings = case.split(";")
        scenario = load("campus", settings)
        episodes = [episode(scenario, int(seed), world) for world in range(3)]
        remarks: set[str] = set()
        with np.errstate(all="ignore"):
            played = play(scenario, name, episodes, int(seed), remarks=remarks, device="gpu")
        assert not [each for each in remarks if "played on the CPU" in each], remarks
        for world, each in enumerate(played):
            for field in ("action", "outcome", "decided_ms", "finished_ms", "noticed_ms"):
                found[f"{number}-{world}-{field}"] = getattr(each, field)
            counted = [each.updates, each.rides, each.update_decisions, each.status_bytes]
            found[f"{number}-{world}-counted"] = np.array(counted)
    np.savez(out, **found)


main()
