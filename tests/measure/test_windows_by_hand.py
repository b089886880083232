"""When messages are there at the earliest, and start at the latest, where rates change in steps."""

from types import SimpleNamespace

import numpy as np
import pytest

from cosmo.measure import windows


def _way(factors):
    """8 Mbps, 1000 bytes a ms, times a factor for every 100 ms; one hop of 3 ms."""
    table = {name: np.array([[value]]) for name, value in (("up_mbps", 1.0), ("down_mbps", 8.0))}
    links = SimpleNamespace(
        **table, hops=np.array([[1]]), hop_delay_ms=np.array([[3.0]]), packet_bytes=1500.0
    )
    scenario = SimpleNamespace(
        links=SimpleNamespace(first=np.array([1])), fading=SimpleNamespace(period_ms=100.0)
    )
    rates = np.ones((2, 2, len(factors)))
    rates[1, 1] = factors  # of the second link, downwards
    episode = SimpleNamespace(rate_factor=rates)
    return windows._Way(scenario, links, episode, 1, 0, 0)


@pytest.mark.parametrize(
    ("from_ms", "until_ms", "there_ms"),
    [
        (50.0, 99.0, 50.0 + 1.0 + 3.0),
        (100.0, 150.0, 100.0 + 4.0 + 3.0),
        (190.0, 250.0, 190.0 + 4.0 + 3.0),  # sooner than if it waits for the next step
        (198.0, 250.0, 200.0 + 0.5 + 3.0),  # it waits for the faster one
        (198.0, 199.0, 198.0 + 4.0 + 3.0),
        (200.0, 900.0, 200.0 + 0.5 + 3.0),
        (999.0, 999.0, 999.0 + 0.5 + 3.0),  # the last step has no end
    ],
)
def test_the_earliest_arrival_is_over_all_starts(from_ms, until_ms, there_ms):
    given = np.array([from_ms]), np.array([until_ms]), np.array([1000.0])
    assert _way([1.0, 0.25, 2.0]).earliest_ms(*given).tolist() == [there_ms]


@pytest.mark.parametrize(
    ("from_ms", "until_ms", "start_ms"),
    [
        (0.0, 50.0, 46.0),
        (0.0, 104.0, 100.0),  # at the end of the first step, which is still its rate
        (0.0, 106.0, 100.0),
        (0.0, 108.0, 101.0),
        (0.0, 900.0, 896.5),
        (100.0, 106.0, -np.inf),  # 99 is before that step
    ],
)
def test_the_latest_start_is_over_all_steps(from_ms, until_ms, start_ms):
    given = np.array([from_ms]), np.array([until_ms]), np.array([1000.0])
    assert _way([1.0, 0.25, 2.0]).latest_ms(*given).tolist() == [start_ms]


def test_a_rate_that_does_not_change_and_rows_of_different_steps():
    steady, size = _way([]), np.array([1000.0, 3000.0])
    assert steady.earliest_ms(np.array([5.0, 700.0]), np.full(2, 900.0), size).tolist() == [9, 706]
    changing = _way([1.0, 0.25])
    found = changing.earliest_ms(np.array([5.0, 150.0]), np.array([6.0, 160.0]), size)
    assert found.tolist() == [9.0, 150.0 + 12.0 + 3.0]
