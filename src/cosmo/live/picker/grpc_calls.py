"""gRPC on HTTP/2 streams: calls, their messages, statuses and the health service."""

from collections.abc import Callable, Mapping

from cosmo.live.picker.frames import Request, header_block
from cosmo.live.picker.http2_sending import Stream

OK, INVALID_ARGUMENT, DEADLINE_EXCEEDED, PERMISSION_DENIED = 0, 3, 4, 7
RESOURCE_EXHAUSTED, UNIMPLEMENTED, UNAVAILABLE, NOT_FOUND = 8, 12, 14, 5
HEALTH_CHECK, HEALTH_WATCH = b"/grpc.health.v1.Health/Check", b"/grpc.health.v1.Health/Watch"
SERVING, NOT_SERVING, SERVICE_UNKNOWN = 1, 2, 3
_KIND = ("content-type", "application/grpc")
_STARTED = header_block((":status", "200"), _KIND)
_NOT_GRPC = header_block((":status", "415"))
_MOST_NAME = 200  # characters of a service's name in a health check


def message(content: bytes) -> bytes:
    """A message as it travels: not compressed, its length, its bytes."""
    return b"\0" + len(content).to_bytes(4, "big") + content


def _size(data: bytes | bytearray) -> int:
    """Of the message whose five bytes these begin with."""
    return int.from_bytes(data[1:5], "big")


class Budget:
    """Bytes of messages that are not whole yet, of all calls together."""

    def __init__(self, most: int) -> None:
        self.most, self.held = most, 0


class Call:
    """One gRPC call; a subclass says what its messages mean."""

    __slots__ = ("_budget", "_buffer", "_held", "_most", "_since_s", "_started", "stream")

    def __init__(self, stream: Stream, most_bytes: int, budget: Budget | None = None) -> None:
        """`most_bytes` is the largest message that is taken; what is kept of one counts for the
        budget.
        """
        self.stream, self._most, self._budget = stream, most_bytes, budget
        self._buffer = bytearray()  # of a message that is not whole
        self._held = 0
        self._since_s = stream.connection.heard_s  # when the call, or a message, began to come
        self._started = False

    # Of the stream.

    def received(self, data: bytes, ended: bool) -> None:
        """Cut bytes into messages."""
        if not data or self.stream.here_ended:
            pass
        elif not self._buffer and data[0] == 0 and _size(data) == len(data) - 5 <= self._most:
            self._since_s = 0.0  # one message, and whole: nearly always
            self.message(data[5:])
        else:
            self._buffer += data
            self._cut()
            if not self._buffer:
                self._since_s = 0.0
            elif not self._since_s:
                self._since_s = self.stream.connection.heard_s
            if self._held or self._buffer:
                self._count()
        if ended and not self.stream.here_ended:
            if self._buffer:
                self.finish(INVALID_ARGUMENT, "the message is not whole")
            else:
                self.half_closed()

    def _cut(self) -> None:
        buffer = self._buffer
        while len(buffer) >= 5 and not self.stream.here_ended:
            size = _size(buffer)
            if buffer[0]:
                self.finish(UNIMPLEMENTED, "compressed messages are not taken")
            elif size > self._most:
                self.finish(RESOURCE_EXHAUSTED, f"{size} bytes, must be at most {self._most}")
            elif len(buffer) < 5 + size:
                return
            else:
                content = bytes(buffer[5 : 5 + size])
                del buffer[: 5 + size]
                self.message(content)

    def waits_since(self, now_s: float) -> float:
        """For how many s it has waited for its first message, or for the rest of one; 0: it does
        not.
        """
        waits = self._since_s and not self.stream.here_ended
        return now_s - self._since_s if waits else 0.0

    def _count(self) -> None:
        budget = self._budget
        if budget is not None:
            budget.held += len(self._buffer) - self._held
            self._held = len(self._buffer)
            if budget.held > budget.most:
                self.finish(RESOURCE_EXHAUSTED, "too many messages that are not whole")

    def closed(self) -> None:
        """The call is over: it was finished, the peer has given up, or is gone."""
        self._buffer.clear()
        self._count()

    # Of the call.

    def message(self, content: bytes) -> None:
        """A whole message of the caller's."""
        raise NotImplementedError

    def half_closed(self) -> None:
        """The caller sends no more messages."""
        self.finish(OK)

    def send(self, content: bytes) -> None:
        """A message to the caller, with its five bytes before it (`message`)."""
        if not self._started:
            self._started = True
            self.stream.start(_STARTED)
        self.stream.send(content)

    def finish(self, code: int, why: str = "") -> None:
        """The call's status: its end."""
        fields = [("grpc-status", str(code))]
        if why:
            fields.append(("grpc-message", _escaped(why)))
        if not self._started:
            fields = [(":status", "200"), _KIND, *fields]
        self._buffer.clear()
        self._count()
        self.stream.end(header_block(*fields))


def _escaped(why: str) -> str:
    """Printable ASCII without the percent sign goes as it is; the rest by its bytes."""
    return "".join(
        chr(byte) if 0x20 <= byte < 0x7F and byte != ord("%") else f"%{byte:02X}"
        for byte in why.encode()[:200]
    )


class _Refused(Call):
    """Is answered before it is heard."""

    def message(self, content: bytes) -> None:
        """Ignore what comes after the refusal."""


class HealthCheck(Call):
    """grpc.health.v1: `states` has the serving status of each service."""

    __slots__ = ("_states",)

    def __init__(self, stream: Stream, states: Callable[[], Mapping[str, int]]) -> None:
        super().__init__(stream, 5 * _MOST_NAME)
        self._states = states

    def message(self, content: bytes) -> None:
        """HealthCheckRequest: one string, the service; HealthCheckResponse: one enumeration."""
        try:
            name = _service(content)
        except ValueError:
            self.finish(INVALID_ARGUMENT, "not a HealthCheckRequest")
            return
        state = self._states().get(name)
        if state is None:
            self.finish(NOT_FOUND, "unknown service")
            return
        self.send(message(bytes([0x08, state])))
        self.finish(OK)


def _service(content: bytes) -> str:
    if not content:
        return ""
    if content[0] != 0x0A or len(content) < 2 or content[1] > 127 or len(content) != 2 + content[1]:
        raise ValueError
    return content[2:].decode()


Opener = Callable[[Stream, Request], Call]


def opened(services: Mapping[bytes, Opener]) -> Callable[[Stream, Request], Call | None]:
    """Opens the call that a request names; answers one that names none."""

    def open_call(stream: Stream, request: Request) -> Call | None:
        kind = request.headers.get(b"content-type", b"")
        if request.headers[b":method"] != b"POST" or not kind.startswith(b"application/grpc"):
            stream.end(_NOT_GRPC)
            return None
        service = services.get(request.path)
        if service is None:
            _Refused(stream, 0).finish(UNIMPLEMENTED, "there is no such method")
            return None
        return service(stream, request)

    return open_call


def refused(stream: Stream, code: int, why: str) -> Call:
    """A call that is answered at once, whatever it is about to say."""
    call = _Refused(stream, 0)
    call.finish(code, why)
    return call
