"""HTTP requests at an EN, for people without a proxy: each goes to the HTTP service of the SN that
the method chooses. An agent has such a port, too, to count what passes through it. The library is
aiohttp: one for both sides, with streams, flow control, limits and a pool of connections.
"""
