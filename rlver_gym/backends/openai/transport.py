"""The way to an endpoint: its address, and one HTTP client per running event loop.

An HTTP client belongs to the loop that made its connections and to the process that opened its sockets: used from
another one it hangs or raises. So there is a lane per loop, closed together with its loop, and a forked child leaves
its parent's lanes behind untouched.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import threading
import weakref
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

import openai

from rlver_gym.errors import SetupError

DEFAULT_URL = "https://api.openai.com/v1"

KEEPALIVE_SECONDS = 4.0
"""Idle connections are let go before the 5 s after which common servers close them, so that none is reused too late."""

_CLOSE_SECONDS = 5.0
_CALL_PATH = "/chat/completions"
_LOCAL_SUFFIXES = (".localhost", ".local", ".internal", ".lan")


@dataclass(frozen=True)
class Endpoint:
    """Address of an OpenAI-compatible endpoint.

    Attributes:
        url: base URL without a trailing slash, query or `/chat/completions`; safe to show.
        host: its host name, in lower case.
        query: parameters that every request carries; may hold secrets and is never shown.
    """

    url: str
    host: str
    query: tuple[tuple[str, str], ...] = ()

    @classmethod
    def parse(cls, text: str) -> Endpoint:
        """Read a base URL in any of its usual forms: without a path (`/v1` is meant), with one, or the full call URL.

        Raises:
            SetupError: it is not an http(s) URL with a host, or it holds a user name or password.
        """
        try:
            parts = urlsplit(text.strip())
            host, port = parts.hostname, parts.port
        except ValueError:
            host = port = None
        if not host or parts.scheme not in ("http", "https"):
            raise SetupError(
                "the base URL of the endpoint must read like 'http://localhost:8000/v1': http or https, host, and path"
            )
        if parts.username or parts.password:
            raise SetupError(f"the base URL of {host} holds a user name or password: put the key into OPENAI_API_KEY")
        path = parts.path.rstrip("/").removesuffix(_CALL_PATH).rstrip("/") or "/v1"
        shown = f"[{host}]" if ":" in host else host
        netloc = f"{shown}:{port}" if port else shown
        return cls(f"{parts.scheme}://{netloc}{path}", host, tuple(parse_qsl(parts.query)))

    @property
    def is_loopback(self) -> bool:
        """Whether it is on this very machine, so that calling it uses no network."""
        address = self._address()
        if address is None:
            return self.host == "localhost" or self.host.endswith(".localhost")
        return address.is_loopback or address.is_unspecified

    @property
    def is_local(self) -> bool:
        """Whether it is on this machine or in a private network: no key is needed, and no proxy is asked."""
        address = self._address()
        if address is None:
            return "." not in self.host or self.host.endswith(_LOCAL_SUFFIXES)
        return not address.is_global

    def _address(self) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
        try:
            address = ipaddress.ip_address(self.host.partition("%")[0])
        except ValueError:
            return None
        return (address.ipv4_mapped or address) if isinstance(address, ipaddress.IPv6Address) else address


def open_client(endpoint: Endpoint, key: str, timeout: float, max_concurrency: int) -> openai.AsyncOpenAI:
    """A client whose pool holds `max_concurrency` connections, and that neither retries nor follows redirects.

    The pool has no timeout: who waits for a slot waits at the lane's semaphore, before the clock of the call starts.
    Redirects are an error, since one could lead from a loopback address out into the network.
    """
    limits = type(openai.DEFAULT_CONNECTION_LIMITS)(
        max_connections=max_concurrency,
        max_keepalive_connections=max_concurrency,
        keepalive_expiry=KEEPALIVE_SECONDS,
    )
    times = openai.Timeout(timeout, pool=None)
    return openai.AsyncOpenAI(
        api_key=key,
        base_url=endpoint.url,
        default_query=dict(endpoint.query),
        max_retries=0,
        timeout=times,
        http_client=openai.DefaultAsyncHttpxClient(
            limits=limits, timeout=times, trust_env=not endpoint.is_local, follow_redirects=False
        ),
    )


class Lane:
    """What belongs to one event loop: a client, and the slots in which calls may run.

    `keeper` is an async generator that closes the client when it is closed itself. A loop closes the generators it has
    seen before it ends, so `asyncio.run` leaves no connection behind.
    """

    def __init__(self, client: openai.AsyncOpenAI, slots: int) -> None:
        self.client = client
        self.slots = asyncio.Semaphore(slots)
        self.keeper = self._keep()
        self._closing: asyncio.Task[None] | None = None

    async def _keep(self) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            await self.start_closing()

    def start_closing(self) -> asyncio.Task[None]:
        """Close the client, once, whoever asks first; to be called on the lane's own loop.

        A loop that ends cancels its tasks, this one too, and then closes the keeper: so a cancelled one is begun anew.
        """
        if self._closing is None or self._closing.cancelled():
            self._closing = asyncio.get_running_loop().create_task(self._close())
        return self._closing

    async def _close(self) -> None:
        await self.client.close()


_left_behind: list[object] = []
"""Lanes of a parent process. Kept for good: finalising one would act on sockets that the parent still uses."""


class Lanes:
    """The lanes of one backend, made when a loop first needs one; usable from several loops and threads."""

    def __init__(self, max_concurrency: int) -> None:
        self._max_concurrency = max_concurrency
        self._start()

    def _start(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._lanes: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Lane] = weakref.WeakKeyDictionary()

    def _leave_parent(self) -> None:
        if self._pid != os.getpid():
            _left_behind.append((self._lock, self._lanes, list(self._lanes.items())))
            self._start()

    async def here(self, open_one: Callable[[], openai.AsyncOpenAI]) -> Lane:
        """The lane of the running loop; `open_one` makes the client of a new one.

        It is handed in here rather than kept: without a cycle of references a backend that nobody holds any more is
        freed at once, and its connections are closed in good order.
        """
        self._leave_parent()
        loop = asyncio.get_running_loop()
        with self._lock:
            for other in [other for other in self._lanes if other.is_closed()]:
                del self._lanes[other]
            if loop in self._lanes:
                return self._lanes[loop]
            self._lanes[loop] = lane = Lane(open_one(), self._max_concurrency)
        await anext(lane.keeper)
        return lane

    def __del__(self) -> None:
        if self._pid != os.getpid():
            _left_behind.append(list(self._lanes.items()))
            return
        for loop, lane in list(self._lanes.items()):
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(lane.start_closing)

    async def aclose(self) -> None:
        """Close every client on its own loop; a lane whose loop is gone or stands still is let go."""
        self._leave_parent()
        with self._lock:
            lanes = list(self._lanes.items())
            self._lanes.clear()
        here = asyncio.get_running_loop()
        for loop, lane in lanes:
            if loop is here:
                await lane.keeper.aclose()
            elif loop.is_running():
                with suppress(RuntimeError):
                    closing = asyncio.run_coroutine_threadsafe(_close(lane), loop)
                    await asyncio.wait([asyncio.wrap_future(closing)], timeout=_CLOSE_SECONDS)


async def _close(lane: Lane) -> None:
    await lane.keeper.aclose()
