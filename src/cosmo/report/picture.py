"""A matplotlib figure that notebooks show by themselves, whether or not pyplot is in use."""

import io

from matplotlib.figure import Figure


class Picture(Figure):
    """Shown as it is where it is the last expression of a cell."""

    def _repr_png_(self) -> bytes:
        with io.BytesIO() as buffer:
            self.savefig(buffer, format="png", dpi=100)
            return buffer.getvalue()
