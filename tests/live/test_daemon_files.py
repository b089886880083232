"""What files of daemons and plans may say, and what nodes are told by them."""

import numpy as np
import pytest

from cosmo import InputError, load
from cosmo.live import wire
from cosmo.live.config import changed_config, config_text, load_config
from cosmo.live.scenario_files import configs_of
from cosmo.live.sites import site_of_node
from cosmo.live.tasks import Fate
from cosmo.policy.rules.multi_node_parameters import START
from cosmo.policy.rules.multi_node_site import profile_of
from cosmo.seeds import Draws
from cosmo.world import site_of


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


@pytest.mark.parametrize(
    ("field", "most", "beyond"),
    [
        ("neighbours", 100_000, 100_001),  # arrays have a row for each
        ("limits.connections", 20_000, 2**31 - 1),  # gRPC ends the process at this one
        ("limits.calls", 10**6, 2**31),
        ("limits.input_bytes", 10**9, 2**31),
        ("limits.idle_s", 1e6, 1e7),
        ("behaviour.silent_ms", 1e9, 1e300),
        ("behaviour.drain_s", 1e6, 1e300),
        ("links.hops", 100, 10**12),
        ("expected.residual_ms", 1e15, 1e300),
        ("listen", "127.0.0.1:65535", "127.0.0.1:99999"),  # gRPC would listen on 34463
        ("admin", "127.0.0.1:65535", "127.0.0.1:65536"),
    ],
)
@pytest.mark.parametrize("role", ["en", "sn"])
def test_the_most_that_a_daemon_s_file_may_say(role, field, most, beyond):
    config = load_config(role)
    changed_config(config, {field: most})
    with pytest.raises(InputError, match=field.replace(".", r"\.")):
        changed_config(config, {field: beyond})


def test_heartbeats_do_not_fill_the_network():
    changed_config(load_config("en"), {"behaviour.heartbeat_ms": 1.0})
    with pytest.raises(InputError, match=r"behaviour\.heartbeat_ms"):
        changed_config(load_config("en"), {"behaviour.heartbeat_ms": 1e-9})


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
    site = site_of_node(changed_config(load_config("sn"), {"neighbours": 2, "method.seed": 5}))
    assert site.draws == (Draws.of(5, 0),)  # as the first episode of that run
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
    assert [each.number for each in ens] == [each.number for each in sns] == [0, 1, 2]
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


def test_which_of_several_an_en_is_must_be_one_of_them_and_an_sn_is_the_only_one():
    several = changed_config(load_config("en"), {"neighbours": 2, "number": 2})
    for config, number, why in (
        (several, 3, "number = 3: must be at most neighbours"),
        (load_config("sn"), 1, "number = 1: must be 0 unless site describes all SNs"),
    ):
        with pytest.raises(InputError, match=why):
            changed_config(config, {"number": number})


def _files_of(*settings):
    scenario = load("campus", ["sn.count=3", "backhaul.reach=[[0, 2], [1], [0, 1, 2]]", *settings])
    return scenario, *configs_of(scenario, load_config("en"), load_config("sn"))


def test_daemons_of_a_scenario_with_several_sns_know_the_whole_site(tmp_path):
    unlike = ("sn.slots=[4, 2, 3]", "en.cycles_per_ms=[9000, 8000, 7000]", "backhaul.up_mbps=50")
    scenario, ens, sns = _files_of(*unlike)
    world = site_of(scenario)
    for config in (*ens, *sns):
        path = tmp_path / f"{config.name}.toml"
        path.write_text(config_text(config))
        assert load_config(path) == config
        site = site_of_node(config)
        for kind in ("en", "sn"):
            for field, values in vars(getattr(world, kind)).items():
                np.testing.assert_array_equal(getattr(getattr(site, kind), field), values)
        np.testing.assert_array_equal(site.links.reach, world.links.reach)
        np.testing.assert_array_equal(
            site.links.up_mbps[site.links.exist], world.links.up_mbps[world.links.exist]
        )
    [pair], _ = configs_of(load("paper"), ens[0], sns[0])
    assert not pair.site.reach  # nothing to know but the peer


def test_an_sn_s_daemon_tells_whom_the_simulator_s_would():
    scenario, ens, sns = _files_of("sn.slots=[4, 2, 3]", "workload.rate=333")
    numbers = START._replace(subset_size=1.0, subset_size_per_ratio=0.0)
    world = profile_of(site_of(scenario), numbers)
    assert 0 < world.used_by.sum() < scenario.links.reach.size
    for config in sns:
        own = profile_of(site_of_node(config), numbers)
        for field in ("used_by", "tasks_per_ms", "work_per_ms", "phase"):
            there = getattr(world, field)[config.number]
            np.testing.assert_array_equal(getattr(own, field)[config.number], there, field)
    for config in ens:
        own = profile_of(site_of_node(config), numbers)
        for field in ("uses", "rivals", "capacity"):
            there = getattr(world, field)[config.number]
            np.testing.assert_array_equal(getattr(own, field)[config.number], there, field)


def test_of_itself_its_peers_and_links_a_node_goes_by_its_own_fields():
    _, ens, sns = _files_of()
    peers = [
        {**peer.model_dump(), "slots": 7 + k, "down_mbps": 10.0 + k}
        for k, peer in enumerate(ens[2].peers)
    ]
    turned = {"site.reach": [[0, 2], [1], [2, 1, 0]]}
    site = site_of_node(changed_config(ens[2], {"node.slots": 5, "peers": peers, **turned}))
    assert site.en.slots.tolist()[2] == 5
    assert site.sn.slots.tolist() == [9, 8, 7]  # it reaches them the other way round
    assert site.links.down_mbps[2].tolist() == [10.0, 11.0, 12.0]
    peers = [
        {**peer.model_dump(), "slots": 7 + k, "down_mbps": 10.0 + k}
        for k, peer in enumerate(sns[1].peers)
    ]
    site = site_of_node(changed_config(sns[1], {"node.slots": 5, "peers": peers}))
    assert site.sn.slots[1] == 5
    assert site.en.slots.tolist()[1:] == [7, 8]
    assert (site.links.down_mbps[1, 0], site.links.down_mbps[2, 1]) == (10.0, 11.0)
    assert site.links.down_mbps[0].tolist()[:2] == [10.5, 10.5]  # of others: like its own


def test_what_a_description_of_a_site_must_not_say():
    _, ens, sns = _files_of()
    columns = ens[0].site.sn.model_dump()
    for config, fields, why in (
        (ens[0], {"number": 3}, "number = 3: must be less than 3, as in site"),
        (sns[0], {"number": 3}, "number = 3: must be less than 3, as in site"),
        (ens[0], {"number": 1}, "peers: must be 1, as site.reach says, not 2"),
        (sns[0], {"site.reach": [[0], [1], [1]]}, "peers: must be 1, as site.reach says, not 2"),
        (ens[0], {"site.reach": [[0, 2]]}, "reach: must have a row for each of 3 ENs"),
        (ens[0], {"site.reach": [[0, 3], [1], [2]]}, "[0, 3] must be different numbers below 3"),
        (ens[0], {"site.reach": [[0, 0], [1], [2]]}, "[0, 0] must be different numbers below 3"),
        (ens[0], {"site.reach": [[0, -1], [1], [2]]}, "site.reach.0.1"),
        (ens[0], {"site.sn": {**columns, "slots": [1, 2]}}, "every column must have a number"),
    ):
        with pytest.raises(InputError) as raised:
            changed_config(config, fields)
        assert why in str(raised.value)


@pytest.mark.parametrize(
    ("reach", "lonely"), [("[[0], [0], [0]]", "sn1"), ("[[1], [1], [1]]", "sn0")]
)
def test_an_sn_that_nobody_reaches_has_no_daemon(reach, lonely):
    scenario = load("campus", [f"backhaul.reach={reach}"])
    with pytest.raises(
        InputError, match=f"backhaul.reach: no EN reaches {lonely}: with daemons one must"
    ):
        configs_of(scenario, load_config("en"), load_config("sn"))
