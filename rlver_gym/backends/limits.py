"""Powers that any backend gains by being wrapped: here, bounded retries."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

from rlver_gym.backends.base import Backend, Generation, SamplingConfig
from rlver_gym.errors import BackendError, SetupError
from rlver_gym.types import Prompt

_chance = random.SystemRandom()
"""Waiting times alone are drawn from it; they must differ between forked processes and touch no seeded generator."""


class Retrying:
    """Asks a backend again after a fault that may go away by itself, a bounded number of times.

    The wait is the server's hint plus a positive jitter, never less than the hint below `max_delay`; without a hint it
    doubles from `base_delay` and is jittered downwards by up to a half. A single wait is at most
    `max_delay + base_delay`. Other faults, and the last one, are raised as they are, with `error.attempts`.

    Args:
        backend: what to ask.
        attempts: askings in all, at least 1.
        base_delay: seconds before the second asking, about.
        max_delay: seconds, cap on hint and backoff.
        sleep: waits that many seconds.

    Raises:
        SetupError: `attempts` is below 1 or a delay below 0.
    """

    def __init__(
        self,
        backend: Backend,
        attempts: int = 3,
        base_delay: float = 0.5,
        max_delay: float = 30.0,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        if attempts < 1 or base_delay < 0 or max_delay < 0:
            raise SetupError(
                f"Retrying needs attempts >= 1 and delays >= 0, got attempts={attempts}, base_delay={base_delay}, "
                f"max_delay={max_delay}"
            )
        self.backend = backend
        self.attempts = attempts
        self.base_delay = base_delay
        self.max_delay = max_delay
        self._sleep = sleep

    def __repr__(self) -> str:
        return f"Retrying({self.backend!r}, attempts={self.attempts})"

    @property
    def name(self) -> str:
        """Name of the wrapped backend."""
        return self.backend.name

    @property
    def deterministic(self) -> bool:
        """Whether the wrapped backend is."""
        return self.backend.deterministic

    async def generate(self, prompt: Prompt, sampling: SamplingConfig) -> Generation:
        """Answer one prompt, asking again where that can help."""
        attempt = 1
        while True:
            try:
                return await self.backend.generate(prompt, sampling)
            except BackendError as fault:
                fault.details["attempts"] = attempt
                if not fault.retryable or attempt == self.attempts:
                    raise
                delay = self._delay(attempt, fault.details.get("retry_after"))
            await self._sleep(delay)
            attempt += 1

    def _delay(self, attempt: int, hint: float | None) -> float:
        if hint is not None:
            return min(hint, self.max_delay) + _chance.uniform(0.0, self.base_delay)
        return float(min(self.base_delay * 2 ** (attempt - 1), self.max_delay)) * _chance.uniform(0.5, 1.0)

    def report(self, generation: Generation, usable: bool) -> None:
        """Pass on whether an answer could be read."""
        self.backend.report(generation, usable)

    async def aclose(self) -> None:
        """Close the wrapped backend."""
        await self.backend.aclose()
