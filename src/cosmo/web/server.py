"""A page with its data, served on a loopback address to whoever knows the token in its URL."""

import json
import secrets
import socket
import webbrowser
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from cosmo.errors import InputError
from cosmo.report.markup import filled, in_html
from cosmo.report.page import part

HOST = "127.0.0.1"
_MOST_BYTES = 65_536  # of what a page sends
_SCRIPTS = ("helpers.js", "film.js", "map.js", "player.js")
# Own scripts and styles, own data; nothing inline, nothing from or to elsewhere, no frames.
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"
        " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
}

Events = Callable[[], AsyncIterator[dict[str, Any]]]
Answer = Callable[[Any], Awaitable[dict[str, Any]]]


def listening() -> socket.socket:
    """A socket on a loopback address, with a port that the system chooses."""
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    found.bind((HOST, 0))
    return found


def application(
    name: str,
    title: str,
    port: int,
    token: str,
    events: Events,
    answers: Mapping[str, Answer],
    lifespan: Any = None,
) -> Starlette:
    """The page `name`, its event stream, and what it may ask for; all under the token.

    An answer gets what the page sends as JSON; its InputError becomes the page's one-line message.
    """
    script = "".join(map(part, (*_SCRIPTS, f"{name}.js")))
    style = part("report.css") + part("map.css") + part("served.css")
    body = filled(part(f"{name}.html"), {"MAP": part("map.html")})
    page = filled(part("served.html"), {"TITLE": in_html(title), "BODY": body})

    def guarded(handle: Callable[[Request], Awaitable[Response]]) -> Any:
        async def answer(request: Request) -> Response:
            hosts = {f"{HOST}:{port}", f"localhost:{port}"}
            known = secrets.compare_digest(request.path_params["token"].encode(), token.encode())
            if request.headers.get("host") not in hosts or not known:
                return PlainTextResponse("not here\n", 404, _HEADERS)
            response = await handle(request)
            response.headers.update(_HEADERS)
            return response

        return answer

    def text(body: str, kind: str) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            return Response(body, media_type=kind)

        return answer

    async def stream(request: Request) -> Response:
        async def lines() -> AsyncIterator[str]:
            async for each in events():
                yield f"data: {json.dumps(each, allow_nan=False, separators=(',', ':'))}\n\n"

        return StreamingResponse(lines(), media_type="text/event-stream")

    def asked(handle: Answer) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            if request.headers.get("content-type") != "application/json":
                return JSONResponse({"error": "must be JSON"}, 415)
            body = bytearray()
            async for piece in request.stream():
                body += piece
                if len(body) > _MOST_BYTES:
                    return JSONResponse({"error": f"must be at most {_MOST_BYTES} bytes"}, 413)
            try:
                return JSONResponse(await handle(json.loads(body)))
            except InputError as error:
                return JSONResponse({"error": str(error)}, 422)
            except (ValueError, RecursionError):
                return JSONResponse({"error": "must be JSON"}, 400)

        return answer

    routes = [
        Route("/{token}/", guarded(text(page, "text/html"))),
        Route("/{token}/page.js", guarded(text(script, "text/javascript"))),
        Route("/{token}/page.css", guarded(text(style, "text/css"))),
        Route("/{token}/events", guarded(stream)),
    ]
    routes += [
        Route(f"/{{token}}/{path}", guarded(asked(handle)), methods=["POST"])
        for path, handle in answers.items()
    ]
    return Starlette(routes=routes, lifespan=lifespan)


def serve(make: Callable[[int, str], Starlette], opened: bool, tell: Callable[[str], None]) -> None:
    """Serve an application until it is interrupted; `make` is given the port and a new token."""
    token, found = secrets.token_urlsafe(16), listening()
    port = int(found.getsockname()[1])
    url = f"http://{HOST}:{port}/{token}/"
    config = uvicorn.Config(
        make(port, token), log_level="critical", access_log=False, timeout_graceful_shutdown=1
    )
    tell(f"open {url} (Ctrl-C ends it)")
    if opened:
        webbrowser.open(url)
    with found:
        uvicorn.Server(config).run(sockets=[found])
