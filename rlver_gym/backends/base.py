"""The seam where the world is unreliable: one protocol, and everything above it is pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from rlver_gym.types import Prompt, Usage


@dataclass(frozen=True)
class SamplingConfig:
    """How to sample one answer.

    Attributes:
        temperature, top_p: as everywhere.
        max_tokens: cap on the answer in tokens, thoughts included; None leaves it to the endpoint.
        seed: of this call; derived, so that equal calls of a group carry equal seeds.
        attempt: 0 for the first asking, 1 and up after an answer that could not be used: a backend may then ask for a
            structured answer in another way.
    """

    temperature: float = 1.0
    top_p: float = 1.0
    max_tokens: int | None = None
    seed: int | None = None
    attempt: int = 0


_ONE_CALL = Usage(calls=1)


@dataclass(frozen=True)
class Generation:
    """One answer of a backend.

    Attributes:
        text: the answer, thoughts stripped where the backend knows them apart.
        finish_reason: `stop` or `length`, as on the OpenAI wire.
        reasoning: thoughts that came beside the answer, for the record only.
        rung: how a structured answer was asked for: `json_schema`, `json_object`, `lines`, or `` for plain text.
        usage: of this call; model: as the endpoint names it.
        fields: what a structured text says, from a backend that made the text of them; None leaves it to be read.
    """

    text: str
    finish_reason: str = "stop"
    reasoning: str = ""
    rung: str = ""
    usage: Usage = _ONE_CALL
    model: str = ""
    fields: Mapping[str, Any] | None = field(default=None, repr=False, compare=False)


class Backend(Protocol):
    """Anything that answers prompts.

    Attributes:
        name: spec that would make it again, for example `openai:gpt-4.1`; holds no key.
        deterministic: whether equal calls give equal answers, bit for bit, in any process.
    """

    @property
    def name(self) -> str:
        """Spec that would make it again; holds no key."""
        ...

    @property
    def deterministic(self) -> bool:
        """Whether equal calls give equal answers in any process."""
        ...

    async def generate(self, prompt: Prompt, sampling: SamplingConfig) -> Generation:
        """Answer one prompt.

        Raises:
            BackendError: the world failed; which class says how.
        """
        ...

    def report(self, generation: Generation, usable: bool) -> None:
        """Hear whether a structured answer could be read, so that the next one is asked for in a better way."""
        ...

    async def aclose(self) -> None:
        """Release connections; safe to call twice and after the loop that made them is gone."""
        ...


class _Network:
    """The no-network switch. While off, a call to anything but a loopback address raises NetworkDisabledError."""

    def __init__(self) -> None:
        self.allowed = True

    @contextmanager
    def disabled(self) -> Iterator[None]:
        """Switch the network off for a while; a test suite does this once for all its tests."""
        before, self.allowed = self.allowed, False
        try:
            yield
        finally:
            self.allowed = before


network = _Network()
