"""Who is at the other end of a call: names of certificates, and who may call."""

import os
import ssl
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc

from cosmo.errors import InputError
from cosmo.files import MOST_KEY, read_bytes
from cosmo.live.config import NodeConfig, Tls
from cosmo.live.connections import owner_of

SERVER_OPTIONS = [
    ("grpc.so_reuseport", 0),  # two daemons on one port would share it in silence
    ("grpc.http2.min_ping_interval_without_data_ms", 200),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 200),
    ("grpc.http2.max_ping_strikes", 0),
    ("grpc.keepalive_time_ms", 2000),
    ("grpc.keepalive_timeout_ms", 2000),
    ("grpc.default_compression_algorithm", 0),
]
CHANNEL_OPTIONS = [
    ("grpc.enable_retries", 0),  # at most once
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.min_reconnect_backoff_ms", 1000),  # how long an attempt may take, whatever its name
    ("grpc.max_reconnect_backoff_ms", 500),
    ("grpc.keepalive_time_ms", 500),
    ("grpc.keepalive_timeout_ms", 500),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.default_compression_algorithm", 0),
    ("grpc.enable_http_proxy", 0),
]


def sizes(most_bytes: int) -> list[tuple[str, int]]:
    """Of messages: inputs and results, and a little around them."""
    most = most_bytes + 4096
    return [("grpc.max_receive_message_length", most), ("grpc.max_send_message_length", most)]


def _read(path: str, field: str) -> bytes:
    try:
        return read_bytes(Path(path), MOST_KEY)
    except OSError as error:
        raise InputError(f"{field} = {path!r}: cannot be read ({error.strerror})") from None


def _check_owner(path: str) -> None:
    """Refuse a key that somebody else than its owner can read."""
    with suppress(OSError):  # reading it will say so
        mode = stat.S_IMODE(os.stat(path).st_mode)
        if mode & (stat.S_IRGRP | stat.S_IROTH):
            raise InputError(
                f"tls.key = {path!r}: others can read it (mode {mode:04o}); run chmod 600 on it, or"
                " set tls.shared_key = true"
            )


def _files(tls: Tls) -> tuple[bytes, bytes, bytes]:
    if not tls.shared_key:
        _check_owner(tls.key)
    return (
        _read(tls.key, "tls.key"),
        _read(tls.certificate, "tls.certificate"),
        _read(tls.authority, "tls.authority"),
    )


def server_credentials(tls: Tls) -> grpc.ServerCredentials | None:
    """Mutual: clients must show a certificate of the authority; None without certificates."""
    if not tls.certificate:
        return None
    key, certificate, authority = _files(tls)
    return grpc.ssl_server_credentials([(key, certificate)], authority, require_client_auth=True)


def channel_credentials(tls: Tls) -> grpc.ChannelCredentials | None:
    """Those that this node shows to gRPC servers of the authority; None without certificates."""
    if not tls.certificate:
        return None
    key, certificate, authority = _files(tls)
    return grpc.ssl_channel_credentials(authority, key, certificate)


def server_ssl(tls: Tls, protocol: str = "h2") -> ssl.SSLContext | None:
    """The same as `server_credentials` for a server of HTTP that is not gRPC's own."""
    if not tls.certificate:
        return None
    made = _context(tls, ssl.PROTOCOL_TLS_SERVER)
    made.verify_mode = ssl.CERT_REQUIRED
    made.set_alpn_protocols([protocol])
    return made


def client_ssl(tls: Tls) -> ssl.SSLContext:
    """What this node shows to HTTP servers, which must have a certificate of the authority for
    their own name. InputError if the files cannot be used.
    """
    return _context(tls, ssl.PROTOCOL_TLS_CLIENT)


def _context(tls: Tls, side: int) -> ssl.SSLContext:
    _files(tls)  # says what cannot be read
    made = ssl.SSLContext(side)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        made.load_cert_chain(tls.certificate, tls.key)
        made.load_verify_locations(tls.authority)
    except ssl.SSLError as error:
        raise InputError(
            f"tls.certificate = {tls.certificate!r}: is none for this key ({error.reason})"
        ) from None
    return made


def channel_of(config: NodeConfig, address: str, name: str) -> grpc.aio.Channel:
    """To an SN, whose certificate must bear its name."""
    patience_ms = max(int(config.behaviour.silent_ms), 100)  # the last of a name counts
    alive = [("grpc.keepalive_time_ms", patience_ms), ("grpc.keepalive_timeout_ms", patience_ms)]
    options: list[tuple[str, Any]] = [*CHANNEL_OPTIONS, *alive, *sizes(config.limits.input_bytes)]
    credentials = channel_credentials(config.tls)
    if credentials is None:
        return grpc.aio.insecure_channel(address, options)
    options.append(("grpc.ssl_target_name_override", name))
    return grpc.aio.secure_channel(address, credentials, options)


def names_of(context: Any) -> set[str]:
    """The names (SAN) in the caller's certificate."""
    found = context.auth_context().get("x509_subject_alternative_name", [])
    return {name.decode(errors="replace") for name in found}


def place_of(transport: Any) -> str:
    """The other end of a connection as gRPC names it."""
    host, port = (transport.get_extra_info("peername") or ("", 0))[:2]
    return f"ipv6:[{host}]:{port}" if ":" in str(host) else f"ipv4:{host}:{port}"


def connected_by(transport: Any, tls: Tls) -> tuple[str, bool]:
    """(who is at the other end of a connection, as far as limits go; whether they may be)."""
    peer = owner_of(place_of(transport))
    if not tls.certificate:
        return peer, True
    found = transport.get_extra_info("peercert") or {}
    names = {str(name) for _, name in found.get("subjectAltName", ())}
    return min(names, default=peer), not tls.allowed or bool(names & set(tls.allowed))


def client_of(context: Any, tls: Tls) -> str:
    """Who calls, as far as limits go: a certificate's name, else whose address it is."""
    names = names_of(context) if tls.certificate else set()
    if names:
        return min(names)
    return owner_of(str(context.peer()))


async def check_caller(context: Any, tls: Tls) -> None:
    """Refuse a caller whose certificate has none of the allowed names."""
    if tls.certificate and tls.allowed and not names_of(context) & set(tls.allowed):
        await context.abort(grpc.StatusCode.PERMISSION_DENIED, "this certificate may not call here")
