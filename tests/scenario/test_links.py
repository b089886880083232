"""Which ENs and SNs are linked, and what each link is like (R30)."""

import numpy as np
import pytest

from cosmo import InputError, load
from cosmo.scenario import changed, scenario_from
from cosmo.world import site_of


def test_by_default_everyone_reaches_everyone_over_equal_links():
    links = load("campus").links
    assert links.reach.tolist() == [[0, 1]] * 3
    assert (links.en.tolist(), links.sn.tolist()) == ([0, 0, 1, 1, 2, 2], [0, 1] * 3)
    assert set(links.hops) == {2}
    assert set(links.up_mbps) == {96.0}


def test_a_list_for_each_en_and_links_that_differ():
    scenario = load(
        "campus",
        [
            "backhaul.reach=[[1, 0], [1], [0, 1]]",
            "backhaul.links=[{sn = 1, hops = 4, hop_delay_ms = 3}, {en = 1, sn = -1, hops = 7}]",
            "backhaul.up_mbps=[[1, 2], [3, 4], [5, 6]]",
        ],
    )
    links = scenario.links
    assert links.reach.tolist() == [[0, 1], [1, -1], [0, 1]]
    assert links.first.tolist() == [0, 2, 3, 5]
    assert links.hops.tolist() == [2, 4, 7, 2, 4]
    assert links.hop_delay_ms.tolist() == [1.0, 3.0, 3.0, 1.0, 3.0]
    assert links.up_mbps.tolist() == [1.0, 2.0, 4.0, 5.0, 6.0]
    assert [each.tolist() for each in links.by_sn] == [[0, 2, 5], [0, 3, 1, 2, 4]]
    assert (links.most_sns, links.most_ens) == (2, 3)
    assert scenario_from(scenario.model_dump()) == scenario
    site = site_of(scenario)
    assert not site.links.all_alike
    ens, columns = site.links.reached_by
    assert ens.tolist() == [[0, 2, -1], [0, 1, 2]]
    assert columns.tolist() == [[0, 0, -1], [1, 0, 1]]


def test_the_nearest_and_a_cloud():
    where = "en.positions=[[0, 0], [10, 0]]", "sn.positions=[[9, 1], [1, 1], [4, 0], [99, 0]]"
    counts = "en.count=2", "sn.count=4"
    scenario = load("paper", [*counts, *where, "backhaul.reach={nearest = 2, also = [-1]}"])
    assert scenario.links.reach.tolist() == [[1, 2, 3], [0, 2, 3]]
    city = load("city").links
    assert city.reach.shape == (300, 7)
    assert (city.reach[:, -1] == 59).all()
    assert set(city.hops[city.sn == 59]) == {4}
    assert np.bincount(city.sn).min() > 5  # nobody is left out


def test_nodes_that_differ():
    scenario = load("campus", ["sn.unlike=[{at = -1, slots = 9}, {at = [0], storage_bytes = 5}]"])
    assert scenario.sn.each("slots") == (4, 9)
    assert scenario.sn.each("storage_bytes") == (5.0, 480000.0)
    assert scenario.capacity_cycles_per_ms == 3 * 36000.0 + 13 * 27000.0


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("backhaul.reach=[[0], [1]]", "backhaul.reach: has 2 lists of SNs, must be"),
        ("backhaul.reach=[[0], [2], [0]]", r"backhaul.reach.1 = \[2\]: must be SNs from 0 to 1"),
        ("backhaul.reach=[[0], [], [0]]", r"backhaul.reach.1 = \[\]: .* at least one"),
        ("backhaul.reach={nearest = 3}", "backhaul.reach.nearest = 3: must be from 1 to 2"),
        ("backhaul.reach={nearest = 1, also = [5]}", "backhaul.reach.also = 5: must be from 0"),
        ("backhaul.links=[{sn = 3, hops = 2}]", "backhaul.links.0.sn = 3: must be from 0 to 1"),
        ("sn.unlike=[{at = 2, slots = 2}]", "sn.unlike.at = 2: must be from 0 to 1"),
        ("en.positions=[[0, 0]]", 'en.positions = .*: must be "spread" or a list of 3'),
        ("en.count=100001", "en.count = 100001: must be less than or equal to 100000"),
    ],
)
def test_what_is_wrong_is_one_line(setting, said):
    with pytest.raises(InputError, match=said) as error:
        load("campus", [setting])
    assert "\n" not in str(error.value)


def test_a_link_that_is_not_there_cannot_differ():
    near = load("campus", ["backhaul.reach=[[0], [1], [0]]"])
    with pytest.raises(InputError, match=r"links\.0: EN 0 does not reach SN 1"):
        changed(near, ["backhaul.links=[{en = 0, sn = 1, hops = 3}]"])
