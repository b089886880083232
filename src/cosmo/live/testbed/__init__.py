"""The engine `live`: episodes of a scenario on daemons of this machine.

`play` plays them. Daemons stand on loopback or in network namespaces (`networks`); what UEs do is
replayed by a process of its own, `generator`, which is as light as a node.
"""
