"""The messages of `cosmo_live.proto` as classes, made from that very file when it is imported.

No generated code: it would tie the package to one version of protobuf, and could differ from the
file that other languages use. The file keeps to a small part of the language (flat messages and
enumerations, one level of oneof), which is what is understood here; tests hold the outcome to
protoc's.
"""

import re
from collections.abc import Callable
from importlib import resources
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

VERSION = 1
PACKAGE = "cosmo.live.v1"
FILE = "cosmo_live.proto"

_SCALARS = {"double": 1, "float": 2, "uint64": 4, "bool": 8, "string": 9, "bytes": 12, "uint32": 13}
_MESSAGE, _ENUM = 11, 14
_BLOCK = re.compile(r"(message|enum|service)\s+(\w+)\s*\{((?:[^{}]|\{[^{}]*\})*)\}")
_ONEOF = re.compile(r"oneof\s+(\w+)\s*\{([^{}]*)\}")
_FIELD = re.compile(r"(repeated\s+)?(\w+)\s+(\w+)\s*=\s*(\d+)\s*;")
_VALUE = re.compile(r"(\w+)\s*=\s*(\d+)\s*;")
_CALL = re.compile(r"rpc\s+(\w+)\((stream\s+)?(\w+)\)\s*returns\s*\((stream\s+)?(\w+)\)\s*;")


def described(text: str) -> descriptor_pb2.FileDescriptorProto:
    """The file as protobuf describes files."""
    text = re.sub(r"//[^\n]*", "", text)
    found = descriptor_pb2.FileDescriptorProto(name=FILE, package=PACKAGE, syntax="proto3")
    blocks = _BLOCK.findall(text)
    enums = {name for what, name, _ in blocks if what == "enum"}
    for what, name, body in blocks:
        if what == "enum":
            enum = found.enum_type.add(name=name)
            for value, number in _VALUE.findall(body):
                enum.value.add(name=value, number=int(number))
        elif what == "service":
            service = found.service.add(name=name)
            for call, up, given, down, answer in _CALL.findall(body):
                method = service.method.add(name=call)
                method.input_type, method.output_type = (
                    f".{PACKAGE}.{given}",
                    f".{PACKAGE}.{answer}",
                )
                if up:
                    method.client_streaming = True
                if down:
                    method.server_streaming = True
        else:
            _describe_message(found.message_type.add(name=name), body, enums)
    return found


def _describe_message(message: Any, body: str, enums: set[str]) -> None:
    choices = {}  # fields of a oneof, by name
    for place, (oneof, inner) in enumerate(_ONEOF.findall(body)):
        message.oneof_decl.add(name=oneof)
        choices.update({name: place for _, _, name, _ in _FIELD.findall(inner)})
    for repeated, kind, name, number in _FIELD.findall(body):
        field = message.field.add(name=name, number=int(number), label=3 if repeated else 1)
        field.json_name = re.sub(r"_(\w)", lambda found: found[1].upper(), name)
        if kind in _SCALARS:
            field.type = _SCALARS[kind]
        else:
            field.type = _ENUM if kind in enums else _MESSAGE
            field.type_name = f".{PACKAGE}.{kind}"
        if name in choices:
            field.oneof_index = choices[name]


def proto_text() -> str:
    """The file itself."""
    return resources.files("cosmo.live").joinpath(FILE).read_text(encoding="utf-8")


POOL = descriptor_pool.DescriptorPool()
POOL.Add(described(proto_text()))


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
