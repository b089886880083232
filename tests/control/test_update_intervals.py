"""How often SNs may decide, counted by hand."""

import numpy as np
import pytest

from cosmo import InputError, load, method, simulate
from cosmo.control.update_intervals import IntervalCheck, check_intervals


class _Nodes:
    def __init__(self, *time_ms):
        self.time_ms = np.array(time_ms)

    def __len__(self):
        return len(self.time_ms)


@pytest.mark.parametrize("decisions", [2000, 2200, 5998])
def test_ten_decisions_of_each_sn_in_a_ms_and_a_thousand_at_once_are_allowed(decisions):
    # 2 worlds · (t / 0.1 ms + 1000); the last call brings two more decisions.
    just = ((decisions + 2) / 2 - 1000) * 0.1
    pace = IntervalCheck(method("never"), 1, 2)
    pace.note(_Nodes(*[just] * decisions))
    pace.note(_Nodes())
    pace.note(_Nodes(just, 0.0))
    with pytest.raises(InputError, match=r"method Never: .* at least 0.1 ms on average"):
        pace.note(_Nodes(just))


def test_every_sn_counts():
    pace = IntervalCheck(method("never"), 3, 2)
    pace.note(_Nodes(*[0.0] * 6000))
    with pytest.raises(InputError):
        pace.note(_Nodes(0.0))


def test_intervals_to_choose_from():
    check_intervals([0.1, 1e9])
    for wrong in ([], [0.0999], [1.0, np.inf], [np.nan, 1.0]):
        with pytest.raises(InputError, match=r"intervals_ms = .*: must be 0.1 ms or longer"):
            check_intervals(wrong)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("periodic:interval_ms=1e-9", []),
        ("aoi-threshold", ["utility.update_weight=1e-12"]),
    ],
)
def test_a_rule_that_hardly_waits_is_refused_compiled_as_well(name, settings):
    world = load("paper", ["episode.window_ms=300", "episode.warmup_ms=0", *settings])
    with pytest.raises(InputError, match=r"at least 0\.1 ms on average"):
        simulate(world, name)
