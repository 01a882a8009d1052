"""A policy that is a chat model on any backend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rlver_gym.backends.base import Backend, SamplingConfig
from rlver_gym.policies.base import Reply
from rlver_gym.prompts import render
from rlver_gym.text import has_chinese
from rlver_gym.types import Message

MAX_TOKENS = 1_024
"""Cap on one reply, thoughts included."""


class ChatPolicy:
    """Answers with a chat model, told to meet what the other person needs.

    Args:
        backend: where the replies come from.
        think: ask for think-then-say, `<think>...</think>` and then the words that are said.
        temperature: of sampling; 1.0 as in RLVER's rollouts.
        max_tokens: cap on one reply, thoughts included.
    """

    def __init__(
        self, backend: Backend, *, think: bool = False, temperature: float = 1.0, max_tokens: int = MAX_TOKENS
    ) -> None:
        self.backend = backend
        self.name = backend.name
        self._prompt = "policy_think" if think else "policy_direct"
        self._sampling = SamplingConfig(temperature=temperature, max_tokens=max_tokens)

    async def reply(self, messages: Sequence[Message], *, seed: int) -> Reply:
        """The next reply, in the language that the other side writes.

        Raises:
            BackendError: the backend failed.
        """
        language = "zh" if any(has_chinese(m["content"]) for m in messages if m["role"] == "user") else "en"
        prompt = render(self._prompt, dialogue=tuple(messages), language=language)
        answer = await self.backend.generate(prompt, replace(self._sampling, seed=seed % 2**31))
        return Reply(answer.text, "length" if answer.finish_reason == "length" else "stop", answer.usage)

    async def aclose(self) -> None:
        """Close the backend."""
        await self.backend.aclose()
