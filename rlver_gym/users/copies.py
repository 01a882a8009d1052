"""How alike people are: shares of common 5-grams with names and numbers masked, and first lines that begin alike."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from rlver_gym.types import Language
from rlver_gym.users.persona import Persona
from rlver_gym.users.stock import strings

NOT_TOLD = frozenset({"id", "language", "split", "scenario_id", "character_id", "lines", "provenance"})
"""Fields that are no story, character or need."""
GRAM = 5

_UNIT = {"en": re.compile(r"[\w']+"), "zh": re.compile(r"[^\W\d_]|\d+")}
_NUMBER = re.compile(r"\d+|[零〇一二两三四五六七八九十百千万]+(?=[岁年月日号点个块元斤里])")
_CAPITAL = re.compile(r"(?<![.!?:;\"“'\s])(?<!^)\s[A-Z][a-z]+")
"""A capital inside a sentence: a name of somebody or something."""

Grams = frozenset[tuple[str, ...]]


def told(person: Persona) -> str:
    """All of a person but ids, authored lines and provenance."""
    return "\n".join(text for _, text in strings(person.model_dump(exclude=set(NOT_TOLD))) if text)


def masked(text: str, names: Iterable[str], language: Language) -> str:
    """The text without names, places and numbers: a copy that changes only those is equal to its original in it."""
    for name in names:
        text = text.replace(name, " ")
    return _NUMBER.sub(" ", _CAPITAL.sub(" ", text) if language == "en" else text)


def grams(text: str, language: Language) -> Grams:
    """5-grams of words (English) or characters (Chinese)."""
    units = _UNIT[language].findall(text.casefold())
    return frozenset(zip(*(units[start:] for start in range(GRAM)), strict=False))


def grams_of(person: Persona) -> Grams:
    """5-grams of a person, masked."""
    return grams(masked(told(person), names_of(person), person.language), person.language)


def names_of(person: Persona) -> tuple[str, ...]:
    """The person's names, the whole one first."""
    parts = person.name.split() if person.language == "en" else [person.name[-2:]]
    return (person.name, *parts)


def jaccard(one: Grams, other: Grams) -> float:
    """Share of distinct n-grams that two texts have in common, in [0, 1]."""
    union = len(one | other)
    return len(one & other) / union if union else 0.0


def overlaps(texts: Mapping[str, Grams]) -> Iterator[tuple[str, str, float]]:
    """Pairs of names whose texts share any n-gram, with their Jaccard share; texts that share none are not compared."""
    holders: dict[tuple[str, ...], list[str]] = defaultdict(list)
    shared: Counter[tuple[str, str]] = Counter()
    for name, found in texts.items():
        for gram in found:
            for other in holders[gram]:
                shared[other, name] += 1
            holders[gram].append(name)
    for (one, other), common in shared.items():
        yield one, other, common / (len(texts[one]) + len(texts[other]) - common)


def first_words(text: str, names: Sequence[str], language: Language) -> frozenset[str]:
    """Words (in Chinese pairs of characters) of a first line after its first comma, without names and numbers."""
    rest = re.split("[,，]", text, maxsplit=1)[-1]
    bare = masked(rest, names, language).casefold()
    if language == "en":
        return frozenset(re.findall(r"[a-z']+", bare))
    letters = re.sub(r"[\W\d_]", "", bare)
    return frozenset(a + b for a, b in pairwise(letters))
