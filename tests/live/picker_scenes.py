"""A picker in this process, and a proxy's side of its streams over a real gRPC client."""

import asyncio
import io
from contextlib import asynccontextmanager

import grpc

from cosmo.live.config import changed_config, load_config
from cosmo.live.logs import Log
from cosmo.live.picker import ext_proc
from cosmo.live.serving import Serving
from live.nodes import PATIENT, until

METHOD = f"/{ext_proc.SERVICE}/Process"
THREE = "static:10.0.0.1:80,10.0.0.2:80,10.0.0.3:80"


def picker_config(endpoints=THREE, **fields):
    given = {name.replace("__", "."): value for name, value in fields.items()}
    told = {"listen": "127.0.0.1:0", "picker.endpoints": endpoints, **PATIENT, **given}
    return changed_config(load_config("picker"), told)


@asynccontextmanager
async def picker(endpoints=THREE, synced=True, **fields):
    """A picker that knows its endpoints, unless it need not have `synced` yet."""
    config = picker_config(endpoints, **fields)
    serving = Serving(config, Log("picker", "info", io.StringIO()))
    await serving.start()
    try:
        await until(lambda: serving.node.synced or not synced, "endpoints are known")
        yield serving
    finally:
        await serving.stop(0)


def headers(phase="request_headers", end=True, **values):
    """A message with the headers of a request or an answer."""
    made = ext_proc.ProcessingRequest()
    http = getattr(made, phase)
    http.end_of_stream = end
    for name, value in values.items():
        key = ":status" if name == "status" else name.replace("_", "-")
        http.headers.headers.add(key=key, raw_value=str(value).encode())
    return made


def answered(address="", status=200, details="", end=True):
    """The headers of an answer, as Envoy tells of them."""
    made = headers("response_headers", end, status=status)
    entry = made.attributes.add(key="envoy.filters.http.ext_proc")
    if address:
        entry.value.fields[ext_proc.UPSTREAM].string_value = address
    if details:
        entry.value.fields[ext_proc.DETAILS].string_value = details
    return made


def with_subset(message, *addresses):
    """The same, with the endpoints that the proxy allows."""
    entry = message.metadata_context.filter_metadata.add(key=ext_proc.SUBSET_NAMESPACE)
    listed = entry.value.fields[ext_proc.SUBSET].list_value
    listed.SetInParent()
    for each in addresses:
        listed.values.add(string_value=each)
    return message


def destination(answer):
    """The endpoints that an answer names: header and metadata must agree."""
    [option] = answer.request_headers.response.header_mutation.set_headers
    assert option.header.key == ext_proc.DESTINATION
    inner = answer.dynamic_metadata.fields[ext_proc.NAMESPACE].struct_value
    told = option.header.raw_value.decode()
    assert inner.fields[ext_proc.DESTINATION].string_value == told
    return told.split(",")


class Proxy:
    """Opens a stream for each request, as Envoy does."""

    def __init__(self, address, channel=None):
        self.channel = channel or grpc.aio.insecure_channel(address)
        self._process = self.channel.stream_stream(
            METHOD,
            ext_proc.ProcessingRequest.SerializeToString,
            ext_proc.ProcessingResponse.FromString,
        )

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self.channel.close()

    def stream(self):
        return self._process()

    async def ask(self, message):
        """(the stream, the answer) of a request."""
        stream = self.stream()
        await stream.write(message)
        return stream, await stream.read()

    async def show(self, answer):
        """A whole request that has gone somewhere already, of which no answer is wanted."""
        stream, first = self.stream(), headers()
        first.observability_mode = True
        for each in (first, answer):
            await stream.write(each)
        await stream.done_writing()
        assert await stream.read() is grpc.aio.EOF

    async def request(self, status=200, served=None, **values):
        """A whole request; the endpoints that it was given, none if it was turned away."""
        stream, answer = await self.ask(headers(**values))
        if answer.HasField("immediate_response"):
            await stream.done_writing()
            return answer.immediate_response.status.code
        named = destination(answer)
        await stream.write(answered(served or named[0], status))
        assert (await stream.read()).HasField("response_headers")
        await stream.done_writing()
        assert await stream.read() is grpc.aio.EOF
        return named


async def quiet(serving):
    """Wait until nothing is under way."""
    await until(lambda: serving.node.in_flight == 0, "all requests have ended")
    await asyncio.sleep(0)
