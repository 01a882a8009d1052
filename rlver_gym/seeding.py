"""Child seeds: derived, never drawn, so that they do not depend on the order of calls.

`child_seed(seed, "user", turn)` is the same number in every process, Python and platform: it hashes its path and
touches no generator. What must differ has a path of its own; what must be shared (the user's noise in a group) leaves
the member out of its path.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from hashlib import blake2b
from typing import TypeVar

T = TypeVar("T")


def child_seed(seed: int, *path: int | str) -> int:
    """An integer in [0, 2**63) that depends on `seed` and `path` alone."""
    return int.from_bytes(_digest(seed, path, 8), "big") >> 1


def child_numbers(seed: int, *path: int | str) -> tuple[int, ...]:
    """Sixteen integers in [0, 2**32) that depend on `seed` and `path` alone: many small choices for one hash."""
    return struct.unpack(">16I", _digest(seed, path, 64))


def choose(items: Sequence[T], seed: int, *path: int | str) -> T:
    """One of `items`, uniformly over seeds and the same for equal arguments."""
    return items[child_seed(seed, *path) % len(items)]


def _digest(seed: int, path: tuple[int | str, ...], size: int) -> bytes:
    text = str(seed)
    for part in path:
        text += f"/str:{part.replace('/', '//')}" if isinstance(part, str) else f"/int:{part}"
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=size).digest()
