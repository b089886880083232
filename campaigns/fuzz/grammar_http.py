"""Cases of an EN's HTTP port: requests of a client, and the answer of the service behind it."""

from door_http import ANSWERED, GOOD_ANSWER, SAID
from hypothesis import strategies as st
from judge import Case
from odd import Draw, damaged, seldom, some, texts

_METHODS = ("GET", "POST", "PUT", "HEAD", "OPTIONS", "DELETE", "PATCH", "CONNECT", "TRACE", "get")
_PATHS = (
    "/", "/a/../b%2Fc", "/?q=%20&r=%C3%A4", "http://x/y", "*", "", "//a", "/%", "/%00", "/a b",
    "/" + "x" * 5000, "/é", "https:", "http:///", "/;@:80", "\\", "/#f",
)  # fmt: skip
_HEADERS = (
    "Host: b", "X-A: 1", "X-A: 2", "Connection: X-A", "Connection: keep-alive, close", "TE: gzip",
    "Expect: 100-continue", "Expect: odd", "Upgrade: websocket", "Upgrade: h2c", "Via: 1.1 x",
    "Content-Length: 0", "Content-Length: 5", "Content-Length: -1", "Content-Length: +5",
    "Content-Length: 5, 5", "Content-Length: 99999999999", "Transfer-Encoding: chunked",
    "Transfer-Encoding: gzip, chunked", "Transfer-Encoding: identity",
    "Transfer-Encoding : chunked",
    "x-cosmo-deadline-ms: 400", "x-cosmo-deadline-ms: nan", "x-cosmo-deadline-ms: -5",
    "x-cosmo-demand-ms: 1e300", "grpc-timeout: 1S", "x-request-timeout: 0", "x-cosmo-kind: é",
    "X-Forwarded-For: 1.2.3.4", " folded", "no colon", ":empty", "X: \x00", "X:", "Cookie: a=b",
    "Accept-Encoding: br", "X-Long: " + "y" * 9000, "Trailer: X-A", "Host:", "HTTP2-Settings: x",
)  # fmt: skip
_PIECES = (
    b"5\r\nhello\r\n", b"5;x=y\r\nhello\r\n", b"0\r\n\r\n", b"ffffffffff\r\n", b"-5\r\n",
    b"5\r\nhi",
    b"0\r\nX-Late: 1\r\n\r\n", b"0x5\r\nhello\r\n", b" 5\r\nhello\r\n",
)  # fmt: skip
_STATUSES = ("200 OK", "200", "204 No", "304 x", "100 Go", "404 Not", "500 x", "999 x", "99", "a b")
_GIVEN = (
    "Content-Length: 4", "Content-Length: 40", "Content-Length: -1", "Transfer-Encoding: chunked",
    "Connection: close", "Connection: X-B", "X-B: 1", "Set-Cookie: a=1", "Content-Encoding: gzip",
    "X: \x00", "Location: /else", " folded", "no colon", "X-Long: " + "z" * 9000, "Keep-Alive: 1",
)  # fmt: skip


def request(path: str = "/", method: str = "GET", *headers: str, body: bytes = b"") -> bytes:
    """A request as it is sent."""
    lines = [f"{method} {path} HTTP/1.1", *headers, "", ""]
    return "\r\n".join(lines).encode("utf-8", "surrogatepass") + body


def http_case(said: bytes, answered: bytes = GOOD_ANSWER) -> Case:
    """These bytes of a client, with this answer to all that reaches the service."""
    return Case("http", ("http",), {SAID: said, ANSWERED: answered}, door="http")


@st.composite
def _requests(draw: Draw, last: bool) -> bytes:
    path = "/" if draw(st.booleans()) else draw(some(*_PATHS))
    headers = [] if seldom(draw, 9) else ["Host: a"]
    odd = st.one_of(some(*_HEADERS), some(*_HEADERS), texts.map(lambda text: f"X-Odd: {text}"))
    headers += draw(st.lists(odd, max_size=draw(some(0, 0, 1, 2))))
    body = b""
    how = draw(st.integers(0, 5))
    if how == 0:
        body = b"hello"
        headers.append("Content-Length: 5")
    elif how == 1:
        headers.append("Transfer-Encoding: chunked")
        body = b"".join(draw(st.lists(some(*_PIECES[:2]), max_size=3))) + b"0\r\n\r\n"
    elif how == 2 and draw(st.booleans()):
        headers.append("Transfer-Encoding: chunked")
        body = b"".join(draw(st.lists(some(*_PIECES), max_size=4)))
    if last:
        headers.append("Connection: close")
    plain = some("GET", "POST")
    method = draw(plain if draw(st.booleans()) else some(*_METHODS))
    return request(path, method, *headers, body=body)


@st.composite
def _answers(draw: Draw) -> bytes:
    if draw(st.booleans()):
        return GOOD_ANSWER
    lines = [f"HTTP/1.1 {draw(some(*_STATUSES))}", *draw(st.lists(some(*_GIVEN), max_size=3))]
    body: bytes = draw(some(b"", b"good", b"4\r\ngood\r\n0\r\n\r\n", b"zz\r\n", bytes(70_000)))
    return "\r\n".join([*lines, "", ""]).encode() + body


@st.composite
def http_bytes(draw: Draw) -> Case:
    """What a client says on a connection, and what the service says to it."""
    count = draw(some(1, 1, 1, 2, 3))
    said = b"".join(draw(_requests(last=k == count - 1)) for k in range(count))
    if seldom(draw, 5):
        said = damaged(draw, said)
    answered = draw(_answers())
    if seldom(draw, 6):
        answered = damaged(draw, answered)
    return http_case(said, answered)
