"""The messages of `cosmo_live.proto` as classes.

They are made from `cosmo_live.binpb`, which protoc has made from that file (`make proto`).
Generated Python code would tie the package to one version of protobuf; a descriptor set does not.
"""

from collections.abc import Callable
from importlib import resources
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

VERSION = 1
PACKAGE = "cosmo.live.v1"
FILE = "cosmo_live.proto"

[DESCRIPTION] = descriptor_pb2.FileDescriptorSet.FromString(
    resources.files("cosmo.live").joinpath("cosmo_live.binpb").read_bytes()
).file
POOL = descriptor_pool.DescriptorPool()
POOL.Add(DESCRIPTION)


def _class(name: str) -> Any:
    return message_factory.GetMessageClass(POOL.FindMessageTypeByName(f"{PACKAGE}.{name}"))


def reader(kind: Any) -> Callable[[bytes], Any]:
    """Reads messages of a kind; None where the bytes are none, so that a call can say so."""

    def read(data: bytes) -> Any:
        try:
            return kind.FromString(data)
        except DecodeError:
            return None

    return read


Task, Outcome, Result = _class("Task"), _class("Outcome"), _class("Result")
Hello, Welcome, Ack = _class("Hello"), _class("Welcome"), _class("Ack")
Heartbeat, Status = _class("Heartbeat"), _class("Status")
FromEn, FromSn = _class("FromEn"), _class("FromSn")
SUBMIT = f"/{PACKAGE}.En/Submit"
EXECUTE, WATCH = f"/{PACKAGE}.Sn/Execute", f"/{PACKAGE}.Sn/Watch"
