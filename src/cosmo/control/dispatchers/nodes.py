"""What every EN knows of the nodes and links from the scenario, as arrays."""

import numpy as np
from numpy.typing import NDArray

from cosmo.scenario import Scenario, per_link, per_node
from cosmo.world import DispatchObservation

Floats = NDArray[np.float64]

_BYTES_PER_MS = 125.0  # in one Mbps


class KnownNodes:
    """Speeds and sizes, and what follows from them for a batch of tasks."""

    def __init__(self, scenario: Scenario) -> None:
        en, sn, backhaul = scenario.en, scenario.sn, scenario.backhaul
        self.en_rate = np.array(per_node(en.cycles_per_ms, en.count))
        self.en_full_rate = self.en_rate * np.array(per_node(en.slots, en.count))
        self.sn_slots = np.array(per_node(sn.slots, sn.count), np.int64)
        self.sn_rate = np.array(per_node(sn.cycles_per_ms, sn.count))
        self.sn_full_rate = self.sn_rate * self.sn_slots
        self.sn_storage = np.array(per_node(sn.storage_bytes, sn.count))
        self.sn_places = np.array(per_node(sn.queue_capacity, sn.count))
        self._down = np.array(per_link(backhaul.down_mbps, en.count, sn.count)) * _BYTES_PER_MS
        self._backhaul = backhaul
        result = np.full((en.count, 1), backhaul.result_bytes)
        self.result_ms = self._transfer_ms(result, self._down)  # [EN, SN] on an idle link (R13)
        self._floor = scenario.storage.reservation_floor_bytes

    def reservation(self, tasks: DispatchObservation) -> Floats:
        """R9."""
        return np.maximum(tasks.input_bytes, self._floor)

    def upload_ms(self, tasks: DispatchObservation) -> Floats:
        """[row, SN] from now until the input is at the SN, behind what the link holds (R13)."""
        rate = tasks.up_link_mbps[:, :, 0] * _BYTES_PER_MS
        return tasks.up_backlog_ms + self._transfer_ms(tasks.input_bytes[:, None], rate)

    def return_ms(self, tasks: DispatchObservation) -> Floats:
        """[row, SN] from the finish at the SN until the result is back, on an idle link (R13)."""
        back: Floats = self.result_ms[tasks.en]
        return back

    def _transfer_ms(self, size: Floats, rate: Floats) -> Floats:
        hops = self._backhaul.hops
        last_packet = np.minimum(size, self._backhaul.packet_bytes)
        delay: Floats = (
            size / rate + hops * self._backhaul.hop_delay_ms + (hops - 1) * last_packet / rate
        )
        return delay
