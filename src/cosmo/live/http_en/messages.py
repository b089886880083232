"""What of an HTTP message is passed on, and the answers that the EN gives itself."""

from aiohttp import web
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

# Of one connection, not of the message (RFC 9110, 7.6.1); `Connection` may name more.
_HOP_BY_HOP = frozenset(
    ("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection",
     "te", "trailer", "transfer-encoding", "upgrade")
)  # fmt: skip
# What the library would add to a message that has none.
ADDED_TO_REQUESTS = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
_ADDED_TO_ANSWERS = ("Content-Type", "Server")
GIVEN = web.ResponseKey("given", CIMultiDictProxy[str])  # headers of the service's own answer


def passed_on(headers: CIMultiDictProxy[str]) -> CIMultiDict[str]:
    """All but those of the connection, in their order."""
    named = ",".join(headers.getall("Connection", [])).lower().split(",")
    dropped = _HOP_BY_HOP | {part.strip() for part in named}
    return CIMultiDict(
        (name, value) for name, value in headers.items() if name.lower() not in dropped
    )


def request_headers(request: web.BaseRequest) -> CIMultiDict[str]:
    """Those that the service gets: the client's own, and by whom they came."""
    found = passed_on(request.headers)
    found.popall("Expect", None)  # answered here
    version = f"{request.version.major}.{request.version.minor}"
    before = found.popall("Via", [])
    found["Via"] = ", ".join([*before, f"{version} cosmo"])
    if request.remote:
        before = found.popall("X-Forwarded-For", [])
        found["X-Forwarded-For"] = ", ".join([*before, request.remote])
    return found


def target(request: web.BaseRequest, address: str) -> URL:
    """Path and query as they came, at the service; ValueError for what is no path."""
    path = request.raw_path
    if not path.startswith("/"):  # a whole URL, as proxies are sent
        scheme, found, rest = path.partition("://")
        if not found or scheme.lower() not in ("http", "https"):
            raise ValueError(path)
        path = "/" + rest.partition("/")[2]
    return URL(f"http://{address}{path}", encoded=True)


async def as_it_came(request: web.Request, response: web.StreamResponse) -> None:
    """Take out of an answer what the library has added to a service's, or says of itself."""
    given = response.get(GIVEN, ("Content-Type",))
    for name in _ADDED_TO_ANSWERS:
        if name not in given:
            response.headers.popall(name, None)


def said(status: int, why: str, close: bool = False) -> web.Response:
    """An answer of the EN's own."""
    made = web.Response(status=status, text=f"{why}\n")
    if close:
        made.force_close()
    return made
