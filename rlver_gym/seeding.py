"""Child seeds: derived, never drawn, so that they do not depend on the order of calls.

`child_seed(seed, "user", turn)` is the same number in every process, Python and platform: it hashes its path and
touches no generator. What must differ has a path of its own; what must be shared (the user's noise in a group) leaves
the member out of its path.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import TypeVar

T = TypeVar("T")


def child_seed(seed: int, *path: int | str) -> int:
    """An integer in [0, 2**63) that depends on `seed` and `path` alone."""
    text = str(seed)
    for part in path:
        text += f"/str:{part.replace('/', '//')}" if isinstance(part, str) else f"/int:{part}"
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big") >> 1


def choose(items: Sequence[T], seed: int, *path: int | str) -> T:
    """One of `items`, uniformly over seeds and the same for equal arguments."""
    return items[child_seed(seed, *path) % len(items)]
