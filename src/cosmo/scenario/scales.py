"""R18: fixed scales that make the components N, W, B, M of a node's state comparable."""

import numpy as np
from numpy.typing import NDArray

from cosmo.scenario.model import Nodes, Scenario, per_node


def en_state_scale(scenario: Scenario) -> NDArray[np.float64]:
    """[EN, 4]: slots, ms, cycles of so many ms at the node's full rate, storage."""
    return _scale(scenario, scenario.en)


def sn_state_scale(scenario: Scenario) -> NDArray[np.float64]:
    """[SN, 4], likewise."""
    return _scale(scenario, scenario.sn)


def _scale(scenario: Scenario, nodes: Nodes) -> NDArray[np.float64]:
    slots = np.array(per_node(nodes.slots, nodes.count), np.float64)
    full_rate = slots * np.array(per_node(nodes.cycles_per_ms, nodes.count))
    wait = np.full(nodes.count, scenario.observation.wait_scale_ms)
    storage = np.array(per_node(nodes.storage_bytes, nodes.count), np.float64)
    work = scenario.observation.work_scale_ms * full_rate
    return np.stack([slots, wait, work, storage], axis=1)
