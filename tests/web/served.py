"""A served page for tests: its server in a thread of this process, on a port of its own."""

import json
import threading
import urllib.error
import urllib.request
from contextlib import contextmanager

import uvicorn

from cosmo.web.server import listening
from slow import LIMIT_S, wait_until

TOKEN = "a-token-that-tests-know"


@contextmanager
def served(make):
    """`make(port, token)` gives the application; its address."""
    found = listening()
    port = found.getsockname()[1]
    config = uvicorn.Config(
        make(port, TOKEN), log_level="critical", access_log=False, timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [found]})
    thread.start()
    try:
        wait_until(lambda: server.started, "the server listens")
        yield f"http://127.0.0.1:{port}/{TOKEN}/"
    finally:
        server.should_exit = True
        thread.join()
        found.close()


def asked(url, body=None, **headers):
    """(status, headers, text) of a request; a body is posted as JSON."""
    if body is not None:
        headers = {"Content-Type": "application/json", **headers}
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(url, data=body, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=LIMIT_S) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers, error.read().decode()
