"""The messages of `cosmo_live.proto`, and those of Envoy in `protos/`, as classes.

They are made from `cosmo_live.binpb` and `protos.binpb`, which protoc has made from these files
(`make proto`). Generated Python code would tie the package to one version of protobuf; a descriptor
set does not. The pool is our own: an application may have Envoy's whole packages in the usual one.
"""

from collections.abc import Callable
from importlib import resources
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

VERSION = 1
PACKAGE = "cosmo.live.v1"
FILE = "cosmo_live.proto"


def _files(name: str) -> Any:
    found = resources.files("cosmo.live").joinpath(name).read_bytes()
    return descriptor_pb2.FileDescriptorSet.FromString(found).file


[DESCRIPTION] = _files("cosmo_live.binpb")
POOL = descriptor_pool.DescriptorPool()
for _file in (DESCRIPTION, *_files("protos.binpb")):
    POOL.Add(_file)


def message_class(name: str, package: str = PACKAGE) -> Any:
    """The class of a message of these files."""
    return message_factory.GetMessageClass(POOL.FindMessageTypeByName(f"{package}.{name}"))


def reader(kind: Any) -> Callable[[bytes], Any]:
    """Reads messages of a kind; None where the bytes are none, so that a call can say so."""

    def read(data: bytes) -> Any:
        try:
            return kind.FromString(data)
        except DecodeError:
            return None

    return read


Task, Outcome, Result = map(message_class, ("Task", "Outcome", "Result"))
Hello, Welcome, Ack = map(message_class, ("Hello", "Welcome", "Ack"))
Heartbeat, Status = map(message_class, ("Heartbeat", "Status"))
FromEn, FromSn = map(message_class, ("FromEn", "FromSn"))
SUBMIT = f"/{PACKAGE}.En/Submit"
EXECUTE, WATCH = f"/{PACKAGE}.Sn/Execute", f"/{PACKAGE}.Sn/Watch"
