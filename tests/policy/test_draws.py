"""Random draws of tasks: the same for every order of asking, and no dearer for high numbers."""

import tracemalloc

import numpy as np
import pytest

from cosmo import load, method
from cosmo.policy.draws import BLOCK, DrawPerTask
from cosmo.seeds import Purpose
from observations import site, tasks

CAMPUS = load("campus")
DRAWING = (
    *("random", "power-of-d", "admission-control", "cosmo-next"),
    *("self-tracking", "never", "prequal", "jbt", "lsq", "in-flight", "leaky-bucket"),
)
BEYOND = 2**31 + 12_345


@pytest.mark.parametrize("each", [1, 3])
def test_the_draws_of_a_block_are_those_of_the_stream(each):
    draws = DrawPerTask(site(CAMPUS, episodes=2), each)
    first = draws.at_least(4000)
    size = draws.block(0, 0, 0).shape[2]
    assert size == BLOCK
    assert size & (size - 1) == 0
    for task in (0, 1, size - 1, size, 3 * size + 7, 5):
        for world, en in ((1, 0), (0, 1)):
            found = draws.block(world, en, task // size)[world, en, task & (size - 1)]
            assert found.tolist() == first[world, en, task].tolist()


def test_ens_have_streams_of_their_own_and_the_first_has_its_world_s():
    """R41: ENs count their own tasks, and do not draw the same for the same number."""
    here = site(CAMPUS)
    drawn = DrawPerTask(here).at_least(500)[0, :, :500, 0]
    assert len(np.unique(drawn)) == drawn.size
    assert abs(np.corrcoef(drawn)[np.triu_indices(len(drawn), 1)]).max() < 0.2
    [random] = here.random(Purpose.DISPATCHER)
    assert drawn[0].tolist() == random.random(500).tolist()


@pytest.mark.parametrize("name", DRAWING)
def test_tasks_beyond_2_to_31_take_no_more_memory_than_the_first(name):
    made = method(name)
    dispatcher = made.dispatcher(site(CAMPUS))
    dispatcher.decide(tasks(CAMPUS, carries=made.carries))
    tracemalloc.start()
    try:
        for task in (BEYOND, BEYOND + 1, BEYOND + 5000, 5_000_000, 2**62):
            dispatcher.decide(tasks(CAMPUS, carries=made.carries, task=task))
        _, most_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most_bytes < 2_000_000


def test_decisions_go_on_by_the_same_stream_from_block_to_block():
    """Whoever asks for all of them at once gets the same as a node that goes from task to task."""
    at_once = method("random").dispatcher(site(CAMPUS))
    drawn = at_once.with_draws(9 * BLOCK).draws
    one_by_one = method("random").dispatcher(site(CAMPUS))
    numbers = range(8 * BLOCK - 100, 8 * BLOCK + 100)
    found = [int(one_by_one.decide(tasks(CAMPUS, task=number))[0]) for number in numbers]
    actions = CAMPUS.links.most_sns + 2
    assert found == [int(drawn[0, 0, number, 0] * actions) for number in numbers]
    assert len(set(found)) == actions
    again = [int(one_by_one.decide(tasks(CAMPUS, task=number))[0]) for number in numbers]
    assert again == found


def test_the_low_bits_of_a_number_are_its_place():
    draws = DrawPerTask(site(CAMPUS))
    sizes = {draws.at_least(count).shape[2] for count in (1, 1024, 1025, 5000, 70_000)}
    assert all(np.log2(size) == int(np.log2(size)) for size in sizes)
