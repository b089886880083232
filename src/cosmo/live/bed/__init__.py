"""The test bed: episodes of a plan in the simulator and on daemons of this machine, side by side.

`plan` says what, `conduct` does it, `compare` plays one episode both ways, `results` tells what
came out. Daemons stand on loopback, or in `namespaces` with links of their own; what UEs do is
replayed by a process of its own, `generator`, which is as light as a node.
"""
