"""One text as the engine sees it: sentences, units, content words, and what its phrases do.

English is read by words and Chinese by characters; everything after this file treats both alike.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from operator import add
from typing import NamedTuple

from rlver_gym.backends.embedded.tables import Lexicon, cells_of, lexicon, stem
from rlver_gym.types import Language

_ENGLISH = re.compile(r"[a-z0-9]+(?:'[a-z]+)?|[.!?\n]+")
_CHINESE = re.compile(r"[\u3400-\u9fffa-z0-9]+|[。！？!?…\n]+|\.{2,}")
_APOSTROPHES = str.maketrans({"\u2019": "'", "\u2018": "'", "\u02bc": "'"})
_QUOTED = re.compile('["\u201c\u300c\u300e]([^"\u201c\u201d\u300c\u300d\u300e\u300f]{1,200})["\u201d\u300d\u300f]')
_QUOTE_MARKS = frozenset('"\u201c\u300c\u300e')

_WELCOME = frozenset({"invitation", "hearing"})
"""Orders that are none: `go on`, `take your time`."""

NOTHING: frozenset[str] = frozenset()


class Sentence(NamedTuple):
    """A sentence.

    Attributes:
        cells: its words or characters, in the form of `cells_of`.
        content: its content words (stems, or pairs of characters).
        marks: what its phrases do, and how often.
        asks: whether it ends as a question.
    """

    cells: Sequence[str]
    content: frozenset[str]
    marks: Mapping[str, int]
    asks: bool


class Reading(NamedTuple):
    """A text, read once; equal texts share one reading.

    Attributes:
        size: words or characters; text: all of them in order, joined.
        content: all content words; quoted: those in quotation marks.
        marks: what the phrases of all sentences do, and how often; 0 for what none does.
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
    words = lexicon(language)
    pattern = _CHINESE if language == "zh" else _ENGLISH
    marks = dict.fromkeys(words.marks, 0)
    content: set[str] = set()
    pairs: set[str] = set()
    sentences: list[Sentence] = []
    units: list[str] = []
    for piece in [*pattern.findall(text.lower().translate(_APOSTROPHES)), "\n"]:
        if piece[0].isalnum():
            units.append(piece)
        elif units:
            cells = cells_of(units, language)
            couples = set(map(add, cells, cells[1:]))
            sentence = _sentence(cells, units, couples, words, language, piece)
            for mark, count in sentence.marks.items():
                marks[mark] += count
            content |= sentence.content
            pairs |= couples
            sentences.append(sentence)
            units = []
    quotes = _QUOTED.findall(text) if not _QUOTE_MARKS.isdisjoint(text) else []
    said = ["".join(sentence.cells) for sentence in sentences]
    return Reading(
        language=language,
        sentences=tuple(sentences),
        size=sum(len(sentence.cells) for sentence in sentences),
        text="".join(said),
        content=frozenset(content),
        quoted=NOTHING.union(*(read(part, language).content for part in quotes)),
        marks=marks,
        pairs=frozenset(pairs),
        said=frozenset(said),
    )


def _sentence(
    cells: Sequence[str], units: list[str], couples: set[str], words: Lexicon, language: Language, end: str
) -> Sentence:
    if language == "zh":
        matter = words.matter.findall("".join(cells))
        content = {part for part in matter if len(part) == 1}
        for part in matter:
            content.update(words.telling(one + two) for one, two in zip(part, part[1:], strict=False))
        people = words.people.intersection(cells)
        content = {one for one in content - words.register if people.isdisjoint(one)} | people
        asks = "?" in end or "？" in end or cells[-1] == "吗" or (cells[-1] == "呢" and "。" not in end)
    else:
        content = {stem(unit) for unit in units if len(unit) > 2} - words.register
        asks = "?" in end
    marks = _marks(cells, couples, words)
    if cells[0] in words.order and not asks and _WELCOME.isdisjoint(marks):
        marks.setdefault("advice", 1)
    return Sentence(cells, frozenset(content), marks, asks)


def _marks(cells: Sequence[str], couples: set[str], words: Lexicon) -> dict[str, int]:
    marks: dict[str, int] = {}
    for unit in words.single.keys() & set(cells):
        count = cells.count(unit)
        for mark in words.single[unit]:
            marks[mark] = marks.get(mark, 0) + count
    found = words.longer.keys() & couples
    if found:
        text = "".join(cells)
        for couple in found:
            for phrase, mark in words.longer[couple]:
                if count := text.count(phrase):
                    marks[mark] = marks.get(mark, 0) + count
    return marks
