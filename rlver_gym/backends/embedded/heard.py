"""The person's side of the talk, carried on from message to message."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from rlver_gym.backends.embedded.reading import NOTHING, hear
from rlver_gym.types import Language


class Heard(NamedTuple):
    """What the person has said so far.

    Attributes:
        last: content words of the last message; known: of all.
        cells: words or characters; pairs: neighbouring ones, by message.
        text: all messages, a line each; said: their sentences.
    """

    last: frozenset[str]
    known: frozenset[str]
    cells: frozenset[str]
    pairs: tuple[frozenset[str], ...]
    text: str
    said: frozenset[str]


_STRIDE = 64
"""A long talk that comes whole is heard in stages of so many messages, so that no recursion is deep."""


@lru_cache(maxsize=2048)
def hear_all(texts: tuple[str, ...], language: Language) -> Heard:
    """Read all that the person has said so far, in order."""
    if not texts:
        return Heard(NOTHING, NOTHING, NOTHING, (), "", NOTHING)
    for length in range(_STRIDE, len(texts), _STRIDE):
        hear_all(texts[:length], language)
    before, last = hear_all(texts[:-1], language), hear(texts[-1], language)
    return Heard(
        last=last.content,
        known=before.known | last.content,
        cells=before.cells.union(*[one.cells for one in last.sentences]),
        pairs=(*before.pairs, last.pairs),
        text=f"{before.text}\n{last.text}",
        said=before.said | last.said,
    )
