"""What the engine reads of a person and of a prompt; the persona lives a floor above and is known by its shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
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
        return _numbers(self.seed, self.turn)[CHOICES[what]]

    def before(self) -> Moment:
        """The moment at which the reply before this one arrived; its mood is not known and stays."""
        reply, history, turn = self.history[-2]["content"], self.history[:-2], self.turn - 1
        return Moment(self.person, history, reply, self.mood, self.tier, turn, self.seed, self.difficulty)

    @property
    def language(self) -> Language:
        """The language that the person speaks."""
        return self.person.language

    @property
    def heard(self) -> tuple[str, ...]:
        """The person's own words so far, the opening first."""
        return tuple([message["content"] for message in self.history if message["role"] == "user"])

    @property
    def replies(self) -> tuple[str, ...]:
        """The policy's earlier replies."""
        return tuple([message["content"] for message in self.history if message["role"] == "assistant"])
