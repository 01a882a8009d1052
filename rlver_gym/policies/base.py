"""What writes the assistant's replies: the protocol every policy follows, and what it gives back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from rlver_gym.types import Message, Usage


@dataclass(frozen=True)
class Reply:
    """One reply of a policy.

    Attributes:
        text: what the policy wrote, thoughts included.
        finish_reason: `stop` where the policy ended by itself, `length` where the token limit cut it off.
        usage: what it cost; nothing for a policy that calls no backend.
    """

    text: str
    finish_reason: Literal["stop", "length"] = "stop"
    usage: Usage = field(default_factory=Usage)


class Policy(Protocol):
    """Replies to a user. It knows the dialogue and nothing else: no environment, no persona, no mood.

    One object plays many episodes at once, so a reply is a function of the arguments (and of what a backend answers)
    and leaves nothing behind.
    """

    @property
    def name(self) -> str:
        """Names the policy in results."""

    async def reply(self, messages: Sequence[Message], *, seed: int) -> Reply:
        """The next assistant message.

        Args:
            messages: the dialogue so far without a system message: `user` is the simulated person, `assistant` the
                policy. The last one is the user's.
            seed: a different number for every (episode, member, turn).
        """
        ...

    async def aclose(self) -> None:
        """Release what the policy holds; safe to call twice."""


@runtime_checkable
class Informed(Protocol):
    """A yardstick that plays with the answer in hand: the runner tells it the hidden need, outside the messages."""

    def told(self, need: str) -> Policy:
        """The policy that knows this hidden need (one of `rlver_gym.users.persona.HiddenNeed`)."""
        ...
