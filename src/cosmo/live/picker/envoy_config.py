"""The configuration of an Envoy that asks a picker, as a document of Envoy's own format."""

import ipaddress
from collections.abc import Sequence
from typing import Any

from cosmo.errors import InputError
from cosmo.live.config import NodeConfig
from cosmo.live.picker import eds, ext_proc
from cosmo.live.picker.sources import listed

_HTTP = "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
_UPSTREAM = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
_POLICIES = "envoy.extensions.load_balancing_policies"
_STRIP = "envoy.extensions.http.early_header_mutation.header_mutation.v3.HeaderMutation"
_TLS = "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext"
_NOT_SENT = "connect-failure,refused-stream,reset-before-request"  # no service has had it
SERVICES, PICKER, XDS = "services", "picker", "xds"


def _at(address: str) -> dict[str, Any]:
    host, _, port = address.rpartition(":")
    place = {"address": host.strip("[]"), "port_value": int(port)}
    return {"address": {"socket_address": place}}


def _any(kind: str, **fields: Any) -> dict[str, Any]:
    return {"@type": f"type.googleapis.com/{kind}", **fields}


def _named(kind: str, **fields: Any) -> dict[str, Any]:
    return {"name": kind, "typed_config": _any(kind, **fields)}


def cluster(name: str, addresses: Sequence[str], by_dns: bool = False) -> dict[str, Any]:
    """A cluster of these addresses; `by_dns`: of all that their names stand for."""
    endpoints = [{"endpoint": _at(each)} for each in addresses]
    return {
        "name": name,
        "type": "STRICT_DNS" if by_dns else "STATIC",
        "connect_timeout": "1s",
        "load_assignment": {"cluster_name": name, "endpoints": [{"lb_endpoints": endpoints}]},
    }


def _by_xds(name: str, known_as: str) -> dict[str, Any]:
    """A cluster whose endpoints the server of the cluster `xds` tells."""
    asked = {
        "api_type": "GRPC",
        "transport_api_version": "V3",
        "grpc_services": [{"envoy_grpc": {"cluster_name": XDS}}],
    }
    source = {"resource_api_version": "V3", "api_config_source": asked}
    return {
        "name": name,
        "type": "EDS",
        "connect_timeout": "1s",
        "eds_cluster_config": {"service_name": known_as, "eds_config": source},
    }


def services(addresses: Sequence[str], by_dns: bool = False, by_xds: str = "") -> dict[str, Any]:
    """The services: the picker's word first, LEAST_REQUEST without one.

    `by_xds` is the name by which an xDS server knows them, instead of addresses.
    """
    fallback = {"typed_extension_config": _named(f"{_POLICIES}.least_request.v3.LeastRequest")}
    sources = [
        {"header": ext_proc.DESTINATION},
        {"metadata": {"key": ext_proc.NAMESPACE, "path": [{"key": ext_proc.DESTINATION}]}},
    ]
    policy = _named(
        f"{_POLICIES}.override_host.v3.OverrideHost",
        override_host_sources=sources,
        fallback_policy={"policies": [fallback]},
    )
    chosen = {"policies": [{"typed_extension_config": policy}]}
    made = _by_xds(SERVICES, by_xds) if by_xds else cluster(SERVICES, addresses, by_dns)
    return {**made, "load_balancing_policy": chosen}


def ask_picker(
    timeout_s: float = 0.25, bodies: bool = False, shadow: bool = False
) -> dict[str, Any]:
    """The filter that asks: if nobody answers in time, requests go on without.

    `bodies` sends bodies through the picker, so that it sees the end of streamed answers; `shadow`
    shows it all requests and waits for no answer.
    """
    mode = {
        "request_header_mode": "SEND",
        "response_header_mode": "SEND",
        "request_body_mode": "FULL_DUPLEX_STREAMED" if bodies else "NONE",
        "response_body_mode": "FULL_DUPLEX_STREAMED" if bodies else "NONE",
        "request_trailer_mode": "SEND" if bodies else "SKIP",
        "response_trailer_mode": "SEND" if bodies else "SKIP",
    }
    namespaces = {"untyped": [ext_proc.NAMESPACE]}
    return _named(
        "envoy.extensions.filters.http.ext_proc.v3.ExternalProcessor",
        grpc_service={"envoy_grpc": {"cluster_name": PICKER}, "timeout": f"{timeout_s:g}s"},
        # Envoy does not let a filter go on without an answer once it has sent a body away.
        failure_mode_allow=not bodies,
        message_timeout=f"{timeout_s:g}s",
        observability_mode=shadow,
        processing_mode=mode,
        response_attributes=[ext_proc.UPSTREAM, ext_proc.DETAILS],
        metadata_options={
            "forwarding_namespaces": {"untyped": [ext_proc.NAMESPACE, ext_proc.SUBSET_NAMESPACE]},
            "receiving_namespaces": namespaces,
        },
    )


def _over_http2(made: dict[str, Any]) -> dict[str, Any]:
    options = _any(_UPSTREAM, explicit_http_config={"http2_protocol_options": {}})
    return {**made, "typed_extension_protocol_options": {_UPSTREAM: options}}


def _san_type(name: str) -> str:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return "DNS"
    return "IP_ADDRESS"


def _encrypted(made: dict[str, Any], tls: dict[str, str] | None) -> dict[str, Any]:
    """`tls` has the paths certificate, key, authority, and the server's name; None: none."""
    if tls is None:
        return made
    files = {name: {"filename": tls[name]} for name in ("certificate", "key", "authority")}
    common = {
        "tls_certificates": [
            {"certificate_chain": files["certificate"], "private_key": files["key"]}
        ],
        # Without a name, any certificate of the authority would do.
        "validation_context": {
            "trusted_ca": files["authority"],
            "match_typed_subject_alt_names": [
                {"san_type": _san_type(tls["name"]), "matcher": {"exact": tls["name"]}}
            ],
        },
        "alpn_protocols": ["h2"],
    }
    socket = _any(_TLS, sni=tls["name"], common_tls_context=common)
    return {
        **made,
        "transport_socket": {"name": "envoy.transport_sockets.tls", "typed_config": socket},
    }


def xds_cluster(address: str, tls: dict[str, str] | None = None) -> dict[str, Any]:
    """Where the xDS server is."""
    return _encrypted(_over_http2(cluster(XDS, [address], by_dns=True)), tls)


def picker_cluster(address: str, tls: dict[str, str] | None = None) -> dict[str, Any]:
    """Where the picker is."""
    return _encrypted(_over_http2(cluster(PICKER, [address])), tls)


def bootstrap(
    listen: str, admin: str, clusters: Sequence[dict[str, Any]], asking: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """An Envoy that sends all requests to the services, through these filters.

    A destination that a client names itself is removed before anybody sees it.
    """
    route = {
        "cluster": SERVICES,
        "retry_policy": {"retry_on": _NOT_SENT, "num_retries": 2},
    }
    routes = [{"match": {"prefix": "/"}, "route": route}]
    strip = [{"remove": ext_proc.DESTINATION}]
    manager = _any(
        _HTTP,
        stat_prefix="in",
        early_header_mutation_extensions=[_named(_STRIP, mutations=strip)],
        http_filters=[*asking, _named("envoy.extensions.filters.http.router.v3.Router")],
        route_config={"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": routes}]},
    )
    chain = {"filters": [{"name": "http", "typed_config": manager}]}
    return {
        "node": {"id": "envoy", "cluster": "cosmo"},  # as an xDS server sees it
        "admin": _at(admin),
        "static_resources": {
            "listeners": [{"name": "in", **_at(listen), "filter_chains": [chain]}],
            "clusters": list(clusters),
        },
    }


def envoy_of(
    config: NodeConfig, listen: str, shadow: bool = False, bodies: bool = False, admin: str = ""
) -> dict[str, Any]:
    """The Envoy of a picker: it takes requests at `listen`, for the picker's own endpoints.

    InputError if `listen` is no address, or nobody can list the endpoints for Envoy.
    """
    for name, address in (("listen", listen), ("admin", admin or "127.0.0.1:0")):
        host, _, port = address.rpartition(":")
        if not host or not port.isdigit() or int(port) > 65535:
            raise InputError(f"{name} = {address!r}: must look like 127.0.0.1:8080")
    kind, _, rest = config.picker.endpoints.partition(":")
    if kind == "dns":
        clusters = [services([rest], by_dns=True)]
    elif kind == "eds":
        where = eds.where_of(rest, config.tls)
        host = where.server.rpartition(":")[0].strip("[]")
        certified = {**config.tls.model_dump(), "name": host} if where.tls else None
        clusters = [services([], by_xds=where.cluster), xds_cluster(where.server, certified)]
    else:
        clusters = [services([each.address for each in listed(config.picker)])]
    tls = None
    if config.tls.certificate:
        tls = {**config.tls.model_dump(), "name": config.name}
    return bootstrap(
        listen,
        admin or "127.0.0.1:0",
        [*clusters, picker_cluster(config.listen, tls)],
        [ask_picker(bodies=bodies, shadow=shadow)],
    )
