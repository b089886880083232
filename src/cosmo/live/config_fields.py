"""Kinds of fields in the TOML file of a daemon."""

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

from cosmo.scenario.fields import MOST_MS, Positive


def _has_port(address: str) -> str:
    """Refuse a port that there is not: gRPC would take it modulo 65536, without a word."""
    if int(address.rpartition(":")[2]) > 65535:
        raise PydanticCustomError("port", "Input should have a port from 0 to 65535")
    return address


def _has_host(url: str) -> str:
    try:
        place = urlsplit(url)
        good = bool(place.hostname) and place.port != 0
    except ValueError:
        good = False
    if not good:
        raise PydanticCustomError("url", "Input should have a host, and a port from 1 to 65535")
    return url


# gRPC counts in 32 bits, and ends the process at a number that has more.
Index = Annotated[int, Field(strict=True, ge=0, le=100_000)]
Millis = Annotated[Positive, Field(le=MOST_MS)]
Seconds = Annotated[Positive, Field(ge=0.01, le=1e6)]
Address = Annotated[str, Field(pattern=r"^[^\s:]+:\d{1,5}$"), AfterValidator(_has_port)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,60}$")]
Port = Annotated[int, Field(strict=True, ge=0, le=65535)]
Url = Annotated[
    str, Field(pattern=r"^https?://[^\s/]+(/\S*)?$", max_length=1000), AfterValidator(_has_host)
]
ReadingMillis = Annotated[Millis, Field(ge=5)]  # between two readings of a page of metrics


class Group(BaseModel):
    """A table of a daemon's file: no other fields, and none of them changes."""

    model_config = ConfigDict(extra="forbid", frozen=True)
