"""Ctrl-C, and a kill that reaches one process only: nobody is left behind."""

import os
import signal

import pytest

from slow import alive, check_interrupted, slow_simulation, wait_until


@pytest.mark.parametrize("send", [os.kill, os.killpg])
def test_an_interrupt_ends_the_processes_of_all_worlds(tmp_path, send):
    cosmo = slow_simulation(tmp_path, "--engine", "ns3")
    assert len(alive(cosmo.pid)) == 2
    send(cosmo.pid, signal.SIGINT)
    check_interrupted(cosmo, tmp_path)
    wait_until(lambda: not alive(cosmo.pid), "the world's process has ended")
