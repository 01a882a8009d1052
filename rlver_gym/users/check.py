"""Rules that shipped people keep: adults, one language, nothing sensitive, substance, the need unsaid, no copies."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple, get_args

from rlver_gym.types import Tier
from rlver_gym.users import wording
from rlver_gym.users.copies import grams_of, overlaps, told
from rlver_gym.users.persona import Persona
from rlver_gym.users.reply import leaks, normal
from rlver_gym.users.stock import strings

MIN_WORDS, MIN_CHARACTERS = 650, 1_800
"""Least substance of a person without authored lines: English words, Chinese characters."""
MIN_LINES = 12
MAX_JACCARD = 0.25
"""Largest share of masked 5-grams (English words, Chinese characters) that people of different scenarios may share."""
_CODES = frozenset({"id", "language", "split", "scenario_id", "character_id", "gender", "temperament", "hidden_need"})
_ABOUT_SELF = ("occupation", "habits", "traits", "interests", "voice", "profile")


class Problem(NamedTuple):
    """One broken rule: whose, which, where, and what is wrong."""

    persona: str
    rule: str
    field: str
    text: str


def check_people(people: Sequence[Persona]) -> list[Problem]:
    """All broken rules of all people; those without authored lines (imported ones) are only compared with others."""
    problems = [problem for person in people if person.lines for problem in _check_one(person)]
    return [*problems, *_copies(people), *_openings(people), *_splits(people)]


def substance(person: Persona) -> int:
    """How much there is to a person without authored lines: English words, or Chinese characters."""
    text = told(person)
    return len(re.findall("[\u4e00-\u9fff]", text)) if person.language == "zh" else len(text.split())


def _check_one(person: Persona) -> Iterator[Problem]:
    yield from (Problem(person.id, rule, field, text) for rule, field, text in _form(person))
    for field, text in strings(person.model_dump(exclude={"provenance"})):
        if field not in _CODES and not field.startswith(("lines.tier", "lines.openness")):
            yield from (Problem(person.id, rule, field, said) for rule, said in _text(person, field, text))
    spoken = [("openings", text) for text in person.openings] + [("lines.text", line.text) for line in person.lines]
    for field, text in spoken:
        if leaks(text, person.need_text):
            yield Problem(person.id, "need", field, f"states the hidden need: {text!r}")
        elif found := wording.asks(text, person.hidden_need):
            yield Problem(person.id, "need", field, f"asks for the hidden need ({found!r}): {text!r}")
    for said, times in Counter(normal(text) for _, text in spoken).items():
        if times > 1:
            first = next(text for _, text in spoken if normal(text) == said)
            yield Problem(person.id, "repeat", "lines", f"stands {times} times: {first!r}")


def _form(person: Persona) -> Iterator[tuple[str, str, str]]:
    """Rules on the person as a whole: rule, field, what is wrong."""
    if person.age is None or person.age < wording.ADULT:
        yield "adult", "age", f"must be {wording.ADULT} or more, is {person.age}"
    least = MIN_CHARACTERS if person.language == "zh" else MIN_WORDS
    if substance(person) < least:
        yield "substance", "", f"{substance(person)} words or characters, must be {least} or more"
    missing = set(get_args(Tier)) - {line.tier for line in person.lines}
    if len(person.lines) < MIN_LINES or missing:
        lacking = f", none for {', '.join(sorted(missing))}" if missing else ""
        yield "lines", "lines", f"{len(person.lines)} lines, at least {MIN_LINES} are asked for{lacking}"


def _text(person: Persona, field: str, text: str) -> Iterator[tuple[str, str]]:
    """Rules on one text: rule, what is wrong."""
    shown = f"{text[:60]!r}"
    if found := wording.minor(text, about_self=field.startswith(_ABOUT_SELF)):
        yield "adult", f"says that the person is under age ({found!r}): {shown}"
    if found := wording.contact(text):
        yield "contact", f"holds contact data ({found!r}): {shown}"
    if found := wording.foreign(text, person.language):
        yield "language", f"holds {found!r}, which is another script: {shown}"
    if found := wording.sensitive(text):
        yield "safety", f"holds {found!r}: {shown}"


def _copies(people: Sequence[Persona]) -> Iterator[Problem]:
    """People of different scenarios that are nearly the same."""
    by_id = {person.id: person for person in people}
    for first, second, share in overlaps({person.id: grams_of(person) for person in people}):
        one, other = by_id[first], by_id[second]
        if share > MAX_JACCARD and one.scenario_id != other.scenario_id:
            rule = "copy" if one.split == other.split else "leak"
            yield Problem(first, rule, "", f"shares {share:.2f} of its 5-grams with {second}")


def _openings(people: Sequence[Persona]) -> Iterator[Problem]:
    """First words that two people of a split share."""
    holders: dict[tuple[str, str], list[str]] = defaultdict(list)
    for person in people:
        if person.lines:
            for text in person.openings:
                holders[person.split, normal(text)].append(person.id)
    for (split, _), ids in holders.items():
        for other in sorted(set(ids))[1:]:
            yield Problem(other, "opening", "openings", f"begins like {min(ids)} of the same split ({split})")


def _splits(people: Sequence[Persona]) -> Iterator[Problem]:
    splits: dict[str, set[str]] = defaultdict(set)
    for person in people:
        splits[person.scenario_id].add(person.split)
        splits[person.character_id].add(person.split)
    for name, found in splits.items():
        if len(found) > 1:
            yield Problem("", "split", name, "stands in train and in test")
