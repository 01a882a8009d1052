"""What the engine reads of a person and of a prompt; the persona lives a floor above and is known by its shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Protocol

from rlver_gym.seeding import child_numbers
from rlver_gym.types import Language, Message, Tier


class SpokenLine(Protocol):
    """A line that the author gave the person."""

    tier: str
    openness: str
    text: str


class StoryPoint(Protocol):
    """A dated point of the story, with what the person thought then."""

    thought: str


class Story(Protocol):
    """What happened to the person."""

    timeline: Sequence[StoryPoint]


class Person(Protocol):
    """The part of a persona that the engine reads; it changes none of it."""

    id: str
    language: Language
    temperament: str
    hidden_need: str
    need_text: str
    background: Story
    lines: Sequence[SpokenLine]


CHOICES = {
    what: index
    for index, what in enumerate(
        ("openness", "line", "react", "reaction", "asked", "felt", "feels", "thought", "second thought", "feeling")
    )
}
"""What chance decides in a turn."""


@lru_cache(maxsize=1024)
def _numbers(seed: int, turn: int) -> tuple[int, ...]:
    return child_numbers(seed, "user", turn)


@dataclass(frozen=True)
class Moment:
    """Where the talk stands when a reply arrives.

    Attributes:
        history: up to the person's last words; the reply is not in it.
        mood: before the reply for an appraisal, after it for an answer; tier: of that mood.
        turn: 1 for the first reply.
        difficulty: hundredths, 0 (open) to 100 (reserved), so that all arithmetic stays in integers.
    """

    person: Person
    history: tuple[Message, ...]
    reply: str
    mood: int
    tier: Tier
    turn: int
    seed: int
    difficulty: int

    @classmethod
    def of(cls, variables: Mapping[str, Any]) -> Moment:
        """Read the variables of a user prompt."""
        return cls(
            person=variables["persona"],
            history=tuple(variables["history"]),
            reply=variables["reply"],
            mood=variables["mood"],
            tier=variables["tier"],
            turn=variables["turn"],
            seed=variables["seed"],
            difficulty=round(100 * variables["difficulty"]),
        )

    def choice(self, what: str) -> int:
        """A number in [0, 2**32) for one of the CHOICES of this turn."""
        return self._numbers[CHOICES[what]]

    @cached_property
    def _numbers(self) -> tuple[int, ...]:
        return _numbers(self.seed, self.turn)

    def before(self) -> Moment:
        """The moment at which the reply before this one arrived; its mood is not known and stays."""
        return replace(self, history=self.history[:-2], reply=self.history[-2]["content"], turn=self.turn - 1)

    @cached_property
    def language(self) -> Language:
        """The language that the person speaks."""
        return self.person.language

    @cached_property
    def heard(self) -> tuple[str, ...]:
        """The person's own words so far, the opening first."""
        return tuple([message["content"] for message in self.history if message["role"] == "user"])

    @cached_property
    def replies(self) -> tuple[str, ...]:
        """The policy's earlier replies."""
        return tuple([message["content"] for message in self.history if message["role"] == "assistant"])
