"""An OpenAI-compatible server on a loopback port, for tests that need to see what goes over the wire.

    with FakeOpenAI(lambda body, index: "Hello.") as server:
        backend = OpenAIBackend("fake", base_url=server.base_url)
        ...
        assert server.requests[0].body["messages"][0]["role"] == "user"

The handler is called once per request, on a thread of its own, with the decoded JSON body and the request's index
(0, 1, ...; unique, in order of arrival). It returns one of

- a `str`: answered as a whole chat completion with that text (see `completion`),
- a `dict`: answered as JSON with status 200, as it is,
- a `Response`: status, headers, body, and how slowly or badly it is sent.

`hang()` is a Response that never comes; `drop()` closes the connection without an answer; `error(status, message)` is
an error as OpenAI words it. A GET lists one model, `fake`, without the handler. If the handler
raises, the answer is a 500 that holds the traceback.

Every server's `base_url` has a path of its own, so that what is remembered per base URL never leaks between tests, even
if the system hands out a port twice; the server answers at any path. `root` is the URL without a path. It serves at
least 64 requests at the same time, and leaving the `with` block ends those that are still waiting.
"""

from __future__ import annotations

import itertools
import json
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

_numbers = itertools.count()
_FOREVER = 3600.0


@dataclass(frozen=True)
class Response:
    """How to answer one request.

    Attributes:
        status: of HTTP; headers: to add; body: JSON for a dict, sent as it is otherwise.
        delay: seconds before anything is sent.
        trickle: seconds between the body's single bytes, 0 to send it at once.
        drop: close the connection instead of answering.
    """

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: dict[str, Any] | str | bytes = b""
    delay: float = 0.0
    trickle: float = 0.0
    drop: bool = False


Handler = Callable[[dict[str, Any], int], "dict[str, Any] | str | Response"]


@dataclass
class Request:
    """One request as it arrived.

    Attributes:
        headers: names in lower case; body: decoded; port: the client's, the same for one connection.
        t_start, t_end: by `time.monotonic`; `t_end` is 0 until the answer is sent.
    """

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    port: int
    t_start: float
    t_end: float = 0.0


def completion(
    text: str | None, *, finish_reason: str = "stop", model: str = "fake", usage: Any = ..., **message: Any
) -> dict[str, Any]:
    """A chat completion; `message` adds fields to its message, `usage` is left out if it is None."""
    if usage is ...:
        usage = {"prompt_tokens": 11, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 5}}
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [
            {
                "index": 0,
                "finish_reason": finish_reason,
                "message": {"role": "assistant", "content": text, **message},
            }
        ],
    }
    return body if usage is None else {**body, "usage": usage}


def error(status: int, message: str, *, headers: dict[str, str] | None = None, **fields: Any) -> Response:
    """An error as OpenAI words it; `fields` adds `param`, `code` or `type`."""
    return Response(status, headers or {}, {"error": {"message": message, **fields}})


def hang() -> Response:
    """An answer that never comes."""
    return Response(delay=_FOREVER)


def drop() -> Response:
    """A connection that is closed without an answer."""
    return Response(drop=True)


class FakeOpenAI:
    """The server; a context manager, started on entry.

    Attributes:
        requests: what arrived so far, in order.
        root: URL without a path; base_url: with one that no other server has, ending in `/v1`.
    """

    def __init__(self, handler: Handler) -> None:
        self.handler = handler
        self.requests: list[Request] = []
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _Connection)
        self._server.owner = self
        self.root = f"http://127.0.0.1:{self._server.server_address[1]}"
        self.base_url = f"{self.root}/{next(_numbers)}/v1"

    def __enter__(self) -> FakeOpenAI:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """Bodies of the requests, in order."""
        return [request.body for request in self.requests]

    def wait(self, seconds: float) -> bool:
        """Wait; True if the server closes meanwhile."""
        return self._closing.wait(seconds)

    def note(self, request: Request) -> int:
        """Keep a request; gives its index."""
        with self._lock:
            self.requests.append(request)
            return len(self.requests) - 1


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256
    owner: FakeOpenAI

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is what some tests are about."""


class _Connection(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def do_POST(self) -> None:
        owner = self.server.owner
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.path, headers, json.loads(raw), self.client_address[1], time.monotonic())
        index = owner.note(request)
        try:
            answer = owner.handler(request.body, index)
        except Exception:
            answer = Response(500, {}, traceback.format_exc())
        self._send(owner, answer)
        request.t_end = time.monotonic()

    def do_GET(self) -> None:
        """The list of models: one, `fake`."""
        models = [{"id": "fake", "object": "model", "created": 1, "owned_by": "nobody"}]
        self._send(self.server.owner, {"object": "list", "data": models})

    def _send(self, owner: FakeOpenAI, answer: dict[str, Any] | str | Response) -> None:
        if isinstance(answer, str):
            answer = completion(answer)
        if isinstance(answer, dict):
            answer = Response(body=answer)
        if (answer.delay and owner.wait(answer.delay)) or answer.drop:
            self.close_connection = True
            return
        is_json = isinstance(answer.body, dict)
        body = json.dumps(answer.body) if isinstance(answer.body, dict) else answer.body
        data = body.encode("utf-8") if isinstance(body, str) else body
        self.send_response(answer.status)
        fixed = {"content-type": "application/json" if is_json else "text/plain", "content-length": str(len(data))}
        for name, value in (fixed | answer.headers).items():
            self.send_header(name, value)
        self.end_headers()
        if not answer.trickle:
            self.wfile.write(data)
            return
        for byte in data:
            self.wfile.write(bytes([byte]))
            if owner.wait(answer.trickle):
                return

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing on stderr."""
