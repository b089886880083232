"""Methods played: their registry with the yardstick in it, the one loop, episodes and metrics."""

from cosmo.control.evaluate import evaluate
from cosmo.control.play import play
from cosmo.control.registry import BASELINES, METHODS, method
from cosmo.control.simulate import Simulation, simulate, simulate_runs
