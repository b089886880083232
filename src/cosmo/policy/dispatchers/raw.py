"""The raw status of SNs: N, W, B, M as they were sent, an idle SN while nothing was (R14)."""

import numpy as np
from numpy.typing import NDArray

from cosmo.node import DispatchObservation, Site


def raw_states(site: Site, tasks: DispatchObservation) -> NDArray[np.float64]:
    """[row, k, (N, W, B, M)]; of any SN where there is none."""
    return np.where(tasks.heard[:, :, None], tasks.status, site.sn.idle_state[tasks.sn])
