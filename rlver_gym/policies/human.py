"""A policy that is the person at the keyboard."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from rlver_gym.policies.base import Reply
from rlver_gym.types import Message


class HumanPolicy:
    """Asks somebody for each reply.

    Args:
        ask: shows the dialogue and returns what the person typed; called in a thread of its own.
    """

    name = "human"

    def __init__(self, ask: Callable[[Sequence[Message]], str]) -> None:
        self._ask = ask

    async def reply(self, messages: Sequence[Message], *, seed: int) -> Reply:
        """What the person types; whatever `ask` raises passes through."""
        return Reply(await asyncio.to_thread(self._ask, messages))

    async def aclose(self) -> None:
        """Nothing to close."""
