"""Rules that shipped people keep: adults, one language, enough substance and lines, the need unsaid, no copies."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from rlver_gym.text import has_chinese
from rlver_gym.users.persona import Persona
from rlver_gym.users.reply import leaks
from rlver_gym.users.safety import crisis_signal

MIN_WORDS, MIN_CHARACTERS = 650, 1_800
"""Least substance of a person without authored lines: English words, Chinese characters."""
MIN_LINES = 12
MAX_JACCARD = 0.25
"""Largest share of 5-grams (English words, Chinese characters) that two people may have in common, names masked."""
_NO_SUBSTANCE = {"id", "language", "split", "scenario_id", "character_id", "lines", "provenance"}


class Problem(NamedTuple):
    """One broken rule: whose, which, where, and what is wrong."""

    persona: str
    rule: str
    field: str
    text: str


def check_people(people: Sequence[Persona]) -> list[Problem]:
    """All broken rules of all people; people without authored lines (imported ones) are only compared."""
    problems = [problem for person in people if person.lines for problem in _check_one(person)]
    grams = {person.id: ngrams(person) for person in people}
    for one, other in combinations(people, 2):
        shared = jaccard(grams[one.id], grams[other.id])
        if shared > MAX_JACCARD:
            problems.append(Problem(one.id, "copy", "", f"shares {shared:.2f} of its 5-grams with {other.id}"))
    scenarios: dict[str, set[str]] = {}
    for person in people:
        scenarios.setdefault(person.scenario_id, set()).add(person.split)
        scenarios.setdefault(person.character_id, set()).add(person.split)
    both = (name for name, splits in scenarios.items() if len(splits) > 1)
    problems += [Problem("", "split", name, "stands in train and in test") for name in both]
    return problems


def substance(person: Persona) -> int:
    """How much there is to a person without authored lines: English words, or Chinese characters."""
    text = " ".join(text for _, text in strings(person) if text)
    return len(re.findall("[\u4e00-\u9fff]", text)) if person.language == "zh" else len(text.split())


def strings(person: Persona) -> Iterator[tuple[str, str]]:
    """Every text of a person that is no id, authored line or provenance, with the name of its field."""
    yield from _strings(person.model_dump(exclude=_NO_SUBSTANCE), "")


def ngrams(person: Persona) -> Counter[tuple[str, ...]]:
    """5-grams of a person's texts with the name masked: words in English, characters in Chinese."""
    grams: Counter[tuple[str, ...]] = Counter()
    for _, text in strings(person):
        for name in (person.name, *person.name.split()):
            text = text.replace(name, "·")
        units = re.findall(r"[\w']+", text.casefold()) if person.language == "en" else re.findall(r"\w", text)
        grams.update(zip(*(units[start:] for start in range(5)), strict=False))
    return grams


def jaccard(one: Counter[tuple[str, ...]], other: Counter[tuple[str, ...]]) -> float:
    """Share of distinct n-grams that two texts have in common, in [0, 1]."""
    union = len(one.keys() | other.keys())
    return len(one.keys() & other.keys()) / union if union else 0.0


def _check_one(person: Persona) -> Iterator[Problem]:
    if person.age is None or person.age < 18:
        yield Problem(person.id, "adult", "age", f"must be 18 or more, is {person.age}")
    least = MIN_CHARACTERS if person.language == "zh" else MIN_WORDS
    if substance(person) < least:
        yield Problem(person.id, "substance", "", f"{substance(person)} words or characters, must be {least} or more")
    if len(person.lines) < MIN_LINES:
        yield Problem(person.id, "lines", "lines", f"{len(person.lines)} lines, at least {MIN_LINES} are asked for")
    spoken = [("openings", text) for text in person.openings] + [("lines", line.text) for line in person.lines]
    for field, text in spoken:
        if leaks(text, person.need_text):
            yield Problem(person.id, "need", field, f"states the hidden need: {text!r}")
    for text, times in Counter(text for _, text in spoken).items():
        if times > 1:
            yield Problem(person.id, "repeat", "lines", f"stands {times} times: {text!r}")
    for field, text in [*strings(person), *spoken]:
        if field.rpartition(".")[2] == "gender" or field in ("temperament", "hidden_need"):
            continue
        if person.language == "en" and has_chinese(text):
            yield Problem(person.id, "language", field, f"holds Chinese: {text[:60]!r}")
        if person.language == "zh" and re.search("[A-Za-z]{2}", text):
            yield Problem(person.id, "language", field, f"holds Latin words: {text[:60]!r}")
        if crisis_signal(text):
            yield Problem(person.id, "safety", field, f"holds a crisis signal: {text[:60]!r}")


def _strings(value: Any, place: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _strings(part, f"{place}.{name}" if place else name)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _strings(part, place)
    elif isinstance(value, str):
        yield place, value
