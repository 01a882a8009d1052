"""The bridge from Gymnasium's synchronous calls to the asynchronous core: one background event loop a process.

It works inside a running loop (Jupyter, pytest, trainers), since it never touches the caller's. After a fork the child
makes a loop of its own.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_pid = 0


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the background loop and wait for its result; an interrupt cancels it."""
    future = asyncio.run_coroutine_threadsafe(coroutine, _background())
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


def _background() -> asyncio.AbstractEventLoop:
    global _loop, _pid
    with _lock:
        if _loop is None or _pid != os.getpid():
            _loop, _pid = asyncio.new_event_loop(), os.getpid()
            threading.Thread(target=_loop.run_forever, name="rlver_gym", daemon=True).start()
        return _loop


def _forget() -> None:
    """In a forked child: the lock may be held by a thread that does not exist here."""
    global _lock, _loop
    _lock, _loop = threading.Lock(), None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
