"""The stock that people are composed of: scenarios (what happened) and characters (to whom), written by hand.

A scenario is told of anybody: `{name}` stands for the person, `{he}`, `{him}`, `{his}` and `{himself}` (in Chinese
`{ta}`) for the pronouns, with a capital where a sentence begins. A character says who can play it. What fits together
and how it becomes a persona stands in `rlver_gym.users.generate`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from rlver_gym.types import Language
from rlver_gym.users.persona import Background, HiddenNeed, Line, MoodSigns, Part, Temperament, Text, Voice

Gender = Literal["female", "male"]
Stage = Literal["student", "working", "retired"]
Family = Literal["single", "partner", "children", "grown_children"]
Split = Literal["train", "test"]

PRONOUNS: Mapping[Gender, Mapping[str, str]] = {
    "female": {"he": "she", "him": "her", "his": "her", "himself": "herself", "ta": "她"},
    "male": {"he": "he", "him": "him", "his": "his", "himself": "himself", "ta": "他"},
}
SLOTS: Mapping[Language, frozenset[str]] = {
    "en": frozenset({"name", "he", "him", "his", "himself"}),
    "zh": frozenset({"name", "ta"}),
}
_SLOT = re.compile(r"\{([^{}]*)\}")


class Who(Part):
    """Whom a scenario can happen to.

    Attributes:
        ages: youngest and oldest; gender: None for anybody; stages: of life.
        occupation: what the person does where the story is about that work; empty for the character's own.
        family: what the person must have; single and partner exclude each other.
    """

    ages: tuple[int, int]
    gender: Gender | None = None
    stages: tuple[Stage, ...] = ("working",)
    occupation: str = ""
    family: tuple[Family, ...] = ()


class NeedCase(Part):
    """What one hidden need means in a scenario: the sentence that is hidden, what is said instead, what helps."""

    need_text: Text
    goal: Text
    raises: Annotated[tuple[Text, ...], Field(min_length=3)]
    lowers: Annotated[tuple[Text, ...], Field(min_length=3)]


class Opening(Part):
    """First words; for these temperaments and needs, or for all where none is named."""

    text: Text
    temperaments: tuple[Temperament, ...] = ()
    needs: tuple[HiddenNeed, ...] = ()


class StockScenario(Part):
    """What happened, with everything that depends on it.

    Attributes:
        region: where it is at home: `us`, `uk` or `cn`.
        parallel: name that it shares with its twin in the other language, or empty.
        split: of all people that it happens to.
    """

    id: Text
    language: Language
    split: Split = "train"
    region: Literal["us", "uk", "cn"]
    topic: Text
    parallel: str = ""
    who: Who
    background: Background
    needs: Annotated[dict[HiddenNeed, NeedCase], Field(min_length=3)]
    openings: Annotated[tuple[Opening, ...], Field(min_length=6)]
    lines: Annotated[tuple[Line, ...], Field(min_length=20)]

    @model_validator(mode="after")
    def _slots_where_they_belong(self) -> Self:
        told = {"background", "needs"}
        for place, text in strings(self.model_dump(include=told)):
            spoken = place.endswith(("thought", "need_text"))
            if strange := {name.lower() for name in _SLOT.findall(text)} - (set() if spoken else SLOTS[self.language]):
                raise ValueError(f"{place} holds {{{min(strange)}}}: known are {sorted(SLOTS[self.language])}")
        for place, text in strings(self.model_dump(exclude=told)):
            if "{" in text:
                raise ValueError(f"{place} holds a slot, but what the person says has none")
        return self

    @cached_property
    def text(self) -> str:
        """All that is told and said, casefolded, for the search of names."""
        return "\n".join(text for _, text in strings(self.model_dump())).casefold()


class StockCharacter(Part):
    """Who it happens to.

    Attributes:
        split: of all people that the character becomes.
        ages: the years of age that the character can be told at.
        family: what the character has.
        habits, traits, voice: name no place, no job and no relative, so that any fitting scenario can be theirs.
    """

    id: Text
    language: Language
    split: Split = "train"
    region: Literal["us", "uk", "cn"]
    name: Text
    gender: Gender
    ages: tuple[int, int]
    stage: Stage
    occupation: Text
    family: Annotated[tuple[Family, ...], Field(min_length=1)]
    interests: Annotated[tuple[Text, ...], Field(min_length=3, max_length=3)]
    habits: Text
    temperament: Temperament
    traits: Annotated[tuple[Text, ...], Field(min_length=3, max_length=3)]
    voice: Voice
    mood_signs: MoodSigns

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if ("single" in self.family) == ("partner" in self.family):
            raise ValueError("family must name one of single and partner")
        return self

    @property
    def called(self) -> str:
        """The name that the story uses: the given name in English, the whole one in Chinese."""
        return self.name.split()[0] if self.language == "en" else self.name

    def shares_a_name_with(self, scenario: StockScenario) -> bool:
        """Whether somebody in the scenario has one of the character's names; in Chinese the given name counts."""
        if self.language == "zh":
            return self.name[-2:] in scenario.text
        return any(re.search(rf"\b{re.escape(name.casefold())}\b", scenario.text) for name in self.name.split())


class Stock(NamedTuple):
    """All that people can be composed of."""

    scenarios: tuple[StockScenario, ...]
    characters: tuple[StockCharacter, ...]


def fill(value: Any, slots: Mapping[str, str]) -> Any:
    """The value with the slots of all its texts filled; a slot with a capital gets one."""
    if isinstance(value, dict):
        return {name: fill(part, slots) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [fill(part, slots) for part in value]
    return _SLOT.sub(lambda match: _word(match.group(1), slots), value) if isinstance(value, str) else value


def strings(value: Any, place: str = "") -> Iterator[tuple[str, str]]:
    """Every text in nested data with the path of its field, numbers of list items left out."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from strings(part, f"{place}.{name}" if place else name)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from strings(part, place)
    elif isinstance(value, str):
        yield place, value


def _word(slot: str, slots: Mapping[str, str]) -> str:
    return slots[slot] if slot in slots else slots[slot.lower()].capitalize()
