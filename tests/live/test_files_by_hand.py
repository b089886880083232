"""What files of daemons and plans may say, and what nodes are told by them."""

import pytest

from cosmo import InputError, load
from cosmo.live import wire
from cosmo.live.bed.plan import check_playable, load_bed_plan
from cosmo.live.config import changed_config, load_config
from cosmo.live.items import Fate
from cosmo.live.sites import configs_of, site_of_node


def test_the_codes_of_fates_are_those_of_the_wire():
    told = wire.POOL.FindEnumTypeByName(f"{wire.PACKAGE}.Fate").values_by_name
    assert {fate.name: int(fate) for fate in Fate} == {
        name: value.number for name, value in told.items() if value.number
    }


@pytest.mark.parametrize(
    ("field", "least", "below"),
    [
        ("node.slots", 1, 0),
        ("node.cycles_per_ms", 1e-9, 0.0),
        ("method.seed", 0, -1),
        ("neighbours", 0, -1),
        ("links.hop_delay_ms", 0.0, -1e-9),
        ("behaviour.update_burst", 1.0, 0.99),
    ],
)
def test_the_least_that_a_daemon_s_file_may_say(field, least, below):
    config = load_config("en")
    changed_config(config, {field: least})
    with pytest.raises(InputError, match=field.replace(".", r"\.")):
        changed_config(config, {field: below})


def test_what_a_daemon_s_file_must_not_say():
    config = load_config("en")
    changed_config(config, {"behaviour.update_burst": 1e6})
    changed_config(config, {"handler.kind": "python", "handler.target": "a.b:c"})
    peer = config.peers[0].model_dump()
    for fields, why in (
        ({"behaviour.update_burst": 1e6 + 1}, "update_burst"),
        ({"handler.kind": "python", "handler.target": "a.b"}, "must look like module:function"),
        ({"handler.kind": "python", "handler.target": "a:b:c"}, "must look like module:function"),
        ({"handler.kind": "python"}, "must be given unless kind is emulate"),
        ({"handler.target": "a:b"}, "must be given unless kind is emulate"),
        ({"handler.kind": "command", "handler.target": "'"}, "must be a command line"),
        ({"tls.certificate": "c"}, "must come with key and authority"),
        ({"peers": []}, "must name at least one node"),
        ({"peers": [peer, peer]}, "every one must have a name of its own"),
        ({"peers": [{**peer, "address": ""}]}, "peers.0.address: an SN must have one"),
    ):
        with pytest.raises(InputError) as raised:
            changed_config(config, fields)
        assert why in str(raised.value)
    changed_config(load_config("sn"), {"orca": True, "tls.certificate": ""})


@pytest.mark.parametrize(
    ("field", "right", "wrong"),
    [
        ("rates", ["[1e6]", "[0.1]"], ["[1000001]", "[0]"]),
        ("seeds", ["[0]", "[9223372036854775807]"], ["[-1]", "[9223372036854775808]", "[]"]),
        ("scales", ["[0.1]", "[1000]"], ["[0.09]", "[1001]", "[]"]),
        ("episodes", ["1", "1000"], ["0", "1001"]),
        ("fifo", ["0", "50"], ["-1", "51"]),
        ("most_late_ms", ["1000", "0.1"], ["0", "1001"]),
        ("within", ["1", "0.1"], ["0", "1.1"]),
        ("methods", ['["all-local"]'], ["[]"]),
    ],
)
def test_the_bounds_of_a_plan(field, right, wrong):
    for value in right:
        load_bed_plan("one", [f"{field}={value}"])
    for value in wrong:
        with pytest.raises(InputError, match=field):
            load_bed_plan("one", [f"{field}={value}"])


def test_what_daemons_cannot_stand_for():
    check_playable(load("campus", ["en.count=16", "sn.count=16"]))
    for setting, why in (
        ("en.count=31", "has 33 nodes, must have at most 32"),
        ("fading.factors=[0.9, 1.0]", "has links that fade"),
        ("background.rates=[0, 1]", "background load"),
        ("status.loss_probability=0.1", "statuses that are lost or late"),
        ("status.jitter_ms=0.1", "statuses that are lost or late"),
    ):
        with pytest.raises(InputError, match=why):
            check_playable(load("campus", [setting]))


def test_what_a_node_is_told_of_itself_and_its_peers():
    peers = [
        {**load_config("en").peers[0].model_dump(), "name": f"sn{k}", "up_mbps": 10.0 + k}
        for k in range(2)
    ]
    for neighbours in (0, 2):
        config = changed_config(load_config("en"), {"neighbours": neighbours, "peers": peers})
        site = site_of_node(config)
        assert (len(site.en), len(site.sn)) == (1 + neighbours, 2)
        assert site.links.reach.tolist() == [[0, 1]] * (1 + neighbours)
        assert site.links.up_mbps.tolist() == [[10.0, 11.0]] * (1 + neighbours)
    site = site_of_node(changed_config(load_config("sn"), {"neighbours": 2}))
    assert (len(site.en), len(site.sn)) == (1, 1)
    assert site.links.reach.tolist() == [[0]]
    assert (site.links.up_mbps[0, 0], site.links.down_mbps[0, 0]) == (96.0, 192.0)


def test_daemons_of_a_scenario_have_ports_one_after_another():
    campus = load("campus", ["sn.count=3", "backhaul.reach=[[0, 2], [1], [0, 1, 2]]"])
    en = changed_config(load_config("en"), {"admin": "h:9000"})
    ens, sns = configs_of(campus, en, load_config("sn"))
    assert [each.listen for each in ens] == [f"127.0.0.1:{7100 + k}" for k in range(3)]
    assert [each.admin for each in ens] == ["h:9000", "h:9001", "h:9002"]
    assert [each.admin for each in sns] == [""] * 3
    assert {each.neighbours for each in (*ens, *sns)} == {2}
    assert [each.number for each in ens] == [0, 1, 2]
    changed_config(ens[0], {"number": 2})
    with pytest.raises(InputError, match="number = 3: must be at most neighbours"):
        changed_config(ens[0], {"number": 3})
    reached = [[(peer.name, peer.address) for peer in each.peers] for each in ens]
    addresses = [("sn0", "127.0.0.1:7200"), ("sn1", "127.0.0.1:7201"), ("sn2", "127.0.0.1:7202")]
    assert reached == [[addresses[0], addresses[2]], [addresses[1]], addresses]
    told = [[peer.name for peer in each.peers] for each in sns]
    assert told == [["en0", "en2"], ["en1", "en2"], ["en0", "en2"]]
    free = changed_config(load_config("sn"), {"listen": "127.0.0.1:0"})
    assert {each.listen for each in configs_of(campus, en, free)[1]} == {"127.0.0.1:0"}
    for field in ("hops = 4", "hop_delay_ms = 3"):
        uneven = load("campus", [f"backhaul.links=[{{sn = 1, {field}}}]"])
        with pytest.raises(InputError, match=f"{field.split()[0]}: must be the same of all links"):
            configs_of(uneven, en, free)
