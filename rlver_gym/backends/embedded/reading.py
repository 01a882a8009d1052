"""One text as the engine sees it: sentences, units, content words, and what its phrases do.

English is read by words and Chinese by characters; everything after this file treats both alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import chain, pairwise
from typing import NamedTuple

from rlver_gym.backends.embedded.tables import Lexicon, lexicon
from rlver_gym.types import Language

_ENGLISH = re.compile(r"[a-z0-9]+(?:'[a-z]+)?|[.!?\n]+")
_CHINESE = re.compile(r"[\u3400-\u9fffa-z0-9]|[。！？!?…\n]+|\.{2,}")
_APOSTROPHES = str.maketrans({"\u2019": "'", "\u2018": "'", "\u02bc": "'"})
_QUOTED = re.compile('["\u201c\u300c\u300e]([^"\u201c\u201d\u300c\u300d\u300e\u300f]{1,200})["\u201d\u300d\u300f]')
_QUOTE_MARKS = frozenset('"\u201c\u300c\u300e')
_QUESTION_END = re.compile(r"[吗呢]$")

RUN = {"en": 4, "zh": 6}
"""Units in a row that make a copy rather than a shared word."""


class Sentence(NamedTuple):
    """A sentence.

    Attributes:
        units: its words or characters; content: its content words (stems, or pairs of characters).
        marks: what its phrases do, and how often.
        asks: whether it ends as a question.
    """

    units: tuple[str, ...]
    content: frozenset[str]
    marks: Mapping[str, int]
    asks: bool


class Reading(NamedTuple):
    """A text, read once; equal texts share one reading.

    Attributes:
        units: all words or characters, in order; content: all content words; quoted: those in quotation marks.
        marks: what the phrases of all sentences do, and how often; 0 for what none does.
        pairs: neighbouring units, the shape of the text; runs: longer stretches, which another text would have to copy.
        said: the sentences as units, by which they are known again.
    """

    language: Language
    sentences: tuple[Sentence, ...]
    units: tuple[str, ...]
    content: frozenset[str]
    quoted: frozenset[str]
    marks: Mapping[str, int]
    pairs: frozenset[str]
    runs: frozenset[str]
    said: frozenset[tuple[str, ...]]


@lru_cache(maxsize=8192)
def read(text: str, language: Language) -> Reading:
    """Read a text in the person's language; foreign letters are dropped here and counted elsewhere."""
    words = lexicon(language)
    pattern = _CHINESE if language == "zh" else _ENGLISH
    sentences: list[Sentence] = []
    units: list[str] = []
    for piece in [*pattern.findall(text.lower().translate(_APOSTROPHES)), "\n"]:
        if piece[0].isalnum():
            units.append(piece)
        elif units:
            asks = "?" in piece or "？" in piece or (language == "zh" and bool(_QUESTION_END.search(units[-1])))
            sentences.append(Sentence(tuple(units), _content(units, words, language), _marks(units, words), asks))
            units = []
    return _whole(text, language, tuple(sentences))


def _whole(text: str, language: Language, sentences: tuple[Sentence, ...]) -> Reading:
    units = tuple(chain.from_iterable(sentence.units for sentence in sentences))
    marks = dict.fromkeys(lexicon(language).marks, 0)
    for sentence in sentences:
        for mark, count in sentence.marks.items():
            marks[mark] += count
    quotes = _QUOTED.findall(text) if _QUOTE_MARKS & set(text) else []
    return Reading(
        language=language,
        sentences=sentences,
        units=units,
        content=frozenset[str]().union(*(sentence.content for sentence in sentences)),
        quoted=frozenset[str]().union(*(read(part, language).content for part in quotes)),
        marks=marks,
        pairs=frozenset(stretches(units, 2)),
        runs=frozenset(stretches(units, RUN[language])),
        said=frozenset(sentence.units for sentence in sentences),
    )


def stretches(units: tuple[str, ...], length: int) -> Iterator[str]:
    """All stretches of so many units, in order."""
    return map(" ".join, zip(*(units[start:] for start in range(length)), strict=False))


def _marks(units: list[str], words: Lexicon) -> Mapping[str, int]:
    marks: dict[str, int] = {}
    single, longer = words.single, words.longer
    for unit in units:
        if unit in single:
            for mark in single[unit]:
                marks[mark] = marks.get(mark, 0) + 1
    for index, pair in enumerate(pairwise(units), 2):
        if pair in longer:
            for rest, mark in longer[pair]:
                if not rest or tuple(units[index : index + len(rest)]) == rest:
                    marks[mark] = marks.get(mark, 0) + 1
    return marks


def _content(units: list[str], words: Lexicon, language: Language) -> frozenset[str]:
    function = words.function
    if language == "zh":
        return frozenset(a + b for a, b in pairwise(units) if a not in function and b not in function)
    return frozenset(_stem(unit) for unit in units if len(unit) > 2 and unit not in function)


@lru_cache(maxsize=16384)
def _stem(word: str) -> str:
    word = word.removesuffix("'s")
    for suffix in ("ingly", "edly", "ings", "ing", "ies", "ied", "ed", "es", "ly", "s", "e"):
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            word = word[: -len(suffix)]
            break
    if len(word) > 3 and word[-1] == word[-2]:
        word = word[:-1]
    return word.removesuffix("i").removesuffix("y") if len(word) > 3 else word
