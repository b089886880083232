"""An xDS server of the tests: it tells what a test wants, and keeps what it is asked."""

from contextlib import asynccontextmanager

import grpc

from cosmo.live.picker import eds
from live.nodes import until


def assignment(cluster, *endpoints):
    """A ClusterLoadAssignment; an endpoint is (address, health, weight, priority)."""
    made = eds.ClusterLoadAssignment(cluster_name=cluster)
    for address, health, weight, priority in endpoints:
        host, _, port = address.rpartition(":")
        locality = made.endpoints.add(priority=priority)
        added = locality.lb_endpoints.add(health_status=health)
        place = added.endpoint.address.socket_address
        place.address, place.port_value = host.strip("[]"), int(port)
        if weight:
            added.load_balancing_weight.value = weight
    return made


class XdsServer:
    """State of the world, one stream a client."""

    def __init__(self, credentials=None):
        self._credentials = credentials
        self.asked, self._streams, self._said, self.port = [], [], 0, 0

    async def stream(self, _, context):
        self._streams.append(context)
        while (request := await context.read()) is not grpc.aio.EOF:
            self.asked.append(request)

    async def say(self, *resources, type_url=eds.TYPE):
        """Tell every client; the request by which the last of them answers."""
        self._said += 1
        version, heard = f"v{self._said}", len(self.asked)
        made = eds.DiscoveryResponse(
            version_info=version, nonce=f"n{self._said}", type_url=type_url
        )
        for each in resources:
            content = each if isinstance(each, bytes) else each.SerializeToString()
            made.resources.add(type_url=eds.TYPE, value=content)
        for context in self._streams:
            await context.write(made)
        await until(lambda: len(self.asked) >= heard + len(self._streams), "all have answered")
        return self.asked[-1]

    async def listen(self, port=0):
        server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
        handler = grpc.stream_stream_rpc_method_handler(
            self.stream,
            eds.DiscoveryRequest.FromString,
            eds.DiscoveryResponse.SerializeToString,
        )
        _, service, name = eds.STREAM.split("/")
        server.add_generic_rpc_handlers(
            [grpc.method_handlers_generic_handler(service, {name: handler})]
        )
        if self._credentials is None:
            self.port = server.add_insecure_port(f"127.0.0.1:{port}")
        else:
            self.port = server.add_secure_port(f"127.0.0.1:{port}", self._credentials)
        await server.start()
        return server

    @asynccontextmanager
    async def up(self, port=0):
        """While the server takes calls."""
        self._streams, server = [], await self.listen(port)
        try:
            yield self
        finally:
            await server.stop(0)
            self._streams = []
