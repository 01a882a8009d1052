"""One text as the engine sees it: sentences, units, content words, and what its phrases do.

English is read by words and Chinese by characters; everything after this file treats both alike.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from operator import add
from typing import NamedTuple

from rlver_gym.backends.embedded.tables import NO_MATTER, Lexicon, cells_of, lexicon, stem
from rlver_gym.types import Language

_WORDS = {"en": re.compile(r"[a-z0-9]+(?:'[a-z]+)?"), "zh": re.compile(r"[\u3400-\u9fffa-z0-9]+")}
_ENDS = {"en": re.compile(r"([.!?\n]+)"), "zh": re.compile(r"([。！？!?…\n]+|\.{2,})")}
_APOSTROPHES = str.maketrans({"\u2019": "'", "\u2018": "'", "\u02bc": "'"})
_QUOTED = re.compile('["\u201c\u300c\u300e]([^"\u201c\u201d\u300c\u300d\u300e\u300f]{1,200})["\u201d\u300d\u300f]')
_QUOTE_MARKS = tuple('"\u201c\u300c\u300e')

_WELCOME = frozenset({"invitation", "hearing"})
"""Orders that are none: `go on`, `take your time`."""

NOTHING: frozenset[str] = frozenset()


class Sentence(NamedTuple):
    """A sentence.

    Attributes:
        cells: its words or characters, in the form of `cells_of`; text: all of them, joined.
        pairs: neighbouring words or characters, joined, in order.
        content: its content words (stems, or pairs of characters).
        marks: what its phrases do, and how often.
        asks: whether it ends as a question.
    """

    cells: Sequence[str]
    text: str
    pairs: Sequence[str]
    content: frozenset[str]
    marks: Mapping[str, int]
    asks: bool


class Reading(NamedTuple):
    """A text, read once; equal texts share one reading.

    Attributes:
        size: words or characters; text: all of them in order, joined.
        content: all content words; quoted: those in quotation marks.
        marks: what the phrases of all sentences do, and how often.
        pairs: neighbouring words or characters, the shape of the text.
        said: the sentences as joined cells, by which they are known again.
    """

    language: Language
    sentences: tuple[Sentence, ...]
    size: int
    text: str
    content: frozenset[str]
    quoted: frozenset[str]
    marks: Mapping[str, int]
    pairs: frozenset[str]
    said: frozenset[str]


@lru_cache(maxsize=2048)
def read(text: str, language: Language) -> Reading:
    """Read a text in the person's language; foreign letters are dropped here and counted elsewhere."""
    return _read(text, language, _sentence)


@lru_cache(maxsize=2048)
def hear(text: str, language: Language) -> Reading:
    """Read the person's own words. They are put together of written lines, whose sentences are read once."""
    return _read(text, language, _own_sentence)


def _read(text: str, language: Language, sentence: Callable[[str, str, Language], Sentence | None]) -> Reading:
    low = text.lower()
    if language == "en" and not low.isascii():
        low = low.translate(_APOSTROPHES)
    pieces = _ENDS[language].split(low)
    pieces.append("\n")
    sentences = [
        one
        for said, end in zip(pieces[::2], pieces[1::2], strict=True)
        if said and (one := sentence(said, end, language))
    ]
    marks: dict[str, int] = {}
    for one in sentences:
        for mark, count in one.marks.items():
            marks[mark] = marks.get(mark, 0) + count
    quotes = _QUOTED.findall(text) if any(map(text.__contains__, _QUOTE_MARKS)) else ()
    return Reading(
        language=language,
        sentences=tuple(sentences),
        size=sum([len(one.cells) for one in sentences]),
        text="".join([one.text for one in sentences]),
        content=NOTHING.union(*[one.content for one in sentences]),
        quoted=NOTHING.union(*[read(part, language).content for part in quotes]) if quotes else NOTHING,
        marks=marks,
        pairs=NOTHING.union(*[one.pairs for one in sentences]),
        said=frozenset([one.text for one in sentences]),
    )


def _sentence(said: str, end: str, language: Language) -> Sentence | None:
    """A sentence that ends with these signs, or None if it holds no word."""
    units = _WORDS[language].findall(said)
    if not units:
        return None
    words = lexicon(language)
    cells = cells_of(units, language)
    text = "".join(cells)
    pairs = tuple(map(add, cells, cells[1:]))
    if language == "zh":
        content = {*map(_pair_matter, pairs), *words.lone.findall(text)} - words.register
        if people := words.people.intersection(cells):
            content = {one for one in content if people.isdisjoint(one)} | people
        asks = "?" in end or "？" in end or cells[-1] == "吗" or (cells[-1] == "呢" and "。" not in end)
    else:
        content = {*map(_word_matter, units)} - words.register
        asks = "?" in end
    marks = _marks(cells, text, pairs, words)
    if cells[0] in words.order and not asks and _WELCOME.isdisjoint(marks):
        marks.setdefault("advice", 1)
    return Sentence(cells, text, pairs, frozenset(content), marks, asks)


_own_sentence = lru_cache(maxsize=16384)(_sentence)


@lru_cache(maxsize=16384)
def _word_matter(word: str) -> str:
    """What an English word is about; nothing, as a word of the register, if it is short."""
    return stem(word) if len(word) > 2 else NO_MATTER


@lru_cache(maxsize=65536)
def _pair_matter(pair: str) -> str:
    """What two Chinese characters side by side are about: the rare one of them alone if the other is frequent.

    So that `rain` is known again in `rains on` and `been in the rain`; a pair of the register stays whole. Nothing, as
    a pair of the register, if one of them is a function word.
    """
    words = lexicon("zh")
    one, two = pair[0], pair[1]
    if one in words.apart or two in words.apart:
        return NO_MATTER
    often = one in words.frequent
    if often == (two in words.frequent) or pair in words.register:
        return pair
    return two if often else one


def _marks(cells: Sequence[str], text: str, pairs: Sequence[str], words: Lexicon) -> dict[str, int]:
    marks: dict[str, int] = {}
    for unit in filter(words.single.__contains__, cells):
        for mark in words.single[unit]:
            marks[mark] = marks.get(mark, 0) + 1
    for pair in words.longer.keys() & pairs:
        for phrase, mark in words.longer[pair]:
            if count := text.count(phrase):
                marks[mark] = marks.get(mark, 0) + count
    return marks
