"""The persona: a frozen description of one simulated user, as read from `personas/` or imported from elsewhere.

A persona says who the person is, what happened, what they hide and how they speak. It holds no mood and no history:
those are the state of an episode (`rlver_gym.users.simulator.UserState`).
"""

from __future__ import annotations

import hashlib
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from rlver_gym.types import Language, Tier

Text = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]

HiddenNeed = Literal["analysis", "advice", "motives", "reflection", "praise", "listening", "empathy", "not_my_fault"]
"""SAGE's eight hidden needs. Source: arXiv 2505.02847; `not_my_fault` pays for sycophancy and is reported apart."""

Temperament = Literal["negative", "passive", "avoidant", "even"]
"""SAGE's three character groups, and an even-tempered fourth."""

Openness = Literal["open", "guarded"]


class Part(BaseModel):
    """Base of every part of a persona: frozen, and unknown fields are an error rather than silently lost."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Event(Part):
    """One dated point of the story, with what the person thought at that point, in the first person."""

    when: Text
    what: Text
    thought: str = ""


class Background(Part):
    """What happened: cause, dated timeline, conflict and its inner reason, what was tried, where it stands now."""

    cause: str = ""
    timeline: tuple[Event, ...] = ()
    conflict: str = ""
    conflict_reason: str = ""
    tried: tuple[Text, ...] = ()
    current: str = ""


class Voice(Part):
    """How the person speaks, with a few sample phrases."""

    style: str = ""
    phrases: tuple[Text, ...] = ()


class MoodSigns(Part):
    """How the person's mood shows in words and manner when it is high, in the middle and low."""

    high: str = ""
    middle: str = ""
    low: str = ""


class Line(Part):
    """A line the author gave the person, for a tier of mood and a degree of openness."""

    tier: Tier
    openness: Openness
    text: Text


class Provenance(Part):
    """Where a persona comes from and on what terms it may be used.

    Attributes:
        generator: what drafted the text, or empty; reviewed: whether a person has read and accepted it since.
    """

    license: Text
    source: Text
    author: Text
    generator: str = ""
    reviewed: bool = False


class Persona(Part):
    """One simulated user, frozen.

    Attributes:
        id: unique name, also the file's stem in `personas/`.
        language: language that the person speaks and is described in.
        split: `train` for learning, `test` only for evaluation; the two share no scenario and no character.
        hidden_need: which of the eight needs the person hides.
        need_text: the sentence that the person hides; never shown to a policy, never said by the person.
        opening: the first of `openings`.
        lines: authored lines by tier and openness; empty for imported people.
        scenario_id: what happened (people may share it); character_id: to whom.
    """

    id: Text
    language: Language
    split: Literal["train", "test"] = "train"
    scenario_id: Text
    character_id: Text

    name: Text
    age: int | None = Field(default=None, ge=0, le=120)
    gender: str = ""
    occupation: str = ""
    interests: tuple[Text, ...] = ()
    habits: str = ""
    temperament: Temperament
    traits: tuple[Text, ...] = ()
    voice: Voice = Voice()

    hidden_need: HiddenNeed
    need_text: Text
    goal: str = ""
    background: Background = Background()
    profile: str = ""
    """Free text of an imported person whose source has no such parts; empty for our own people."""

    mood_signs: MoodSigns = MoodSigns()
    raises: tuple[Text, ...] = ()
    lowers: tuple[Text, ...] = ()

    openings: Annotated[tuple[Text, ...], Field(min_length=1)]
    lines: tuple[Line, ...] = ()
    provenance: Provenance

    @property
    def opening(self) -> str:
        """The person's usual first words."""
        return self.openings[0]

    @property
    def content_hash(self) -> str:
        """Hash of everything above, 16 hex digits: equal people in two processes have equal hashes."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:16]
