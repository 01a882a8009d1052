"""The space of everything that can be said, and its way through shared memory.

Gymnasium's own `Text` wants a list of allowed characters, 62 of them by default, and its `AsyncVectorEnv` with shared
memory reads `Text` observations once, at construction, and hands out that reading for ever. `UnicodeText` holds any
text, and importing this module registers it with Gymnasium's three shared-memory functions so that every step gives
what was said in that step.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from ctypes import c_uint32
from functools import cache
from typing import Any, SupportsIndex, TypeVar, overload

import numpy as np
from gymnasium.spaces import Text
from gymnasium.vector.utils import create_shared_memory, read_from_shared_memory, write_to_shared_memory
from numpy.typing import NDArray

from rlver_gym.errors import SetupError

T = TypeVar("T")

MAX_LENGTH = 32768
"""Longest text by default, in characters; about 8,192 tokens of English."""

_CODE_POINTS = 0x110000

_ENGLISH = (
    "I am listening.",
    "Tell me more about it.",
    "That sounds hard.",
    "What happened then?",
    "Thank you for saying so.",
    "I am not sure what to do.",
    "It was a long day.",
    "How do you feel now?",
    "Let us think about it together.",
    "I see what you mean.",
    "Take your time.",
    "Maybe tomorrow will be better.",
)
_CHINESE = (
    "我在听。",
    "再说说看。",
    "听起来不容易。",
    "后来怎么样了？",
    "谢谢你愿意说。",
    "我不知道该怎么办。",
    "今天好累啊。",
    "你现在感觉如何？",
    "我们一起想想吧。",
    "我明白你的意思。",
    "慢慢来。",
    "也许明天会好一些。",
)
_PHRASES = ((" ", _ENGLISH), ("", _CHINESE))


class Characters(Sequence[str], AbstractSet[str]):
    """Every code point in order: an ordered set that takes no room. A character's index is its code point.

    Lone surrogates are counted, which keeps the indices plain; it is the space that refuses them.
    """

    def __len__(self) -> int:
        return _CODE_POINTS

    @overload
    def __getitem__(self, index: SupportsIndex) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[str, ...]: ...

    def __getitem__(self, index: SupportsIndex | slice) -> str | tuple[str, ...]:
        points = range(_CODE_POINTS)[index]
        return tuple(map(chr, points)) if isinstance(points, range) else chr(points)

    def __contains__(self, value: object) -> bool:
        return isinstance(value, str) and len(value) == 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Characters)

    @classmethod
    def _from_iterable(cls, it: Iterable[T]) -> frozenset[T]:
        return frozenset(it)


@cache
def _all_characters() -> str:
    return np.arange(_CODE_POINTS, dtype="<u4").tobytes().decode("utf-32-le", "surrogatepass")


class UnicodeText(Text):
    """Any text of at most `max_length` characters in any script: empty, many lines and emoji included.

    Only lone surrogates are refused: no file and no wire can carry them. Samples are a few short sentences of English
    or Chinese, so that a random policy says something a user can answer.

    Args:
        max_length: longest text, in code points.
        seed: of `sample`.
    """

    def __init__(self, max_length: int = MAX_LENGTH, seed: int | np.random.Generator | None = None) -> None:
        super().__init__(max_length, min_length=0, charset="", seed=seed)

    def contains(self, x: Any) -> bool:
        """Whether `x` is a text that fits and can be encoded."""
        return not self.problem(x)

    def problem(self, x: Any) -> str:
        """Why `x` is not in the space; empty if it is."""
        if not isinstance(x, str):
            return f"it is a {type(x).__name__}, not a str"
        if len(x) > self.max_length:
            return f"it has {len(x)} characters, {len(x) - self.max_length} too many"
        try:
            x.encode("utf-32-le")
        except UnicodeEncodeError as error:
            return f"character {error.start} is a lone surrogate, U+{ord(x[error.start]):04X}"
        return ""

    def sample(self, mask: Any | None = None, probability: Any | None = None) -> str:
        """One to three printable sentences, all English or all Chinese, cut to `max_length`.

        Raises:
            SetupError: if a mask or a probability is given; a million characters have no useful mask.
        """
        if mask is not None or probability is not None:
            raise SetupError(f"{self} samples whole sentences: it takes neither mask nor probability")
        gap, phrases = _PHRASES[self.np_random.integers(len(_PHRASES))]
        chosen = self.np_random.permutation(len(phrases))[: self.np_random.integers(1, 4)]
        return gap.join(phrases[i] for i in chosen)[: self.max_length]

    @property
    def character_set(self) -> Characters:  # type: ignore[override]
        """All of Unicode."""
        return Characters()

    @property
    def character_list(self) -> Characters:  # type: ignore[override]
        """All of Unicode, in order of code points."""
        return Characters()

    def character_index(self, char: str) -> np.int32:
        """The code point of a character."""
        return np.int32(ord(char))

    @property
    def characters(self) -> str:
        """All of Unicode in one string of 4.4 MB, made on first use."""
        return _all_characters()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UnicodeText) and self.max_length == other.max_length

    def __repr__(self) -> str:
        return f"UnicodeText({self.max_length})"


class SharedTexts(Sequence[str]):
    """The newest texts of n environments, decoded from shared memory when they are looked at.

    `AsyncVectorEnv(copy=True)`, the default, deep-copies this on each step, and a copy (or pickle) of it is a tuple of
    str. With `copy=False` it is handed out itself: it changes with the next step, and `tuple(texts)` keeps it.

    Args:
        rows: (n, 1 + max_length) of uint32: length in characters, then code points.
    """

    def __init__(self, rows: NDArray[np.uint32]) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[str, ...]: ...

    def __getitem__(self, index: int | slice) -> str | tuple[str, ...]:
        if isinstance(index, slice):
            return tuple(self)[index]
        row: NDArray[np.uint32] = self._rows[index]
        return row[1 : 1 + int(row[0])].tobytes().decode("utf-32-le")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, tuple | SharedTexts) and tuple(self) == tuple(other)

    def __repr__(self) -> str:
        return f"SharedTexts{tuple(self)!r}"

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (tuple(self),)


def _rows(space: UnicodeText, shared_memory: Any) -> NDArray[np.uint32]:
    return np.frombuffer(shared_memory.get_obj(), dtype="<u4").reshape(-1, 1 + space.max_length)


@create_shared_memory.register(UnicodeText)
def _create_texts(space: UnicodeText, n: int = 1, ctx: Any = multiprocessing) -> Any:
    return ctx.Array(c_uint32, n * (1 + space.max_length))


@read_from_shared_memory.register(UnicodeText)
def _read_texts(space: UnicodeText, shared_memory: Any, n: int = 1) -> SharedTexts:
    return SharedTexts(_rows(space, shared_memory)[:n])


@write_to_shared_memory.register(UnicodeText)
def _write_text(space: UnicodeText, index: int, value: Any, shared_memory: Any) -> None:
    """Write one environment's text.

    Raises:
        SetupError: if the text is not in the space; it is never cut.
    """
    if problem := space.problem(value):
        raise SetupError(f"the text of environment {index} is not in {space}: {problem}")
    row = _rows(space, shared_memory)[index]
    row[1 : 1 + len(value)] = np.frombuffer(value.encode("utf-32-le"), dtype="<u4")
    row[0] = len(value)
