"""Messages of Envoy's API from short tables: field, number, type or the name of its message.

Names and numbers are Envoy's as far as they are used; what is not described is skipped by whoever
reads it, as protobuf does. A star before the name of a message means that it is repeated.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from google.protobuf import descriptor_pb2, message_factory

from cosmo.live import wire

INT32, BOOL, STRING, MESSAGE, BYTES, ENUM = 5, 8, 9, 11, 12, 13  # enumerations travel like uint32
REPEATED_STRING = -STRING

Fields = Sequence[tuple[str, int, int | str]]


def described(
    file: str,
    package: str,
    messages: Mapping[str, Fields],
    oneofs: Mapping[str, tuple[str, Sequence[str]]] | None = None,
    dependencies: Sequence[str] = (),
) -> Callable[[str], Any]:
    """Add messages to the pool; what is returned gives the class of each by its name.

    `oneofs` has, of a message, the name of its choice and the fields that exclude one another.
    """
    found = descriptor_pb2.FileDescriptorProto(
        name=file, package=package, syntax="proto3", dependency=dependencies
    )
    for name, fields in messages.items():
        made = found.message_type.add(name=name)
        choice, members = (oneofs or {}).get(name, ("", ()))
        if choice:
            made.oneof_decl.add(name=choice)
        for field, number, kind in fields:
            added = made.field.add(name=field, number=number, label=1)
            if isinstance(kind, int):
                added.label, added.type = (3, -kind) if kind < 0 else (1, kind)
                continue
            added.label, added.type = 3 if kind.startswith("*") else 1, MESSAGE
            plain = kind.removeprefix("*")
            added.type_name = plain if plain.startswith(".") else f".{package}.{plain}"
            if field in members:
                added.oneof_index = 0
    wire.POOL.Add(found)

    def class_of(name: str) -> Any:
        known = wire.POOL.FindMessageTypeByName(f"{package}.{name}")
        return message_factory.GetMessageClass(known)

    return class_of
