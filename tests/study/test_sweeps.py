"""What can be swept, and what cannot."""

import pytest

from cosmo import InputError
from cosmo.study import plan_checked

MINE = """
import numpy as np
from cosmo import Dispatcher, Method
class A(Method, Dispatcher):
    'Local.'
    def __init__(self, margin: float = 1.0, other: float = 0.0) -> None:
        if margin > 5:
            raise ValueError("too much")
    def dispatcher(self, site):
        return self
    def decide(self, tasks):
        return np.zeros(len(tasks), int)
"""


def _plan(methods, sweep):
    return plan_checked({"name": "x", "compare": [{"methods": methods, "sweep": sweep}]})


@pytest.mark.parametrize(
    ("field", "axis"), [("workload.rate", "rates"), ("workload.arrivals", "arrivals")]
)
def test_the_load_is_an_axis_already(field, axis):
    with pytest.raises(InputError, match=f"sweep.field = '{field}': is an axis already: {axis}"):
        _plan(["random"], {"field": field, "values": [50.0]})


def test_parameters_of_a_method_of_one_s_own(tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    spec = f"{tmp_path / 'mine.py'}:A"
    sweep = {"field": "method.margin", "values": [1.0, 2.0]}
    names = [name for *_, name in _plan([spec], sweep).points()]
    assert set(names) == {f"{spec}:margin=1.0", f"{spec}:margin=2.0"}
    names = [name for *_, name in _plan([f"{spec}:other=3"], sweep).points()]
    assert set(names) == {f"{spec}:other=3,margin=1.0", f"{spec}:other=3,margin=2.0"}
    with pytest.raises(InputError, match=r"cannot be made \(ValueError: too much\)"):
        _plan([spec], {"field": "method.margin", "values": [9.0]})


def test_a_field_that_there_is_not():
    with pytest.raises(InputError, match=r"utility.nothing: unknown field"):
        _plan(["random"], {"field": "utility.nothing", "values": [1.0]})
