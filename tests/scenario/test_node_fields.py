"""A node is described by the same fields everywhere."""

from dataclasses import fields

from cosmo import load
from cosmo.live.config import NodeColumns, Peer
from cosmo.node import Nodes
from cosmo.scenario.topology import NODE_FIELDS, UnlikeNodes
from cosmo.world import site_of


def test_scenario_site_and_daemon_files_have_the_same_fields():
    assert tuple(field.name for field in fields(Nodes)) == NODE_FIELDS
    assert tuple(NodeColumns.model_fields) == NODE_FIELDS
    assert set(NODE_FIELDS) < set(UnlikeNodes.model_fields)
    assert set(NODE_FIELDS) < set(Peer.model_fields)


def test_nodes_survive_the_way_through_columns_and_rows():
    sn = site_of(
        load("campus", ["sn.slots=[3, 5]", "sn.unlike=[{at = 1, storage_bytes = 7e5}]"])
    ).sn
    again = Nodes.of(sn.columns())
    assert again.columns() == sn.columns()
    assert [again.slots.dtype, again.storage_bytes.dtype] == [
        sn.slots.dtype,
        sn.storage_bytes.dtype,
    ]
    assert sn.row(1) == {name: values[1] for name, values in sn.columns().items()}
    assert (sn.row(1)["slots"], sn.row(1)["storage_bytes"]) == (5, 7e5)
